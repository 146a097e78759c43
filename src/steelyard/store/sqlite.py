"""The store as one SQLite file. WAL mode: readers never wait, and what is committed survives kill -9."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from steelyard.errors import RunInUse, StoreError
from steelyard.store import Store
from steelyard.store.database import SqlDialect
from steelyard.store.sqlite_schema import DAMAGE, check_ours, damaged, has_traces, migrate

BUSY_SECONDS = 15
# Who looks whether a run is in use holds its lock for a moment.
LOCK_SECONDS = 0.05
# Seconds since 1970.
NOW = "((julianday('now') - 2440587.5) * 86400.0)"
# Not among the migrations: a Python whose SQLite cannot do it must still be able to judge.
TEXT_INDEX = (
    "CREATE VIRTUAL TABLE search USING fts5(text, content='texts', content_rowid='place', "
    "tokenize='trigram case_sensitive 1')",
    "CREATE TRIGGER text_is_searched AFTER INSERT ON texts BEGIN "
    "INSERT INTO search (rowid, text) VALUES (new.place, new.text); END",
    "CREATE TRIGGER text_is_gone AFTER DELETE ON texts BEGIN "
    "INSERT INTO search (search, rowid, text) VALUES ('delete', old.place, old.text); END",
    "INSERT INTO search (search) VALUES ('rebuild')",
)


class SqliteStore(Store):
    """A store in a file."""

    dialect = SqlDialect(
        number="json_extract({column}, '$.{name}')",
        flagged="EXISTS (SELECT 1 FROM json_each(verdict, '$.flags') AS flag WHERE flag.value = ?)",
        joined="group_concat(n)",
        holds="instr(text, ?)",
        # Left alone, SQLite prefers to walk through the whole run.
        samples_by_id="samples INDEXED BY samples_by_id",
        set_samples_by_id="set_samples INDEXED BY set_samples_by_id",
        now=NOW,
        ago=f"({NOW} - {{seconds}})",
        seconds="{time}",
        greatest="max",
        began="0",
        unlocked="",  # one writes at a time
    )

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db, self.path, self.name = connection, path, str(path)
        # Workers use it from several threads: no statement of one may end up in the transaction of another.
        self._turn = threading.RLock()
        # A thread that is still reading keeps its connection at what the file held then; nothing can be written from
        # there once another process has written.
        self._together = 0

    @classmethod
    def at(cls, path: Path, *, create: bool = True) -> Self:
        """Open or create the file and bring it to the current schema."""
        if not create and not path.exists():
            raise StoreError(f"there is no store {path} yet; judge something first, or name another store")
        with store_errors(path):
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
        with self._turn:
            self._db.close()

    def another(self) -> Self:
        return type(self).at(self.path, create=False)

    def query(self, sql: str, *values: Any) -> Iterator[Any]:
        with self.explained_errors():
            with self._turn:
                rows: Iterable[Any] = self._db.execute(sql, values)
                if self._together:
                    rows = list(rows)
            # Not `yield from`: it would close the cursor of a reader that is dropped after the store was closed.
            for row in rows:  # noqa: UP028
                yield row

    def write(self, sql: str, *values: Any) -> int:
        with self._turn, self.explained_errors():
            return self._db.execute(sql, values).rowcount

    def change(self, *statements: tuple[str, Iterable[Sequence[Any]]]) -> None:
        with self.all_or_nothing():
            for sql, rows in statements:
                self._db.executemany(sql, rows)

    @contextmanager
    def all_or_nothing(self, about: str = "") -> Iterator[None]:
        """Whatever it is about: SQLite lets one write at a time."""
        with self._turn:
            if self._db.in_transaction:
                yield
                return
            with self.explained_errors():
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise

    @contextmanager
    def explained_errors(self) -> Iterator[None]:
        with store_errors(self.path):
            yield

    @contextmanager
    def alone_with(self, run: str) -> Iterator[None]:
        """The lock is SQLite's own, on an empty file beside the store, so that it ends with the process, however that
        ends, on every system."""
        lock = self._lock_of(run)
        with closing(_lock(lock)) as held:
            try:
                held.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise _in_hands(run) from error
            try:
                yield
            finally:
                with suppress(OSError):  # some systems do not delete what is open; an empty file does no harm
                    lock.unlink()

    @contextmanager
    def together_with(self, run: str) -> Iterator[None]:
        """As many as like may read the empty file at once, and then nobody is alone with it."""
        lock = self._lock_of(run)
        with closing(_lock(lock)) as held:
            try:
                held.execute("BEGIN")
                held.execute("SELECT * FROM sqlite_master").fetchall()
            except sqlite3.OperationalError as error:
                raise _in_hands(run) from error
            self._together += 1
            try:
                yield
            finally:
                self._together -= 1
                held.execute("ROLLBACK")
                with suppress(OSError, sqlite3.OperationalError):  # the last one takes it away
                    held.execute("PRAGMA busy_timeout = 0")
                    held.execute("BEGIN EXCLUSIVE")
                    lock.unlink()

    def in_use(self, run: str) -> bool:
        lock = self._lock_of(run)
        if not lock.exists():
            return False
        with closing(sqlite3.connect(lock, timeout=0, isolation_level=None)) as held:
            try:
                held.execute("SELECT * FROM sqlite_master").fetchall()
                # Nobody is alone with it; those that are together with it let nobody be.
                held.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}")
                held.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                return True
        return False

    def _lock_of(self, run: str) -> Path:
        return self.path.with_name(f"{self.path.name}-{run}.lock")

    def lines(self, run: str) -> Iterator[str]:
        # SQLite takes the notes out: nothing is parsed here.
        rows = self.query("SELECT json_remove(verdict, '$.notes') FROM samples WHERE run = ? ORDER BY seq", run)
        return (line for (line,) in rows)

    # --- searching texts ---

    def has_text_index(self) -> bool:
        return any(self.query("SELECT 1 FROM sqlite_master WHERE name = 'search'"))

    def make_text_index(self) -> None:
        if not self.has_text_index():
            # Either this SQLite has no such index, or another process was first.
            with suppress(StoreError), self.all_or_nothing():
                for statement in TEXT_INDEX:
                    self.write(statement)

    def settle_text_index(self) -> None:
        """SQLite sorts them in at once."""

    def places_holding(self, text: str, first: int, last: int) -> tuple[str, tuple[Any, ...]]:
        phrase = '"{}"'.format(text.replace('"', '""'))
        return "SELECT rowid AS n FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?", (phrase, first, last)


def _lock(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)


def _in_hands(run: str) -> RunInUse:
    return RunInUse(f"run {run} is in the hands of another process; wait for that one or stop it")


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
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
