"""Runs, samples, replies, verdicts and labels by people in one SQLite file.

Replies are journalled before they are used, under a key that says exactly what was asked of whom; a run
that was killed finds them there. WAL mode: readers never wait, and what is committed survives kill -9.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import TypeAdapter, ValidationError

from steelyard.errors import InputError, RunInUse, StoreError, UnknownRun
from steelyard.protocols import restore
from steelyard.records import Sample, Unjudged, Usage, Verdict
from steelyard.store.labels import HumanLabel
from steelyard.store.schema import DAMAGE, check_ours, damaged, has_traces, migrate

ADD_VERDICT = "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?, ?)"
ADD_REPLY = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
GET_REPLY = "SELECT ask, task, judge, reply, raw, usage, run FROM replies"
USE_REPLY = "INSERT OR REPLACE INTO used VALUES (?, ?, ?, ?)"
LABEL_COLUMNS = (
    "run", "sample", "kind", "turn", "item", "annotator", "policy", "label", "time", "about", "text", "weight", "note",
)  # fmt: skip
ADD_LABEL = f"INSERT OR REPLACE INTO labels VALUES ({', '.join('?' * len(LABEL_COLUMNS))})"
USAGE_PARTS = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
# SQLite takes two NULLs in a key for different ones; no turn or item has this number.
NOTHING = -1
SAMPLE: TypeAdapter[Sample] = TypeAdapter(Sample)
BUSY_SECONDS = 15
# Ids begin with the day as eight digits; fewer of them are the number of a run.
SHORTEST_DATE = 8


class RunRow(NamedTuple):
    """One run as the list shows it. `state` is running, stopped, complete or failed."""

    id: str
    number: int
    protocol: str
    judge: str
    state: str
    started: str
    finished: str | None
    manifest: dict[str, Any]


class StoredReply(NamedTuple):
    """A journalled reply: the judge's data as JSON, its literal words, what it cost, and which run paid."""

    ask: str
    task: str
    judge: str
    reply: str
    raw: str
    usage: Usage
    run: str | None = None


class Wording(NamedTuple):
    """What a prompt said in one of its versions."""

    sha256: str
    prompt: str
    version: int
    text: str


