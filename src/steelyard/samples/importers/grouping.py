"""Rows that belong together, such as the messages of a conversation or the spans of a trace, wherever they stand.

They wait in a temporary file of SQLite's, like the ids of an input: an export of a million spans takes no more memory
than one of a hundred.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from typing import Any

from steelyard.errors import InputError, StoreError
from steelyard.samples.files import Place, Rows

Group = list[tuple[Place, Mapping[str, Any]]]


def grouped(rows: Rows, key_of: Callable[[Mapping[str, Any]], str]) -> Iterator[Group | tuple[Place, InputError]]:
    """The groups in the order of their first rows; rows without a key, and errors, come at once and alone."""
    try:
        with closing(sqlite3.connect("", isolation_level=None, check_same_thread=False)) as db:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA cache_size = -2000")
            db.execute("CREATE TABLE rows (first INTEGER, seq INTEGER, place TEXT, row TEXT, PRIMARY KEY (first, seq))")
            db.execute("CREATE TABLE keys (key TEXT PRIMARY KEY, first INTEGER)")
            db.execute("BEGIN")
            for seq, (place, row) in enumerate(rows):
                if isinstance(row, InputError):
                    yield place, row
                elif not isinstance(row, Mapping):
                    yield place, place.error("expected an object of the tool's export")
                elif not (key := key_of(row).encode(errors="replace").decode()):
                    yield [(place, row)]
                elif not _kept(db, key, seq, place, row):
                    yield place, place.error("nested too deeply to be read")
            firsts = db.execute("SELECT DISTINCT first FROM rows ORDER BY first").fetchall()
            for (first,) in firsts:
                found = db.execute("SELECT place, row FROM rows WHERE first = ? ORDER BY seq", (first,))
                yield [(Place(*json.loads(place)), json.loads(row)) for place, row in found]
    except sqlite3.Error as error:
        raise StoreError(f"the temporary file for the rows of a trace or conversation: {error}") from error


def _kept(db: sqlite3.Connection, key: str, seq: int, place: Place, row: Mapping[str, Any]) -> bool:
    try:
        text = json.dumps(row, default=_plain)
    except (RecursionError, ValueError):
        return False
    db.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (key, seq))
    (first,) = db.execute("SELECT first FROM keys WHERE key = ?", (key,)).fetchone()
    db.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", (first, seq, json.dumps(place), text))
    return True


def _plain(value: object) -> object:
    """What JSON has no form for: the numbers of a JSON stream, and the dates of a table."""
    return float(value) if isinstance(value, Decimal) else str(value)
