"""The store in PostgreSQL, for a team: many processes and machines read and write it at once.

Passwords and certificates come from where libpq looks for them: PGPASSWORD, ~/.pgpass, a service file, PGSSLMODE and
its like, or the URL, which is never shown with them.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Self, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from steelyard.errors import MissingExtra, RunInUse, ServerAway, StoreError
from steelyard.store import Store, shown_location
from steelyard.store.database import SqlDialect
from steelyard.store.postgres_schema import migrate

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise MissingExtra("psycopg", "postgres", "a store in PostgreSQL") from error

T = TypeVar("T")
Connection = psycopg.Connection[Any]
CONNECT_SECONDS = 10
# How long a server may be away, restarting or behind a broken network, before a statement fails.
PATIENCE = 120.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
# A network that is cut says nothing; without these a statement would wait for hours.
DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "steelyard",
}
UNREADABLE = (
    "the URL cannot be read; write postgresql://USER@HOST:PORT/DATABASE, and signs such as @ / # in a password as "
    "%40 %2F %23"
)
STREAMED = 500
MOST_IDLE = 8
LOCK_KEY = "hashtextextended(current_schema() || '/' || %s::text, 0)"
IN_USE = f"""
    SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = {LOCK_KEY})
"""
# What a machine that lost its power or its network held in a transaction would else stay locked for hours. Within a
# transaction a store asks one thing after the other; those that wait for something else say so (`UNHURRIED`).
IDLE_SECONDS = 15
UNHURRIED = "SET LOCAL idle_in_transaction_session_timeout = 0"
SESSION = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"
END_SESSION = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s::timestamptz"
)
TEXT_INDEX = "texts_by_piece"

_idle: list[tuple[int, str, Connection]] = []
_idle_lock = threading.Lock()


class PostgresStore(Store):
    """A store in a database. May be used from several threads; they take turns."""

    is_remote = True
    dialect = SqlDialect(
        # Not jsonb: it refuses \\u0000, which a document may hold.
        number="({column}::json ->> '{name}')::double precision",
        flagged="EXISTS (SELECT 1 FROM json_array_elements_text(verdict::json -> 'flags') AS f(flag) WHERE flag = ?)",
        joined="string_agg(n::text, ',')",
        holds="strpos(text, ?) > 0",
        samples_by_id="samples",
        set_samples_by_id="set_samples",
        now="clock_timestamp()",
        ago="(clock_timestamp() - {seconds} * interval '1 second')",
        seconds="extract(epoch FROM {time})::double precision",
        greatest="greatest",
        began="pg_postmaster_start_time()",
        unlocked="FOR UPDATE OF l SKIP LOCKED",
    )

    def __init__(self, conninfo: str, name: str) -> None:
        self._conninfo, self.name = conninfo, name
        self._turn = threading.RLock()
        self._held: list[tuple[str, bool]] = []
        self._session: tuple[int, str] | None = None
        self._together = 0
        self._db: Connection | None = None

    @classmethod
    def at(cls, url: str, *, create: bool = True) -> Self:
        """Connect, and bring the tables to the current version."""
        name = shown_location(url)
        try:
            if name.endswith("…"):
                raise psycopg.ProgrammingError
            given = conninfo_to_dict(url)
            conninfo = make_conninfo(url, **{name: value for name, value in DEFAULTS.items() if name not in given})
        except psycopg.Error:
            # libpq's own words would quote the URL, and the password in it.
            raise StoreError(f"store {name}: {UNREADABLE}") from None
        store = cls(conninfo, name)
        with store.explained_errors():
            store._db = _taken(conninfo)
            if store._db is None:
                store._db = _connected(conninfo)
                try:
                    migrate(store._db, name, create=create)
                except BaseException:
                    store._db.close()
                    raise
        return store

    def another(self) -> Self:
        """The same store through a connection of its own, for what must not wait."""
        return type(self)(self._conninfo, self.name)

    def close(self) -> None:
        with self._turn:
            db, self._db = self._db, None
            if db is not None:
                _return_connection(self._conninfo, db)

    # --- statements ---

    def query(self, sql: str, *values: Any) -> Iterator[Any]:
        with self.explained_errors():
            rows = self._with_retries(lambda db: db.execute(_for_psycopg(sql), _clean(values), binary=True).fetchall())
        yield from rows

    def stream(self, sql: str, *values: Any) -> Iterator[Any]:
        """A few hundred rows at a time, through a connection of its own: this one stays free meanwhile."""
        with self.explained_errors():
            db = _taken(self._conninfo) or self._with_retries(lambda _: _connected(self._conninfo))
            try:
                with db.transaction(), db.cursor("rows", binary=True) as cursor:
                    db.execute(UNHURRIED)
                    cursor.itersize = STREAMED
                    cursor.execute(_for_psycopg(sql), _clean(values))
                    yield from cursor
            finally:
                _return_connection(self._conninfo, db)

    def write(self, sql: str, *values: Any) -> int:
        with self.explained_errors():
            return self._with_retries(lambda db: db.execute(_for_psycopg(sql), _clean(values)).rowcount)

    def change(self, *statements: tuple[str, Iterable[Sequence[Any]]]) -> None:
        prepared = [(_for_psycopg(sql), [_clean(row) for row in rows]) for sql, rows in statements]

        def work(db: Connection) -> None:
            with db.transaction(), db.cursor() as cursor:
                for sql, rows in prepared:
                    if rows:
                        cursor.executemany(sql, rows)

        with self.explained_errors():
            self._with_retries(work)

    @contextmanager
    def all_or_nothing(self, about: str = "") -> Iterator[None]:
        with self._turn, self.explained_errors():
            if self._together:
                yield
                return
            if about:
                self._with_retries(lambda db: db.execute("SELECT 1"))  # a connection that was lost is noticed here
            db = self._connection()
            self._together += 1
            try:
                with db.transaction():
                    if about:
                        db.execute(f"SELECT pg_advisory_xact_lock({LOCK_KEY})", (f"about {about}",))
                    yield
            finally:
                self._together -= 1

    def take_time(self) -> None:
        self.write(UNHURRIED)

    def _with_retries(self, work: Callable[[Connection], T]) -> T:
        """Do it; after a lost connection or a deadlock again, until the server has been away for too long. Whatever is
        tried again leaves the same behind when it was done before."""
        with self._turn:
            deadline, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
            while True:
                try:
                    return work(self._connection())
                except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:
                    lost = self._db is None or self._db.closed or isinstance(error, AGAIN)
                    if self._together or not lost or time.monotonic() > deadline:
                        raise
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _connection(self) -> Connection:
        if self._db is None or self._db.closed:
            db = _connected(self._conninfo)
            if self._held and self._session:
                # Behind a network that was cut, the server may not know yet that the old session is over.
                db.execute(END_SESSION, self._session)
            for run, shared in self._held:
                if not _locked(db, run, shared=shared):
                    db.close()
                    raise _run_in_use(run)
            self._session = _session(db) if self._held else None
            self._db = db
        return self._db

    @contextmanager
    def explained_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            away = isinstance(error, psycopg.OperationalError) and (self._db is None or self._db.closed)
            raise (ServerAway if away else StoreError)(f"store {self.name}: {_error_text(error)}") from error
        except (ValidationError, json.JSONDecodeError) as error:
            raise StoreError(f"store {self.name}: a row is not what was written; restore a backup") from error

    # --- who is at work on a run ---

    @contextmanager
    def alone_with(self, run: str) -> Iterator[None]:
        """An advisory lock of the session: it ends with the connection, however the process ends."""
        with self._locking(run, shared=False):
            yield

    @contextmanager
    def together_with(self, run: str) -> Iterator[None]:
        """The same for workers: several at once, but nobody who must be alone with it."""
        with self._locking(run, shared=True):
            yield

    @contextmanager
    def _locking(self, run: str, *, shared: bool) -> Iterator[None]:
        with self.explained_errors():
            if any(held == run for held, _ in self._held) or not self._with_retries(
                lambda db: _locked(db, run, shared=shared)
            ):
                raise _run_in_use(run)
            self._session = self._with_retries(_session)
        self._held.append((run, shared))
        try:
            yield
        finally:
            self._held.remove((run, shared))
            release = f"SELECT pg_advisory_unlock{'_shared' * shared}({LOCK_KEY})"
            with suppress(psycopg.Error), self._turn:
                if self._db is not None and not self._db.closed:
                    self._db.execute(release, (run,))

    def in_use(self, run: str) -> bool:
        with self.explained_errors():
            row = self._with_retries(lambda db: db.execute(IN_USE, (run,)).fetchone())
        return bool(row and row[0])

    # --- what this database does in its own way ---

    def lines(self, run: str) -> Iterator[str]:
        for (verdict,) in self.stream("SELECT verdict FROM samples WHERE run = ? ORDER BY seq", run):
            line = from_json(verdict)
            line.pop("notes", None)
            yield to_json(line).decode()

    def has_text_index(self) -> bool:
        sql = "SELECT 1 FROM pg_indexes WHERE schemaname = current_schema() AND indexname = ?"
        return any(self.query(sql, TEXT_INDEX))

    def make_text_index(self) -> None:
        if not self.has_text_index():
            # Either the server has no pg_trgm, or we may not install it, or another process was first.
            with suppress(StoreError), self.all_or_nothing("the index of texts"):
                self.write("CREATE EXTENSION IF NOT EXISTS pg_trgm")
                # New texts are kept aside and sorted in together: one by one takes twenty times as long.
                aside = "WITH (gin_pending_list_limit = 65536)"
                self.write(f"CREATE INDEX IF NOT EXISTS {TEXT_INDEX} ON texts USING gin (text gin_trgm_ops) {aside}")

    def settle_text_index(self) -> None:
        if self.has_text_index():
            with suppress(StoreError):  # only its owner may; autovacuum does the same later
                self.write(f"SELECT gin_clean_pending_list('{TEXT_INDEX}')")

    def places_holding(self, text: str, first: int, last: int) -> tuple[str, tuple[Any, ...]]:
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return "SELECT place AS n FROM texts WHERE text LIKE ? AND place BETWEEN ? AND ?", (f"%{pattern}%", first, last)


AGAIN = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)


def _run_in_use(run: str) -> RunInUse:
    return RunInUse(f"run {run} is in the hands of another process; wait for that one or stop it")


def _locked(db: Connection, run: str, *, shared: bool) -> bool:
    row = db.execute(f"SELECT pg_try_advisory_lock{'_shared' * shared}({LOCK_KEY})", (run,)).fetchone()
    return bool(row and row[0])


def _session(db: Connection) -> tuple[int, str]:
    """By what the server knows this connection."""
    pid, began = db.execute(SESSION).fetchone() or (0, "")
    return int(pid), str(began)


# --- connections: a viewer opens the store for every request, and connecting takes longer than most statements -------


def _connected(conninfo: str) -> Connection:
    db = psycopg.connect(conninfo, autocommit=True)
    db.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'".encode())
    return db


def _taken(conninfo: str) -> Connection | None:
    """A connection that nobody uses and that still works, as far as one can tell without asking."""
    with _idle_lock:
        for place, (owner, known, db) in enumerate(_idle):
            if (owner, known) == (os.getpid(), conninfo) and not db.closed:
                del _idle[place]
                return db
    return None


def _return_connection(conninfo: str, db: Connection) -> None:
    if db.closed or db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        db.close()
        return
    with _idle_lock:
        _idle.append((os.getpid(), conninfo, db))
        surplus = [_idle.pop(0)[2]] if len(_idle) > MOST_IDLE else []
    for oldest in surplus:
        oldest.close()


@atexit.register
def _close_idle() -> None:
    for owner, _, db in _idle:
        if owner == os.getpid():  # those of a parent process are the parent's
            db.close()


# --- small things ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _for_psycopg(sql: str) -> bytes:
    """A statement with `?` for values, as psycopg wants it."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _clean(values: Sequence[Any]) -> Sequence[Any]:
    """PostgreSQL has no NUL in texts; documents write theirs as an escape and keep it."""
    if any(isinstance(value, str) and "\0" in value for value in values):
        return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values]
    return values


def _error_text(error: psycopg.Error) -> str:
    """The error in one line. libpq writes several; the last one says what happened."""
    text = str(error).strip()
    last = error.diag.message_primary or (text.splitlines()[-1].strip() if text else type(error).__name__)
    if "connection option" in text:
        return UNREADABLE
    if "password" in text or "authentication" in text:
        hint = "put the password into PGPASSWORD, ~/.pgpass or a service file"
        return f"the server does not let this user in ({last}); {hint}"
    if isinstance(error, psycopg.errors.InvalidCatalogName) or ("database" in text and "does not exist" in text):
        return f"{last}; create it first (createdb)"
    if isinstance(error, psycopg.errors.DiskFull):
        return "the server's disk is full: free some space, then resume the run"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"this user may not do that: {last}"
    if isinstance(error, psycopg.OperationalError):
        return f"the server cannot be reached or went away ({last}); check the address, then resume the run"
    return last
