"""The table of human labels. They outlive the run they were made on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from steelyard.errors import UnknownRun
from steelyard.store.database import insert_new, placeholders, upsert
from steelyard.store.labels import HumanLabel
from steelyard.store.run_table import RunTable

LABEL_KEY = "run sample kind turn item annotator policy adjudicated"
LABEL_COLUMNS = tuple(f"{LABEL_KEY} label time about text weight note".split())
ADD_LABEL = upsert("labels", " ".join(LABEL_COLUMNS), LABEL_KEY)
TAKE_LABEL = insert_new("labels", " ".join(LABEL_COLUMNS))
# Two NULLs in a key are different ones; no turn or item has this number.
NOTHING = -1
FEW = 500


ItemKey = tuple[str, str, int | None, int | None]


class LabelTotals(NamedTuple):
    """How many labels of a run one person gave under one version of the policy."""

    run: str
    annotator: str
    policy: str
    n: int


class LabelTable(RunTable):
    """Labels by people."""

    def add_labels(self, labels: Iterable[HumanLabel]) -> int:
        """Keep labels, all or none; returns how many. What a person labels again replaces what that person said."""
        # In one order: two who import at once never wait for each other crosswise.
        rows = sorted(_label_row(self._on_visible(label)) for label in labels)
        self.change((ADD_LABEL, rows))
        return len(rows)

    def take_label(self, label: HumanLabel) -> None:
        """Keep a label that was made elsewhere, unless that person has labelled the same here."""
        self.write(TAKE_LABEL, *_label_row(self._on_visible(label)))

    def remove_label(self, label: HumanLabel) -> bool:
        """Take back what a person said about an item under one policy; says whether there was anything."""
        values = dict(zip(LABEL_COLUMNS, _label_row(self._on_visible(label)), strict=True))
        columns = LABEL_KEY.split()
        where = " AND ".join(f"{column} = ?" for column in columns)
        return self.write(f"DELETE FROM labels WHERE {where}", *(values[column] for column in columns)) > 0

    def labels(self, run: str | None = None, sample: str | None = None) -> Iterator[HumanLabel]:
        """The labels made on one run, or on one sample of it, or all, in the order of samples and items."""
        sql = f"SELECT {', '.join(LABEL_COLUMNS)} FROM labels"
        wanted = {name: value for name, value in (("run", run), ("sample", sample)) if value is not None}
        where = " WHERE " + " AND ".join(f"{name} = ?" for name in wanted) if wanted else ""
        order = "ORDER BY sample, kind, turn, item, annotator, run"
        shown = self._shown_runs()
        with self.explained_errors():
            for found in map(label_of, self.stream(f"{sql}{where} {order}", *wanted.values())):
                if shown is None or found.run in shown:
                    yield found

    def label_counts(self, run: str | None = None) -> list[LabelTotals]:
        """Who gave how many labels on one run or on each, under which policy."""
        where, values = (" WHERE run = ?", (run,)) if run is not None else ("", ())
        sql = f"SELECT run, annotator, policy, count(*) FROM labels{where} GROUP BY run, annotator, policy"
        shown = self._shown_runs()
        found = sorted(map(LabelTotals._make, self.query(sql, *values)))
        return [one for one in found if shown is None or one.run in shown]

    def label_changes(self, run: str) -> int:
        """How often labels of a run were given, changed or taken back: as long as this stays the same, so do they."""
        return next((int(n) for (n,) in self.query("SELECT n FROM label_changes WHERE run = ?", run)), 0)

    def labelled_by(self, run: str, annotator: str, policy: str, samples: Sequence[str]) -> set[ItemKey]:
        """What one person has labelled of these samples of a run under one policy."""
        sql = (
            "SELECT sample, kind, turn, item FROM labels "
            "WHERE run = ? AND annotator = ? AND policy = ? AND adjudicated = 0"
        )
        given = run, annotator, policy
        if len(samples) > FEW:  # rather all that this person labelled than each of them
            found = self.query(sql, *given)
        else:
            found = self.query(f"{sql} AND sample IN ({placeholders(samples)})", *given, *samples)
        return {(sample, kind, _or_none(turn), _or_none(item)) for sample, kind, turn, item in found}

    def _shown_runs(self) -> frozenset[str] | None:
        return None if self.visible is None else frozenset(row.id for row in self.runs())

    def _on_visible(self, label: HumanLabel) -> HumanLabel:
        """Labels of runs that are gone, or of another project, are not for whoever sees only some projects."""
        if self.visible is not None and not self._runs("WHERE r.id = ?", (label.run,)):
            raise UnknownRun(f"there is no run {label.run!r}")
        return label


def _or_none(number: int) -> int | None:
    return None if number == NOTHING else number


def _label_row(label: HumanLabel) -> tuple[Any, ...]:
    values = (getattr(label, column) for column in LABEL_COLUMNS)
    return tuple(NOTHING if value is None else int(value) if isinstance(value, bool) else value for value in values)


def label_of(row: Sequence[Any]) -> HumanLabel:
    named = dict(zip(LABEL_COLUMNS, row, strict=True))
    return HumanLabel(**{name: None if value == NOTHING else value for name, value in named.items()})
