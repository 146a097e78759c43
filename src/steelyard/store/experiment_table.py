"""Experiments that were composed in the viewer: what is judged how by whom. Their runs are runs like any other."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.errors import UnknownExperiment
from steelyard.store.account_table import check_name
from steelyard.store.database import insert
from steelyard.store.run_table import RunTable

COLUMNS = "id project name design created author"
ADD_EXPERIMENT = insert("experiments", COLUMNS)
SELECT_EXPERIMENT = f"SELECT {', '.join(COLUMNS.split())} FROM experiments"


class StoredExperiment(NamedTuple):
    """An experiment of a project; `design` is JSON."""

    id: int
    project: str
    name: str
    design: str
    created: str
    author: str


class ExperimentsTable(RunTable):
    """Experiments belong to projects, as runs do."""

    def add_experiment(
        self, project: str, name: str, design: str, *, created: str, author: str = ""
    ) -> StoredExperiment:
        check_name(name, "experiment")
        self._check_project(project)
        with self.all_or_nothing("experiments"):
            (last,) = next(self.query("SELECT coalesce(max(id), 0) FROM experiments"))
            made = StoredExperiment(last + 1, project, name, design, created, author)
            self.write(ADD_EXPERIMENT, *made)
        return made

    def experiments(self) -> list[StoredExperiment]:
        """Newest first."""
        found = map(StoredExperiment._make, self.query(f"{SELECT_EXPERIMENT} ORDER BY id DESC"))
        return [one for one in found if self.shows(one.project)]

    def experiment(self, id: int) -> StoredExperiment:
        # Larger numbers are none that SQLite can be asked for.
        rows = self.query(f"{SELECT_EXPERIMENT} WHERE id = ?", id) if 0 < id < 2**31 else iter(())
        found = next(map(StoredExperiment._make, rows), None)
        # One of another project is not there at all.
        if found is None or not self.shows(found.project):
            raise UnknownExperiment(f"there is no experiment with the number {id}")
        return found

    def delete_experiment(self, id: int) -> StoredExperiment:
        """Its runs stay."""
        found = self.experiment(id)
        self.write("DELETE FROM experiments WHERE id = ?", found.id)
        return found
