"""The runs of a store: how each came about, how far it is, and what people call it."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pydantic import ValidationError

from steelyard.errors import ConfigError, UnknownRun, invalid_field
from steelyard.protocols import restore
from steelyard.store.database import Database, dump, insert_new, upsert
from steelyard.store.rows import MetaValue, RunIdentity, RunRow, Wording

IDENTITY = "name notes tags meta project baseline"
SET_IDENTITY = upsert("identities", f"run {IDENTITY}", "run")
GET_RUNS = (
    "SELECT r.id, r.number, r.protocol, r.judge, r.state, r.started, r.finished, r.manifest, "
    f"{', '.join(f'i.{name}' for name in IDENTITY.split())} FROM runs r LEFT JOIN identities i ON i.run = r.id"
)
# Ids begin with the day as eight digits; fewer of them are the number of a run.
SHORTEST_DATE = 8


class RunTable(Database):
    """Runs, their identities, and the words of the prompts they were judged by."""

    visible: frozenset[str] | None = None
    """The projects whose runs there are, for whoever asks; None: all. What is not visible cannot be told from what does
    not exist, and can be neither made nor changed."""

    def shows(self, project: str) -> bool:
        return self.visible is None or project in self.visible

    def create_run(
        self,
        id: str,
        protocol: str,
        judge: str,
        started: str,
        manifest: Mapping[str, Any],
        identity: RunIdentity | None = None,
    ) -> RunRow:
        self._check_project(identity.project if identity else "")
        with self.all_or_nothing("the numbers of runs"):
            self.write(
                "INSERT INTO runs (id, number, protocol, judge, state, started, manifest) "
                "SELECT ?, coalesce(max(number), 0) + 1, ?, ?, 'running', ?, ? FROM runs",
                *(id, protocol, judge, started, dump(manifest)),
            )
            if identity and identity != RunIdentity():
                self._set_identity(id, identity)
        return self.run(id)

    def update_run(self, id: str, *, state: str, finished: str | None, manifest: Mapping[str, Any]) -> None:
        sql = "UPDATE runs SET state = ?, finished = ?, manifest = ? WHERE id = ?"
        self.write(sql, state, finished, dump(manifest), id)

    def edit_run(
        self,
        id: str,
        *,
        name: str | None = None,
        notes: str | None = None,
        tags: Iterable[str] | None = None,
        meta: Mapping[str, MetaValue] | None = None,
        project: str | None = None,
        baseline: bool | None = None,
    ) -> RunRow:
        """Change what is given of a run's identity. A project has one baseline: the newest that was named."""
        given = {"name": name, "notes": notes, "tags": tags, "meta": meta, "project": project, "baseline": baseline}
        changed = {field: value for field, value in given.items() if value is not None}
        with self.all_or_nothing("identities"):
            identity = run_identity({**identity_of(self.run(id)).model_dump(), **changed})
            self._check_project(identity.project)
            self._set_identity(id, identity)
        return self.run(id)

    def _set_identity(self, id: str, identity: RunIdentity) -> None:
        if identity.baseline:
            self.write("UPDATE identities SET baseline = 0 WHERE project = ? AND run <> ?", identity.project, id)
        document = identity.model_dump()
        values = (dump(value) if name in ("tags", "meta") else value for name, value in document.items())
        self.write(SET_IDENTITY, id, *(int(value) if isinstance(value, bool) else value for value in values))

    def runs(self, *, project: str | None = None, tag: str | None = None) -> list[RunRow]:
        """All runs, or those of a project, or with a tag; newest first."""
        found = self._runs("", ())
        return [
            row for row in found if (project is None or row.project == project) and (tag is None or tag in row.tags)
        ]

    def projects(self) -> dict[str, int]:
        """The projects there are, with how many runs each has; runs without one are in the project ''."""
        sql = (
            "SELECT coalesce(i.project, '') AS project, count(*) FROM runs r LEFT JOIN identities i ON i.run = r.id "
            "GROUP BY coalesce(i.project, '') ORDER BY 1"
        )
        return {project: n for project, n in self.query(sql) if self.shows(project)}

    def _check_project(self, project: str) -> None:
        if not self.shows(project):
            raise ConfigError(f"there is no project {project!r} in which you may do that")

    def baseline(self, project: str = "") -> RunRow | None:
        """The run that others of its project are compared with, where one was named."""
        return next(iter(self._runs("WHERE i.project = ? AND i.baseline = 1", (project,))), None)

    def _runs(self, where: str, values: tuple[Any, ...]) -> list[RunRow]:
        rows = self.query(f"{GET_RUNS} {where} ORDER BY r.number DESC", *values)
        with self.explained_errors():
            found = [run for run in map(_run_row, rows) if self.shows(run.project)]
        for row in found:
            # What a rubric calls things is known only from the manifests of its runs.
            restore(row.protocol, row.manifest)
        return found

    def run(self, name: str) -> RunRow:
        """A run by its id, a unique beginning of it, its number, or `last`."""
        if exact := self._runs("WHERE r.id = ?", (name,)):
            return exact[0]
        runs = self.runs()
        if name == "last" and runs:
            return runs[0]
        found = [run for run in runs if str(run.number) == name]
        # `2` is a number and never the beginning of `20260302-…`: a run that is gone must not mean another one.
        is_number = name.isdecimal() and len(name) < SHORTEST_DATE
        found = found or [run for run in runs if name and not is_number and run.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownRun(f"{name!r} may mean {', '.join(run.id for run in found[:5])}; give more of the id")
        known = ", ".join(run.id for run in runs[:5]) or "none yet"
        raise UnknownRun(f"there is no run {name!r} in {self.name}; newest are: {known}")

    def delete_run(self, id: str) -> None:
        if self.visible is not None:
            self.run(id)
        with self.alone_with(id):
            self.write("DELETE FROM runs WHERE id = ?", id)

    @abstractmethod
    def alone_with(self, run: str) -> AbstractContextManager[None]:
        """Lock a run against other processes: two that continue it at once would pay twice for the same asks. However
        this process ends, the run is free again."""

    @abstractmethod
    def in_use(self, run: str) -> bool:
        """Whether a process is judging the run. A run in state `running` without one was killed."""

    # --- the words of prompts ---

    def keep_wordings(self, wordings: Iterable[Wording]) -> None:
        """Keep what prompts said when a run began; what is known stays as it is."""
        self.change((insert_new("wordings", "sha256 prompt version text"), wordings))

    def wordings(self, prompt: str) -> list[Wording]:
        """Every wording of a prompt that a run of this store was judged by, the newest version first."""
        sql = "SELECT sha256, prompt, version, text FROM wordings WHERE prompt = ? ORDER BY version DESC, sha256"
        return [Wording._make(row) for row in self.query(sql, prompt)]


def identity_of(row: RunRow) -> RunIdentity:
    return RunIdentity(**{name: getattr(row, name) for name in IDENTITY.split()})


def run_identity(given: Mapping[str, Any]) -> RunIdentity:
    """What a user says of a run, checked."""
    try:
        return RunIdentity.model_validate(given)
    except ValidationError as error:
        raise ConfigError(f"the run's {invalid_field(error)}") from None


def _run_row(row: tuple[Any, ...]) -> RunRow:
    id, number, protocol, judge, state, started, finished, manifest, *identity = row
    found = RunRow(id, number, protocol, judge, state, started, finished, json.loads(manifest))
    if identity[0] is None:
        return found
    name, notes, tags, meta, project, baseline = identity
    return found._replace(
        name=name,
        notes=notes,
        tags=tuple(json.loads(tags)),
        meta=json.loads(meta),
        project=project,
        baseline=bool(baseline),
    )


def is_run_name(name: str) -> bool:
    """Whether this can only mean a run: ids, numbers and `last` hold no dots and no slashes, file names do."""
    return not set(name) & set("./\\")
