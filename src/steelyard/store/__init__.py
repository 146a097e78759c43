"""Runs, samples, sets of them, replies, verdicts and labels by people: in SQLite, or in PostgreSQL for a team.

Replies are journalled before they are used, under a key that says exactly what was asked of whom; a run that was killed
finds them there.

    rows              what a store holds
    database          what its tables need of a database
    *_table           the tables, with the SQL that both databases share
    sqlite, postgres  the two databases; *_schema has their tables as numbered steps
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from steelyard.errors import StoreError
from steelyard.store.account_table import (
    EVERY_PROJECT,
    ROLES,
    AccountTable,
    AuditEntry,
    LoginSession,
    Role,
    Token,
    User,
)
from steelyard.store.experiment_table import ExperimentsTable, StoredExperiment
from steelyard.store.label_table import LABEL_COLUMNS, LabelTable, label_of
from steelyard.store.queue_table import KeptCard, LabelQueue, QueueItem, QueueTable
from steelyard.store.rows import SAMPLE, RunIdentity, RunRow, StoredReply, Wording
from steelyard.store.run_table import identity_of, is_run_name, run_identity
from steelyard.store.set_table import SampleSet, SetSample, SetTable, SetVersion
from steelyard.store.work_table import WorkTable

__all__ = [
    "EVERY_PROJECT",
    "LABEL_COLUMNS",
    "ROLES",
    "SAMPLE",
    "AuditEntry",
    "KeptCard",
    "LabelQueue",
    "LoginSession",
    "QueueItem",
    "Role",
    "RunIdentity",
    "RunRow",
    "SampleSet",
    "SetSample",
    "SetVersion",
    "Store",
    "StoreLocation",
    "StoredExperiment",
    "StoredReply",
    "Token",
    "User",
    "Wording",
    "as_location",
    "files_of",
    "identity_of",
    "is_run_name",
    "label_of",
    "run_identity",
    "shown_location",
]
SHOWN = re.compile(
    r"(?P<scheme>\w+://)(?:(?P<user>[^:/?#@]*)(?::[^/?#@]*)?@)?(?P<host>[^/?#@]*)(?P<path>/[^?#@]*)?(?:\?[^@]*)?\Z"
)
SCHEMES = ("postgresql://", "postgres://")
StoreLocation = Path | str
"""The path of an SQLite file, or the URL of a PostgreSQL database."""


class Store(SetTable, QueueTable, ExperimentsTable, WorkTable, LabelTable, AccountTable):
    """An open store. Every method either finishes or raises `StoreError` and leaves the data as it was."""

    @staticmethod
    def open(location: StoreLocation, *, create: bool = True) -> Store:
        """Open or create the store and bring it to the current schema."""
        where = as_location(location)
        if isinstance(where, Path):
            from steelyard.store.sqlite import SqliteStore

            return SqliteStore.at(where, create=create)
        from steelyard.store.postgres import PostgresStore

        return PostgresStore.at(where, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def as_location(given: StoreLocation) -> StoreLocation:
    """A URL as it is, anything else as a path."""
    text = str(given)
    if text.startswith(SCHEMES):
        return text
    scheme, separator, _ = text.partition("://")
    if separator:
        raise StoreError(f"a store is a file or a postgresql:// URL; {scheme}:// is neither")
    return Path(given)


def files_of(location: StoreLocation, what: str) -> Path:
    """Where files that belong to a store are kept: beside it, or in the usual folder where it is elsewhere."""
    if isinstance(location, Path):
        return location.with_name(f"{location.stem}-{what}")
    _, _, database = shown_location(location).rpartition("/")
    return Path(".steelyard") / f"{database if database.isidentifier() else 'postgres'}-{what}"


def shown_location(location: StoreLocation) -> str:
    """As messages show it: a URL without its password and parameters."""
    if isinstance(location, Path):
        return str(location)
    found = SHOWN.match(location)
    if found is None:  # a sign in the password that is not escaped may have cut it in two
        return f"{location.partition('://')[0]}://…"
    user = f"{found['user']}@" if found["user"] else ""
    return f"{found['scheme']}{user}{found['host']}{found['path'] or ''}"
