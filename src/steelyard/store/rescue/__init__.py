"""Copies what can still be read of a damaged store into a new one (`steelyard runs rescue`).

SQLite reads each table from both ends until it meets the damage. Where it meets any, the pages of the file are then
read one by one, without SQLite: a row is found even if the way to it is gone. The damaged file is not changed.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from steelyard.errors import ConfigError, StoreError
from steelyard.records import Usage, Verdict
from steelyard.store import LABEL_COLUMNS, SAMPLE, RunIdentity, Store, label_of
from steelyard.store.database import placeholders
from steelyard.store.rescue.pages import PageCell, Pages

TOGETHER = 500
# The column of labels that older stores lack, and what it holds there.
ADJUDICATED, NOT_ADJUDICATED = LABEL_COLUMNS.index("adjudicated"), 0
STATES = ("running", "stopped", "complete")
WHY = "rescued from a damaged store"
Row = Sequence[Any]


class Rescue(NamedTuple):
    """Counts of what was copied and what is known to be lost: replies that a run used, rows of runs that are gone."""

    runs: int
    verdicts: int
    replies: int
    labels: int
    lost_replies: int
    orphans: int


class RescuedTable(NamedTuple):
    """A table worth rescuing: its key orders it, `is_sound` tells its rows from those of others and from rubbish."""

    name: str
    columns: int
    key: str
    is_sound: Callable[[Row], bool]
    has_rowid: bool = False
    owner: str = ""
    """The table whose rows these belong to, and the column with its id."""
    owner_at: int = 0
    later: int | None = None
    """A column that older stores lack."""

    def of_today(self, row: Row) -> Row:
        """The row as it would be written now."""
        if self.later is None or len(row) != self.columns - 1:
            return row
        return [*row[: self.later], NOT_ADJUDICATED, *row[self.later :]]


def _texts(row: Row, *places: int) -> bool:
    return all(isinstance(row[place], str) for place in places)


def _is_hash(value: Any, *lengths: int) -> bool:
    return isinstance(value, str) and len(value) in lengths and not set(value) - set("0123456789abcdef")


def _is_object(text: Any) -> bool:
    return isinstance(text, str) and isinstance(from_json(text), dict)


def _is_run(row: Row) -> bool:
    number, state, finished, manifest = row[1], row[4], row[6], row[7]
    is_typed = _texts(row, 0, 2, 3, 5) and type(number) is int and isinstance(finished, str | None)
    return is_typed and state in STATES and _is_object(manifest)


def _is_reply(row: Row) -> bool:
    if not (_is_hash(row[0], 40) and _texts(row, 1, 2, 3, 5) and isinstance(row[7], str | None)):
        return False
    Usage.model_validate_json(row[6])
    return _is_object(row[4])


def _is_sample(row: Row) -> bool:
    if not (_texts(row, 0, 2, 3, 4, 5) and type(row[1]) is int and row[1] >= 0):
        return False
    SAMPLE.validate_json(row[3])
    return bool(Verdict.model_validate_json(row[5]).status == row[4])


def _is_identity(row: Row) -> bool:
    if not (_texts(row, 0, 1, 2, 3, 4, 5) and row[6] in (0, 1)):
        return False
    name, notes, tags, meta, project, _ = row[1:]
    documents = {"tags": from_json(tags), "meta": from_json(meta)}
    return bool(RunIdentity.model_validate({"name": name, "notes": notes, "project": project, **documents}))


def _is_use(row: Row) -> bool:
    return _texts(row, 0, 1) and type(row[2]) is int and _is_hash(row[3], 40)


def _is_unusable(row: Row) -> bool:
    return _texts(row, 0) and _is_hash(row[1], 40) and _is_object(row[2])


def _is_bad_row(row: Row) -> bool:
    is_typed = isinstance(row[1], str | None) and isinstance(row[2], int | None) and isinstance(row[3], str | None)
    return is_typed and _texts(row, 0, 4)


def _is_label(row: Row) -> bool:
    return _texts(row, 0) and label_of(row) is not None


def _is_wording(row: Row) -> bool:
    return _is_hash(row[0], 64) and _texts(row, 1, 3) and type(row[2]) is int


def _is_set(row: Row) -> bool:
    return type(row[0]) is int and _texts(row, 1, 2) and bool(row[2])


def _is_set_version(row: Row) -> bool:
    is_typed = all(type(row[place]) is int for place in (0, 1, 5))
    return is_typed and row[1] >= 1 and _texts(row, 2, 3, 4)


def _is_set_sample(row: Row) -> bool:
    is_typed = all(type(row[place]) is int for place in (0, 1, 5)) and (row[6] is None or type(row[6]) is int)
    return is_typed and _texts(row, 2, 3, 4) and bool(SAMPLE.validate_json(row[3]).id == row[2])


def _is_queue(row: Row) -> bool:
    if not (type(row[0]) is int and _texts(row, 1, 2, 3, 4, 6, 7) and isinstance(row[8], str | None)):
        return False
    people = from_json(row[3])
    return row[5] in (0, 1) and isinstance(people, list) and all(isinstance(name, str) for name in people)


def _is_queue_item(row: Row) -> bool:
    is_typed = all(type(row[place]) is int for place in (0, 1, 4, 5, 7)) and isinstance(row[6], int | float)
    return is_typed and _texts(row, 2, 3)


def _is_claim(row: Row) -> bool:
    return type(row[0]) is int and _texts(row, 1, 2, 3)


def _is_card(row: Row) -> bool:
    return type(row[0]) is int and _texts(row, 1, 2, 3) and _is_object(row[4])


def _is_experiment(row: Row) -> bool:
    return type(row[0]) is int and _texts(row, 1, 2, 3, 4, 5) and _is_object(row[3])


# Owners first: others refer to them. What else is known of runs is worked out from these; accounts are made anew.
TABLES = (
    RescuedTable("runs", 8, "id", _is_run, has_rowid=True),
    RescuedTable("replies", 8, "key", _is_reply, has_rowid=True),
    RescuedTable("samples", 6, "run, seq", _is_sample, owner="runs"),
    RescuedTable("identities", 7, "run", _is_identity, owner="runs"),
    RescuedTable("bad_rows", 5, "rowid", _is_bad_row, has_rowid=True, owner="runs"),
    RescuedTable("used", 4, "run, ask, repeat", _is_use, owner="runs"),
    RescuedTable("unusable", 3, "run, key", _is_unusable, owner="runs"),
    RescuedTable(
        "labels", len(LABEL_COLUMNS), "run, sample, kind, turn, item, annotator, policy", _is_label, later=ADJUDICATED
    ),
    RescuedTable("wordings", 4, "sha256", _is_wording),
    RescuedTable("sample_sets", 3, "id", _is_set),
    RescuedTable("set_versions", 6, "sample_set, version", _is_set_version, owner="sample_sets"),
    RescuedTable("set_samples", 7, "sample_set, place", _is_set_sample, owner="sample_sets"),
    RescuedTable("queues", 9, "id", _is_queue, owner="runs", owner_at=1),
    RescuedTable("queue_items", 8, "queue, place", _is_queue_item, owner="queues"),
    RescuedTable("queue_claims", 4, "queue, sample, person", _is_claim, owner="queues"),
    RescuedTable("judge_cards", 5, "id", _is_card),
    RescuedTable("experiments", 6, "id", _is_experiment),
)


def rescue(path: Path, out: Path) -> Rescue:
    """Copy every row that can be read from the store at `path` into a new one at `out`."""
    if not path.is_file():
        raise StoreError(f"there is no store {path}")
    if out.exists():
        raise ConfigError(f"{out} exists already; name a new file with -o")
    with tempfile.TemporaryDirectory(prefix="steelyard-rescue-") as folder, Store.open(out) as store:
        copy = Path(folder) / "store.db"
        for end in ("", "-wal"):
            if (part := path.with_name(path.name + end)).is_file():
                shutil.copyfile(part, copy.with_name(copy.name + end))
        # Before SQLite opens it: it may throw away a log that does not fit a damaged file.
        pages = Pages.of(copy)
        orphans = _Orphans()
        damaged = [table for table in TABLES if not _copy(store, table, _read_with_sqlite(copy, table), orphans)]
        for table in damaged:
            _copy(store, table, (cell.values for cell in pages.cells() if _may_be_of(table, cell)), orphans)
        return _settled(store, orphans)


class _Orphans:
    """Rows whose run or set is gone; counted once, however often they are found."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, Any, Any]] = set()


