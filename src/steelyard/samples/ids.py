"""Which ids were used, and where: a table in a temporary file, so that a million ids take no more memory than ten.

A dict of them would take 60 to 150 MB. The file is SQLite's own: it has no name, holds nothing until the first few ten
thousand ids are there, and goes with the connection.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from steelyard.errors import StoreError
from steelyard.samples.files import Place

CLAIM = "INSERT OR IGNORE INTO ids VALUES (?, ?, ?)"
FIRST = "SELECT source, number FROM ids WHERE id = ?"
# In KiB; what does not fit is written to the file.
CACHE = 500


class Ids:
    """The ids of one input."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in (
            # Nobody else reads it and nobody needs it after a crash.
            "PRAGMA journal_mode = OFF",
            f"PRAGMA cache_size = -{CACHE}",
            "CREATE TABLE ids (id BLOB PRIMARY KEY, source INTEGER, number INTEGER) WITHOUT ROWID",
            "BEGIN",
        ):
            self._db.execute(statement)
        self._sources: list[Place] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def __contains__(self, id: str) -> bool:
        with _errors():
            return self._db.execute(FIRST, (_bytes(id),)).fetchone() is not None

    def claim(self, id: str, place: Place) -> Place | None:
        """Take an id for this place, or say which place has it already."""
        if not self._sources or self._sources[-1].file != place.file:
            self._sources.append(place)
        with _errors():
            if self._db.execute(CLAIM, (_bytes(id), len(self._sources) - 1, place.number)).rowcount:
                return None
            source, number = self._db.execute(FIRST, (_bytes(id),)).fetchone()
        return Place(self._sources[source].file, number, self._sources[source].unit)

    def unused(self, stem: str) -> str:
        """The stem itself, or with the next free `-2`, `-3`, ...; a million equal rows take 20 steps each."""
        if stem not in self:
            return stem
        taken, free = 1, 2
        while f"{stem}-{free}" in self:
            taken, free = free, 2 * free
        while free - taken > 1:
            middle = (taken + free) // 2
            taken, free = (middle, free) if f"{stem}-{middle}" in self else (taken, middle)
        return f"{stem}-{free}"


def _bytes(id: str) -> bytes:
    # Half a character in an id is somebody else's to refuse.
    return id.encode("utf-8", "surrogatepass")


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"the ids of the samples cannot be kept in a temporary file ({error}); "
            "free some space, or point TMPDIR to another folder"
        ) from error
