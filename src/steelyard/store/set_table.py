"""Sets of samples: chosen from runs by hand or by a filter, kept with their contents, and judged again later.

A set outlives the runs that its samples come from. Its versions are never changed: each change makes the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from steelyard.errors import ConfigError, UnknownSet
from steelyard.records import Sample
from steelyard.store.account_table import check_name
from steelyard.store.database import batches, insert, placeholders
from steelyard.store.rows import SAMPLE
from steelyard.store.run_table import RunTable
from steelyard.store.verdict_table import VerdictTable

VERSION = "version time author note samples"
ADD_SET = insert("sample_sets", "id project name")
ADD_VERSION = insert("set_versions", f"sample_set {VERSION}")
ADD_SAMPLE = insert("set_samples", "sample_set place id sample run added_in")
REMOVE_SAMPLE = "UPDATE set_samples SET removed_in = ? WHERE sample_set = ? AND place = ?"
# What a version holds: what was added by then and not yet removed.
HELD = "sample_set = ? AND added_in <= ? AND (removed_in IS NULL OR removed_in > ?)"
# Separates a set's name from a version: `--set regression@3`.
AT = "@"
TOGETHER = 500
LONGEST_NUMBER = 10


class SampleSet(NamedTuple):
    """A set as it is now: `version` is its newest, which holds so many samples."""

    id: int
    project: str
    name: str
    version: int
    changed: str
    samples: int


class SetVersion(NamedTuple):
    """Who changed a set when, and how many samples it holds since."""

    version: int
    time: str
    author: str
    note: str
    samples: int


class SetSample(NamedTuple):
    """A sample of a set, and the run that it was taken from."""

    sample: Sample
    run: str
    added_in: int


class SetTable(RunTable, VerdictTable):
    """Sets belong to projects, as runs do."""

    def sets(self, project: str | None = None) -> list[SampleSet]:
        """All sets, or those of a project, by name."""
        found = self._sets("", ())
        return [one for one in found if project in (None, one.project)]

    def sample_set(self, number: int | str) -> SampleSet:
        """A set by its number, which may come from an address."""
        text = str(number)
        is_number = text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER
        for found in self._sets("WHERE s.id = ?", (int(text),)) if is_number else ():
            return found
        raise UnknownSet(f"there is no set with the number {text}")

    def set_named(self, name: str, project: str | None = None) -> SampleSet:
        """A set by its name; the project is needed where several have one of that name."""
        known = self.sets(project)
        found = [one for one in known if one.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            projects = ", ".join(repr(one.project) for one in found)
            raise UnknownSet(f"there is a set {name!r} in each of the projects {projects}; name the project")
        names = ", ".join(one.name for one in known[:5]) or "none yet"
        raise UnknownSet(f"there is no set {name!r} in {self.name}; there are: {names}")

    def add_to_set(
        self,
        name: str,
        run: str,
        samples: Iterable[str] = (),
        *,
        places: Sequence[int] = (),
        time: str,
        author: str = "",
        note: str = "",
    ) -> SampleSet:
        """Add samples of a run, by their ids or their places in its input, to a set of its project, which is made where
        there is none of that name.

        A sample that the set holds already is replaced by the run's; where nothing changes, there is no new version.
        """
        check_name(name, "set")
        if AT in name:
            raise ConfigError(f"{name!r} is not a name for a set: {AT} separates a name from a version")
        row = self.run(run)
        self._check_project(row.project)
        with self.all_or_nothing("sets"):
            found = next((one for one in self.sets(row.project) if one.name == name), None)
            is_new = found is None
            if found is None:
                (last,) = next(self.query("SELECT coalesce(max(id), 0) FROM sample_sets"))
                found = SampleSet(last + 1, row.project, name, 0, "", 0)
                self.write(ADD_SET, found.id, found.project, found.name)
            named = self._documents(row.id, samples)
            added = replaced = 0
            for chosen in batches(chain(named, self.documents_at(row.id, places)), TOGETHER):
                new, again = self._add(found, row.id, dict(chosen))
                added, replaced = added + new, replaced + again
            if is_new and not added:
                raise ConfigError("name at least one sample to add")
            if not (added or replaced):
                return found
            return self._new_version(found, found.samples + added, time, author, note)

    def remove_from_set(
        self, id: int, samples: Iterable[str], *, time: str, author: str = "", note: str = ""
    ) -> SampleSet:
        """Make a version without these samples; earlier versions still hold them."""
        with self.all_or_nothing("sets"):
            found = self.sample_set(id)
            gone = list(dict.fromkeys(samples))
            if not gone:
                raise ConfigError("name at least one sample to remove")
            for some in batches(gone, TOGETHER):
                held = self._holding(id, some)
                if missing := [one for one in some if one not in held]:
                    raise ConfigError(f"the set {found.name!r} holds no sample {missing[0]!r}")
                self.change((REMOVE_SAMPLE, [(found.version + 1, id, place) for place, _ in held.values()]))
            return self._new_version(found, found.samples - len(gone), time, author, note)

    def delete_set(self, id: int) -> None:
        """Delete a set with all its versions. Runs that were started over it keep their samples."""
        found = self.sample_set(id)
        self.write("DELETE FROM sample_sets WHERE id = ?", found.id)

    def set_versions(self, id: int) -> list[SetVersion]:
        """The versions of a set, newest first."""
        found = self.sample_set(id)
        sql = f"SELECT {', '.join(VERSION.split())} FROM set_versions WHERE sample_set = ? ORDER BY version DESC"
        return [SetVersion._make(row) for row in self.query(sql, found.id)]

    def set_version(self, id: int, version: int | None = None) -> SetVersion:
        """One version of a set; without a number, the newest."""
        versions = self.set_versions(id)
        wanted = versions[0].version if version is None else version
        for found in versions:
            if found.version == wanted:
                return found
        raise UnknownSet(f"the set has no version {version}; its newest is {versions[0].version}")

    def set_samples(self, id: int, version: int, *, start: int = 0, limit: int | None = None) -> Iterator[SetSample]:
        """What a version of a set holds, in the order in which it was added, streamed; all of it or a part."""
        found = self.sample_set(id)
        where = HELD
        values: tuple[int, ...] = (found.id, version, version)
        if limit is not None:
            # The narrow index finds the places: the texts before them are not read.
            places = f"SELECT place FROM set_samples WHERE {HELD} ORDER BY place LIMIT {limit:d} OFFSET {start:d}"
            where, values = f"sample_set = ? AND place IN ({places})", (found.id, *values)
        sql = f"SELECT sample, run, added_in FROM set_samples WHERE {where} ORDER BY place"
        with self.explained_errors():
            for sample, run, added_in in self.stream(sql, *values):
                yield SetSample(SAMPLE.validate_json(sample), run, added_in)

    def set_sample(self, id: int, version: int, sample: str) -> SetSample | None:
        """The sample of this id that a version of a set holds."""
        found = self.sample_set(id)
        sql = f"SELECT sample, run, added_in FROM {self.dialect.set_samples_by_id} WHERE id = ? AND {HELD}"
        for document, run, added_in in self.query(sql, sample, found.id, version, version):
            return SetSample(SAMPLE.validate_json(document), run, added_in)
        return None

    def sets_holding(self, project: str, sample: str) -> list[SampleSet]:
        """The sets of a project whose newest version holds a sample of this id."""
        table = self.dialect.set_samples_by_id
        sql = f"SELECT sample_set FROM {table} WHERE sample_set = ? AND id = ? AND removed_in IS NULL"
        return [one for one in self.sets(project) if any(self.query(sql, one.id, sample))]

    def _sets(self, where: str, values: tuple[int, ...]) -> list[SampleSet]:
        sql = (
            "SELECT s.id, s.project, s.name, v.version, v.time, v.samples FROM sample_sets s "
            "JOIN set_versions v ON v.sample_set = s.id AND v.version = "
            "(SELECT max(version) FROM set_versions WHERE sample_set = s.id) "
            f"{where} ORDER BY s.name, s.project"
        )
        found = map(SampleSet._make, self.query(sql, *values))
        return [one for one in found if self.shows(one.project)]

    def _add(self, found: SampleSet, run: str, documents: dict[str, str]) -> tuple[int, int]:
        """How many of these samples are new in the set, and how many it held with other contents."""
        version = found.version + 1
        held = self._holding(found.id, list(documents))
        changed = {id: text for id, text in documents.items() if id not in held or held[id][1] != text}
        replaced = [(version, found.id, held[id][0]) for id in changed if id in held]
        (last,) = next(self.query("SELECT coalesce(max(place), -1) FROM set_samples WHERE sample_set = ?", found.id))
        added = [(found.id, last + n, id, text, run, version) for n, (id, text) in enumerate(changed.items(), 1)]
        self.change((REMOVE_SAMPLE, replaced), (ADD_SAMPLE, added))
        return len(added) - len(replaced), len(replaced)

    def _new_version(self, found: SampleSet, samples: int, time: str, author: str, note: str) -> SampleSet:
        version = found.version + 1
        self.write(ADD_VERSION, found.id, version, time, author, note, samples)
        return found._replace(version=version, changed=time, samples=samples)

    def _holding(self, id: int, samples: Sequence[str]) -> dict[str, tuple[int, str]]:
        """Place and document of those that the newest version holds, by id."""
        sql = (
            f"SELECT id, place, sample FROM {self.dialect.set_samples_by_id} "
            f"WHERE sample_set = ? AND id IN ({placeholders(samples)}) AND removed_in IS NULL"
        )
        return {sample: (place, text) for sample, place, text in self.query(sql, id, *samples)}

    def _documents(self, run: str, samples: Iterable[str]) -> list[tuple[str, str]]:
        found = []
        for id in dict.fromkeys(samples):
            document = self.document(run, id)
            if document is None:
                raise ConfigError(f"run {run} has no sample {id!r}")
            found.append((id, document))
        return found