def _may_be_of(table: RescuedTable, cell: PageCell) -> bool:
    return len(table.of_today(cell.values)) == table.columns and cell.has_rowid == table.has_rowid


def _read_with_sqlite(copy: Path, table: RescuedTable) -> Iterator[Row]:
    """All rows if the table is sound, else those before and those after the damage, and then the error."""
    with closing(sqlite3.connect(copy)) as db:
        db.text_factory = bytes
        sql = f"SELECT * FROM {table.name} ORDER BY {table.key}"
        try:
            yield from map(_decoded, db.execute(sql))
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                yield from map(_decoded, db.execute(f"{sql.replace(', ', ' DESC, ')} DESC"))
            raise


def _decoded(row: Row) -> Row:
    """The row with its texts; empty, which no table takes for sound, where one is none."""
    try:
        return [part.decode() if isinstance(part, bytes) else part for part in row]
    except UnicodeDecodeError:
        return ()


def _copy(store: Store, table: RescuedTable, rows: Iterable[Row], orphans: _Orphans) -> bool:
    """Keep the rows that are sound; says whether all were, as far as one can tell."""
    is_whole, waiting = True, []
    reading = iter(rows)
    while True:
        try:
            row = table.of_today(next(reading))
        except StopIteration:
            break
        except sqlite3.Error:
            is_whole = False
            break
        if _is_sound(table, row):
            waiting.append(row)
            if len(waiting) >= TOGETHER:
                _insert(store, table, waiting, orphans)
                waiting = []
        else:
            is_whole = False
    _insert(store, table, waiting, orphans)
    return is_whole


