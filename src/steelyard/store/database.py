"""The database interface of a store's tables: statements, transactions, and the few expressions that differ.

Statements are written once, with `?` for values, in the SQL that SQLite and PostgreSQL share.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, ClassVar, NamedTuple, TypeVar

T = TypeVar("T")


class SqlDialect(NamedTuple):
    """Expressions that each database writes in its own way."""

    number: str
    """A number in a document: of `column`, the field `name`."""
    flagged: str
    """Whether a verdict has the flag `?`."""
    joined: str
    """All numbers `n`, with commas between them."""
    holds: str
    """Whether `text` holds `?`."""
    samples_by_id: str
    """The table of samples, to be read by their ids."""
    set_samples_by_id: str
    """The same of the samples of sets."""
    now: str
    """The time, by the clock of the database."""
    ago: str
    """The time so many `seconds` ago."""
    seconds: str
    """A `time`, or the difference of two, in seconds."""
    greatest: str
    """The function that gives the greatest of several values."""
    began: str
    """Since when the database hears anybody."""
    unlocked: str
    """Of the rows of `l`, those that nobody else is about to change."""


class Database(ABC):
    """One open database. Every method either finishes or raises `StoreError` and leaves the data as it was."""

    dialect: ClassVar[SqlDialect]
    name: str
    """What messages call it: a path, or an address without secrets."""
    is_remote = False
    """Whether each statement is a message to a server, which is worth sending from another thread."""

    @abstractmethod
    def query(self, sql: str, *values: Any) -> Iterator[Any]:
        """The rows of a statement. Also for modules that look at a store in ways of their own (listing)."""

    def stream(self, sql: str, *values: Any) -> Iterator[Any]:
        """The same where there are more rows than memory should hold."""
        return self.query(sql, *values)

    @abstractmethod
    def write(self, sql: str, *values: Any) -> int:
        """One statement, committed at once unless it is part of something larger; how many rows it changed."""

    @abstractmethod
    def change(self, *statements: tuple[str, Iterable[Sequence[Any]]]) -> None:
        """Each statement for each of its rows: all of them or nothing."""

    @abstractmethod
    def all_or_nothing(self, about: str = "") -> AbstractContextManager[None]:
        """Everything written inside is kept together or not at all. Only one at a time writes `about` the same."""

    @abstractmethod
    def explained_errors(self) -> AbstractContextManager[None]:
        """Turn database errors and corrupt documents into a `StoreError` of one line that says what to do."""

    @abstractmethod
    def has_text_index(self) -> bool:
        """Whether texts can be searched without reading them all."""

    @abstractmethod
    def make_text_index(self) -> None:
        """Make that index where the database can have one; where it cannot, searches read every text."""

    @abstractmethod
    def settle_text_index(self) -> None:
        """After many texts were added: where the database keeps new ones aside, sort them in."""

    @abstractmethod
    def places_holding(self, text: str, first: int, last: int) -> tuple[str, tuple[Any, ...]]:
        """The statement for the numbers `n` from `first` to `last` of the texts that hold a text of three characters or
        more, by the index."""

    @abstractmethod
    def close(self) -> None: ...


def upsert(table: str, columns: str, key: str) -> str:
    """A row that takes the place of the one with its key."""
    names, keys = columns.split(), key.split()
    update = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    return f"{insert(table, columns)} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {update}"


def insert_new(table: str, columns: str) -> str:
    """A row that is left out where there is one with its key."""
    return f"{insert(table, columns)} ON CONFLICT DO NOTHING"


def insert(table: str, columns: str) -> str:
    names = columns.split()
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders(names)})"


def placeholders(values: Sequence[object]) -> str:
    """A `?` for each; for none, what nothing is equal to."""
    return ", ".join("?" * len(values)) or "NULL"


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values, so many at a time."""
    left = iter(values)
    while piece := list(islice(left, size)):
        yield piece


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