class Store:
    """An open store. Every method either finishes or raises `StoreError` and leaves the file as it was."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db, self.path = connection, path

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open or create the store and bring it to the current schema."""
        if not create and not path.exists():
            raise StoreError(f"there is no store {path} yet; judge something first, or name another store")
        with _store_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                # Before anything is changed: somebody else's file stays as it is.
                check_ours(db, path)
                if db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    db.execute("PRAGMA journal_mode = WAL")
                # Without a sync per commit a killed process still loses nothing; only a power cut could.
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("PRAGMA foreign_keys = ON")
                migrate(db)
            except BaseException:
                db.close()
                raise
        return cls(db, path)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- runs ---

    def create_run(self, id: str, protocol: str, judge: str, started: str, manifest: Mapping[str, Any]) -> RunRow:
        self._write(
            "INSERT INTO runs SELECT ?, coalesce(max(number), 0) + 1, ?, ?, 'running', ?, NULL, ? FROM runs",
            (id, protocol, judge, started, _dump(manifest)),
        )
        return self.run(id)

    def update_run(self, id: str, *, state: str, finished: str | None, manifest: Mapping[str, Any]) -> None:
        self._write(
            "UPDATE runs SET state = ?, finished = ?, manifest = ? WHERE id = ?",
            (state, finished, _dump(manifest), id),
        )

    def runs(self) -> list[RunRow]:
        """All runs, newest first."""
        rows = self._read("SELECT * FROM runs ORDER BY number DESC")
        with _store_errors(self.path):
            found = [RunRow._make((*columns, json.loads(manifest))) for *columns, manifest in rows]
        for row in found:
            # What a rubric calls things is known only from the manifests of its runs.
            restore(row.protocol, row.manifest)
        return found

    def run(self, name: str) -> RunRow:
        """A run by its id, a unique beginning of it, its number, or `last`."""
        runs = self.runs()
        if name == "last" and runs:
            return runs[0]
        found = [run for run in runs if run.id == name or str(run.number) == name]
        # `2` is a number and never the beginning of `20260302-…`: a run that is gone must not mean another one.
        is_number = name.isdecimal() and len(name) < SHORTEST_DATE
        found = found or [run for run in runs if name and not is_number and run.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownRun(f"{name!r} may mean {', '.join(run.id for run in found[:5])}; give more of the id")
        known = ", ".join(run.id for run in runs[:5]) or "none yet"
        raise UnknownRun(f"there is no run {name!r} in {self.path}; newest are: {known}")

    def delete_run(self, id: str) -> None:
        with self.alone_with(id):
            self._write("DELETE FROM runs WHERE id = ?", (id,))

    @contextmanager
    def alone_with(self, run: str) -> Iterator[None]:
        """Keep other processes off a run: two that go on with it at once would pay twice for the same asks.

        The lock is SQLite's own, on an empty file beside the store, so that it ends with the process, however that
        ends, on every system.
        """
        lock = self._lock_of(run)
        with closing(sqlite3.connect(lock, timeout=0, isolation_level=None, check_same_thread=False)) as held:
            try:
                held.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise RunInUse(f"run {run} is in the hands of another process; wait for that one or stop it") from error
            try:
                yield
            finally:
                with suppress(OSError):  # some systems do not delete what is open; an empty file does no harm
                    lock.unlink()

    def in_use(self, run: str) -> bool:
        """Whether some process is at work on a run. One that says so and is not was killed."""
        lock = self._lock_of(run)
        if not lock.exists():
            return False
        with closing(sqlite3.connect(lock, timeout=0)) as held:
            try:
                held.execute("SELECT * FROM sqlite_master").fetchall()
            except sqlite3.OperationalError:
                return True
        return False

    def _lock_of(self, run: str) -> Path:
        return self.path.with_name(f"{self.path.name}-{run}.lock")

    # --- samples and verdicts ---

    def add_verdict(self, run: str, seq: int, sample: Sample, verdict: Verdict) -> None:
        self._write(ADD_VERDICT, _verdict_row(run, seq, sample, verdict))

    def add_verdicts(self, run: str, judged: Iterable[tuple[int, Sample, Verdict]]) -> None:
        """Several at once, all or none."""
        with self.all_or_nothing():
            self._db.executemany(ADD_VERDICT, [_verdict_row(run, *one) for one in judged])

    def add_bad_row(self, run: str, bad: InputError) -> None:
        self._write("INSERT INTO bad_rows VALUES (?, ?, ?, ?, ?)", (run, bad.file, bad.line, bad.field, bad.problem))

    def clear_bad_rows(self, run: str) -> None:
        self._write("DELETE FROM bad_rows WHERE run = ?", (run,))

    def bad_rows(self, run: str) -> list[InputError]:
        rows = self._read("SELECT file, line, field, problem FROM bad_rows WHERE run = ?", run)
        return [InputError(problem, file=file, line=line, field=field) for file, line, field, problem in rows]

    def verdicts(self, run: str) -> Iterator[tuple[Sample, Verdict]]:
        """The judged samples of a run in the order of the input, streamed."""
        rows = self._read("SELECT sample, verdict FROM samples WHERE run = ? ORDER BY seq", run)
        with _store_errors(self.path):
            for sample, verdict in rows:
                yield SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)

    def verdicts_at(self, run: str, places: Sequence[int]) -> Iterator[tuple[int, Sample, Verdict]]:
        """The judged samples at these places of the input, streamed; those that are not there are left out."""
        sql = "SELECT seq, sample, verdict FROM samples WHERE run = ? AND seq BETWEEN ? AND ? ORDER BY seq"
        wanted = sorted(places)
        start = 0
        while start < len(wanted):
            # Neighbours are read together: one statement per place takes ten times as long.
            end = start
            while end + 1 < len(wanted) and wanted[end + 1] == wanted[end] + 1:
                end += 1
            with _store_errors(self.path):
                for seq, sample, verdict in self._read(sql, run, wanted[start], wanted[end]):
                    yield seq, SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)
            start = end + 1

    def lines(self, run: str) -> Iterator[str]:
        """The result lines of a run in the order of the input, as text: SQLite takes the notes out, nobody parses."""
        rows = self._read("SELECT json_remove(verdict, '$.notes') FROM samples WHERE run = ? ORDER BY seq", run)
        return (line for (line,) in rows)

    def judged(self, run: str) -> dict[str, int]:
        """How many samples of a run have which status."""
        return dict(self._read("SELECT status, count(*) FROM samples WHERE run = ? GROUP BY status", run))

    def unaccounted(self, run: str, rows: int) -> int:
        """How many of so many rows of the input have neither a verdict nor an error in the store."""
        sql = (
            "SELECT (SELECT count(*) FROM samples WHERE run = ? AND status IS NOT NULL AND seq < ?)"
            " + (SELECT count(*) FROM bad_rows WHERE run = ?)"
        )
        (n,) = next(self._read(sql, run, rows, run))
        return max(0, rows - int(n))

    def kept(self, run: str) -> tuple[int, int]:
        """How many verdicts of a run are in the store, and how many replies it can go on with."""
        sql = "SELECT (SELECT count(*) FROM samples WHERE run = ?), (SELECT count(*) FROM used WHERE run = ?)"
        verdicts, replies = next(self._read(sql, run, run))
        return verdicts, replies

    def count_flagged(self, run: str, flag: str) -> int:
        """How many samples of a run carry a flag."""
        sql = "SELECT count(*) FROM samples, json_each(verdict, '$.flags') AS flag WHERE run = ? AND flag.value = ?"
        (n,) = next(self._read(sql, run, flag))
        return int(n)

    def finished(self, run: str, *, retry: bool = False) -> bytearray:
        """One byte per place in the input: 1 where nothing is left to judge; with `retry`, only fully judged ones.

        Bytes rather than a set: a million samples take one megabyte.
        """
        wanted = "= 'judged'" if retry else "IS NOT NULL"
        (last,) = next(self._read("SELECT coalesce(max(seq), -1) FROM samples WHERE run = ?", run))
        done = bytearray(last + 1)
        for (seq,) in self._read(f"SELECT seq FROM samples WHERE run = ? AND status {wanted}", run):
            done[seq] = 1
        return done

    def verdict(self, run: str, sample_id: str) -> tuple[Sample, Verdict] | None:
        # Left alone, SQLite prefers to walk through the whole run.
        sql = "SELECT sample, verdict FROM samples INDEXED BY samples_by_id WHERE run = ? AND id = ?"
        with _store_errors(self.path):
            for sample, verdict in self._read(sql, run, sample_id):
                return SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)
        return None

    # --- the journal of replies ---

    def reply(self, key: str) -> StoredReply | None:
        with _store_errors(self.path):
            row = self._db.execute(f"{GET_REPLY} WHERE key = ?", (key,)).fetchone()
            return _stored_reply(row) if row else None

    def replies_to(self, ask: str) -> list[StoredReply]:
        """All replies to one ask, whoever judged."""
        return [_stored_reply(row) for row in self._read(f"{GET_REPLY} WHERE ask = ?", ask)]

    def journal(self, replies: Sequence[tuple[str, StoredReply]], place: int = 0) -> None:
        """Keep replies under their keys, and that their runs used them: all or none. A panel's voices have each a place
        of their own; the column is called `repeat`."""
        used = [(stored.run, stored.ask, place, key) for key, stored in replies if stored.run is not None]
        with self.all_or_nothing():
            self._db.executemany(ADD_REPLY, [_reply_row(key, stored) for key, stored in replies])
            self._db.executemany(USE_REPLY, used)

    def add_reply(self, key: str, stored: StoredReply) -> None:
        self._write(ADD_REPLY, _reply_row(key, stored))

    def use_reply(self, run: str, ask: str, key: str, place: int = 0) -> None:
        """Note which reply a run was given, whoever paid for it: rescoring takes exactly that one."""
        self._write(USE_REPLY, (run, ask, place, key))

    def used_reply(self, run: str, ask: str, place: int = 0) -> StoredReply | None:
        for (key,) in self._read("SELECT key FROM used WHERE run = ? AND ask = ? AND repeat = ?", run, ask, place):
            return self.reply(key)
        return None

    def used_replies(self, run: str) -> Iterator[tuple[str, int, StoredReply]]:
        """All replies that a run used, with their keys and the places of the voices they were for."""
        for key, place in self._read("SELECT key, repeat FROM used WHERE run = ?", run):
            if stored := self.reply(key):
                yield key, place, stored

    def used_by_place(self, run: str) -> dict[int, dict[str, tuple[int, Usage]]]:
        """How many replies a run used, by the place of the voice and by task, and what they cost whoever paid."""
        sums = ", ".join(f"sum(json_extract(usage, '$.{part}'))" for part in USAGE_PARTS)
        sql = (
            f"SELECT used.repeat, replies.task, count(*), {sums} FROM used JOIN replies ON replies.key = used.key "
            "WHERE used.run = ? GROUP BY used.repeat, replies.task"
        )
        found: dict[int, dict[str, tuple[int, Usage]]] = {}
        for place, task, count, *usage in self._read(sql, run):
            found.setdefault(place, {})[task] = count, Usage(**dict(zip(USAGE_PARTS, usage, strict=True)))
        return found

    def spent_by_judge(self, run: str) -> dict[str, Usage]:
        """What a run paid whom: its own replies, by the judge that gave them."""
        sums = ", ".join(f"sum(json_extract(usage, '$.{part}'))" for part in USAGE_PARTS)
        rows = self._read(f"SELECT judge, {sums} FROM replies WHERE run = ? GROUP BY judge ORDER BY judge", run)
        return {judge: Usage(**dict(zip(USAGE_PARTS, found, strict=True))) for judge, *found in rows}

    def add_unusable(self, run: str, key: str, unjudged: Unjudged) -> None:
        self._write("INSERT OR REPLACE INTO unusable VALUES (?, ?, ?)", (run, key, unjudged.model_dump_json()))

    def unusable(self, run: str, key: str) -> Unjudged | None:
        for (unjudged,) in self._read("SELECT unjudged FROM unusable WHERE run = ? AND key = ?", run, key):
            return Unjudged.model_validate_json(unjudged)
        return None

    # --- the words of prompts ---

    def keep_wordings(self, wordings: Iterable[Wording]) -> None:
        """Keep what prompts said when a run began; what is known stays as it is."""
        self.change("INSERT OR IGNORE INTO wordings VALUES (?, ?, ?, ?)", wordings)

    def wordings(self, prompt: str) -> list[Wording]:
        """Every wording of a prompt that a run of this store was judged by, the newest version first."""
        sql = "SELECT sha256, prompt, version, text FROM wordings WHERE prompt = ? ORDER BY version DESC, sha256"
        return [Wording._make(row) for row in self._read(sql, prompt)]

    # --- labels by people ---

    def add_labels(self, labels: Iterable[HumanLabel]) -> int:
        """Keep labels, all or none; returns how many. What a person labels again replaces what that person said."""
        rows = [_label_row(label) for label in labels]
        with self.all_or_nothing():
            self._db.executemany(ADD_LABEL, rows)
        return len(rows)

    def take_label(self, label: HumanLabel) -> None:
        """Keep a label that was made elsewhere, unless that person has labelled the same here."""
        self._write(ADD_LABEL.replace("REPLACE", "IGNORE"), _label_row(label))

    def remove_label(self, label: HumanLabel) -> bool:
        """Take back what a person said about an item under one policy; says whether there was anything."""
        columns = ("run", "sample", "kind", "turn", "item", "annotator", "policy")
        where = " AND ".join(f"{column} = ?" for column in columns)
        with _store_errors(self.path):
            values = dict(zip(LABEL_COLUMNS, _label_row(label), strict=True))
            deleted = self._db.execute(f"DELETE FROM labels WHERE {where}", [values[column] for column in columns])
            return deleted.rowcount > 0

    def labels(self, run: str | None = None, sample: str | None = None) -> Iterator[HumanLabel]:
        """The labels made on one run, or on one sample of it, or all, in the order of samples and items."""
        sql = f"SELECT {', '.join(LABEL_COLUMNS)} FROM labels"
        wanted = {name: value for name, value in (("run", run), ("sample", sample)) if value is not None}
        where = " WHERE " + " AND ".join(f"{name} = ?" for name in wanted) if wanted else ""
        given = tuple(wanted.values())
        with _store_errors(self.path):
            rows = self._read(f"{sql}{where} ORDER BY sample, kind, turn, item, annotator, run", *given)
            yield from map(label_of, rows)

    # --- helpers ---

    def query(self, sql: str, *values: Any) -> Iterator[Any]:
        """Rows of any statement, for modules that look at a store in ways of their own (listing.py)."""
        return self._read(sql, *values)

    def change(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """One statement for each of these rows; inside `all_or_nothing` if they belong together."""
        with _store_errors(self.path):
            self._db.executemany(sql, rows)

    def _read(self, sql: str, *values: Any) -> Iterator[Any]:
        with _store_errors(self.path):
            # Not `yield from`: it would close the cursor of a reader that is dropped after the store was closed.
            for row in self._db.execute(sql, values):  # noqa: UP028
                yield row

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        """One statement, committed at once unless it is part of something larger."""
        with _store_errors(self.path):
            self._db.execute(sql, values)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Everything written inside is kept together or not at all."""
        with _store_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


def _verdict_row(run: str, seq: int, sample: Sample, verdict: Verdict) -> tuple[Any, ...]:
    return run, seq, sample.id, sample.model_dump_json(), verdict.status, verdict.model_dump_json()


def _reply_row(key: str, stored: StoredReply) -> tuple[Any, ...]:
    return key, *stored[:5], stored.usage.model_dump_json(), stored.run


def _label_row(label: HumanLabel) -> tuple[Any, ...]:
    values = (getattr(label, column) for column in LABEL_COLUMNS)
    return tuple(NOTHING if value is None else value for value in values)


def label_of(row: Sequence[Any]) -> HumanLabel:
    named = dict(zip(LABEL_COLUMNS, row, strict=True))
    return HumanLabel(**{name: None if value == NOTHING else value for name, value in named.items()})


def _stored_reply(row: tuple[Any, ...]) -> StoredReply:
    ask, task, judge, reply, raw, usage, run = row
    return StoredReply(ask, task, judge, reply, raw, Usage.model_validate_json(usage), run)


def is_run_name(name: str) -> bool:
    """Whether this can only mean a run: ids, numbers and `last` hold no dots and no slashes, file names do."""
    return not set(name) & set("./\\")


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as one line that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text and not has_traces(path):
            raise StoreError(f"store {path}: the file is not a Steelyard store; name another one") from error
        if any(sign in text for sign in DAMAGE):
            raise damaged(path, text) from error
        if "full" in text:
            hint = "the disk is full: free some space, then resume the run"
        elif "disk I/O" in text:
            hint = "the disk cannot be read or written (full, over a quota, or failing); mend that, then resume the run"
        elif "locked" in text or "busy" in text:
            hint = f"another process has been writing to it for {BUSY_SECONDS} seconds; try again later"
        elif "readonly" in text or "unable to open" in text:
            hint = "it cannot be opened for writing; check the folder's rights or name another store"
        else:
            hint = text
        raise StoreError(f"store {path}: {hint}") from error
    except (ValidationError, json.JSONDecodeError) as error:
        raise damaged(path, "a row is not what was written") from error
    except OSError as error:
        raise StoreError(f"store {path}: {error.strerror or error}") from error


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