def _is_sound(table: RescuedTable, row: Row) -> bool:
    try:
        return len(row) == table.columns and table.is_sound(row)
    except (ValueError, ValidationError, RecursionError):
        return False


def _insert(store: Store, table: RescuedTable, rows: Sequence[Row], orphans: _Orphans) -> None:
    if table.owner:
        known = {id for (id,) in store.query(f"SELECT id FROM {table.owner}")}
        orphans.keys |= {(table.name, row[0], row[1]) for row in rows if row[table.owner_at] not in known}
        rows = [row for row in rows if row[table.owner_at] in known]
    if table.name == "bad_rows":
        # They have no key by which a second copy would be noticed.
        there = set(store.query("SELECT * FROM bad_rows"))
        rows = [row for row in rows if tuple(row) not in there]
    if rows:
        with store.all_or_nothing():
            store.change((f"INSERT OR IGNORE INTO {table.name} VALUES ({placeholders(rows[0])})", rows))


def _settled(store: Store, orphans: _Orphans) -> Rescue:
    """A run is only called complete where every row of its input is here; the others can be resumed."""
    lost = "SELECT count(*) FROM used WHERE key NOT IN (SELECT key FROM replies)"
    (lost_replies,) = next(store.query(lost))
    store.write("DELETE FROM used WHERE key NOT IN (SELECT key FROM replies)")
    for run in store.runs():
        rows = run.manifest.get("rows")
        if run.state != "complete" or rows is None or store.unaccounted(run.id, rows):
            manifest = {**run.manifest, "stopped": WHY}
            store.update_run(run.id, state="stopped", finished=run.finished, manifest=manifest)
    counts = [next(store.query(f"SELECT count(*) FROM {name}"))[0] for name in ("runs", "samples", "replies", "labels")]
    runs, verdicts, replies, labels = counts
    return Rescue(runs, verdicts, replies, labels, lost_replies, len(orphans.keys))
