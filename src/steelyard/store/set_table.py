"""Sets of samples: chosen from runs by hand or by a filter, kept with their contents, and judged again later.

A set outlives the runs that its samples come from. Its versions are never changed: each change makes the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steelyard.errors import ConfigError, UnknownSet
from steelyard.records import Sample
from steelyard.store.account_table import check_name
from steelyard.store.database import insert
from steelyard.store.rows import SAMPLE
from steelyard.store.run_table import RunTable
from steelyard.store.verdict_table import VerdictTable

ADD_SET = insert("sample_sets", "id project name")
ADD_VERSION = insert("set_versions", "sample_set version time author note")
ADD_SAMPLE = insert("set_samples", "sample_set place id sample run added_in")
REMOVE_SAMPLE = "UPDATE set_samples SET removed_in = ? WHERE sample_set = ? AND place = ?"
# What a version holds: what was added by then and not yet removed.
HELD = "sample_set = ? AND added_in <= ? AND (removed_in IS NULL OR removed_in > ?)"
# Separates a set's name from a version: `set:regression@3`.
AT = "@"


class SampleSet(NamedTuple):
    """A set as it is now: `version` is its newest."""

    id: int
    project: str
    name: str
    version: int


class SetVersion(NamedTuple):
    """Who changed a set when, and what it holds since."""

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
        sql = (
            "SELECT s.id, s.project, s.name, max(v.version) FROM sample_sets s JOIN set_versions v "
            "ON v.sample_set = s.id GROUP BY s.id, s.project, s.name ORDER BY s.name, s.project"
        )
        found = map(SampleSet._make, self.query(sql))
        return [one for one in found if self.shows(one.project) and project in (None, one.project)]

    def sample_set(self, id: int) -> SampleSet:
        for found in self.sets():
            if found.id == id:
                return found
        raise UnknownSet(f"there is no set with the number {id}")

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
        self, name: str, run: str, samples: Iterable[str], *, time: str, author: str = "", note: str = ""
    ) -> SampleSet:
        """Add samples of a run to a set of its project, which is made where there is none of that name.

        A sample that the set holds already is replaced by the run's; where nothing changes, there is no new version.
        """
        check_name(name, "set")
        if AT in name:
            raise ConfigError(f"{name!r} is no name for a set: {AT} separates a name from a version")
        row = self.run(run)
        self._check_project(row.project)
        chosen = [self._sample_of(row.id, id) for id in dict.fromkeys(samples)]
        if not chosen:
            raise ConfigError("name at least one sample to add")
        with self.all_or_nothing("sets"):
            found = next((one for one in self.sets(row.project) if one.name == name), None)
            if found is None:
                (last,) = next(self.query("SELECT coalesce(max(id), 0) FROM sample_sets"))
                found = SampleSet(last + 1, row.project, name, 0)
                self.write(ADD_SET, found.id, found.project, found.name)
            held = self._newest(found.id)
            documents = {sample.id: sample.model_dump_json() for sample in chosen}
            new = {id: text for id, text in documents.items() if id not in held or held[id][1] != text}
            if not new:
                return found
            version = self._new_version(found, time, author, note)
            replaced = [(version, found.id, held[id][0]) for id in new if id in held]
            (last,) = next(
                self.query("SELECT coalesce(max(place), -1) FROM set_samples WHERE sample_set = ?", found.id)
            )
            added = [(found.id, last + n, id, text, row.id, version) for n, (id, text) in enumerate(new.items(), 1)]
            self.change((REMOVE_SAMPLE, replaced), (ADD_SAMPLE, added))
        return found._replace(version=version)

    def remove_from_set(
        self, id: int, samples: Iterable[str], *, time: str, author: str = "", note: str = ""
    ) -> SampleSet:
        """Make a version without these samples; earlier versions still hold them."""
        with self.all_or_nothing("sets"):
            found = self.sample_set(id)
            held = self._newest(id)
            gone = list(dict.fromkeys(samples))
            if missing := [one for one in gone if one not in held]:
                raise ConfigError(f"the set {found.name!r} holds no sample {missing[0]!r}")
            if not gone:
                raise ConfigError("name at least one sample to remove")
            version = self._new_version(found, time, author, note)
            self.change((REMOVE_SAMPLE, [(version, id, held[one][0]) for one in gone]))
        return found._replace(version=version)

    def set_versions(self, id: int) -> list[SetVersion]:
        """The versions of a set, newest first."""
        found = self.sample_set(id)
        sql = (
            "SELECT v.version, v.time, v.author, v.note, (SELECT count(*) FROM set_samples s "
            "WHERE s.sample_set = v.sample_set AND s.added_in <= v.version "
            "AND (s.removed_in IS NULL OR s.removed_in > v.version)) "
            "FROM set_versions v WHERE v.sample_set = ? ORDER BY v.version DESC"
        )
        return [SetVersion._make(row) for row in self.query(sql, found.id)]

    def set_version(self, id: int, version: int | None = None) -> SetVersion:
        """One version of a set; without a number, the newest."""
        versions = self.set_versions(id)
        wanted = versions[0].version if version is None else version
        for found in versions:
            if found.version == wanted:
                return found
        raise UnknownSet(f"the set has no version {version}; its newest is {versions[0].version}")

    def set_samples(self, id: int, version: int) -> Iterator[SetSample]:
        """What a version of a set holds, in the order in which it was added, streamed."""
        found = self.sample_set(id)
        sql = f"SELECT sample, run, added_in FROM set_samples WHERE {HELD} ORDER BY place"
        with self.told_errors():
            for sample, run, added_in in self.stream(sql, found.id, version, version):
                yield SetSample(SAMPLE.validate_json(sample), run, added_in)

    def _new_version(self, found: SampleSet, time: str, author: str, note: str) -> int:
        version = found.version + 1
        self.write(ADD_VERSION, found.id, version, time, author, note)
        return version

    def _newest(self, id: int) -> dict[str, tuple[int, str]]:
        """Place and document of what the newest version holds, by id."""
        sql = "SELECT id, place, sample FROM set_samples WHERE sample_set = ? AND removed_in IS NULL"
        return {sample: (place, text) for sample, place, text in self.query(sql, id)}

    def _sample_of(self, run: str, id: str) -> Sample:
        found = self.verdict(run, id)
        if found is None:
            raise ConfigError(f"run {run} has no sample {id!r}")
        return found[0]
