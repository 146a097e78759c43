"""The rows in the pages of a SQLite file, read without SQLite: for files that it refuses to read.

The format is SQLite's own (sqlite.org/fileformat2.html): pages of one size, each a node of a B-tree with cells that
hold records; long records go on in chains of overflow pages; the newest versions of pages may lie in a log beside the
file. Only cells that a page lists are read, so rows that were deleted stay deleted, except in pages that are not
part of any tree any more and whose list of free pages is lost.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

MAGIC = b"SQLite format 3\x00"
HEADER, LOG_HEADER, FRAME_HEADER = 100, 32, 24
USUAL_SIZE = 4096
SIZES = frozenset(2**power for power in range(9, 17))
TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x0A, 0x02
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class PageCell(NamedTuple):
    """One row, or one entry of an index; tables without row numbers are kept as indexes are."""

    values: list[Any]
    has_rowid: bool


class Pages:
    """The pages of a file with those of its log over them."""

    def __init__(self, file: bytes, log: bytes = b"") -> None:
        self._file = file
        self.size = _page_size(file, log)
        self._newer = dict(_log_pages(log, self.size))

    @classmethod
    def of(cls, path: Path) -> Self:
        log = path.with_name(f"{path.name}-wal")
        return cls(path.read_bytes(), log.read_bytes() if log.is_file() else b"")

    def cells(self) -> Iterator[PageCell]:
        """Every row that can be read, page by page."""
        last = max([len(self._file) // self.size, *self._newer])
        free = self._free_pages(last)
        for number in range(1, last + 1):
            if number not in free:
                yield from self._cells_of(number)

    def page(self, number: int) -> bytes:
        start = (number - 1) * self.size
        return self._newer.get(number) or self._file[start : start + self.size]

    def _cells_of(self, number: int) -> Iterator[PageCell]:
        page = self.page(number)
        begin = HEADER if number == 1 else 0
        if len(page) < self.size or page[begin] not in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR):
            return
        kind = page[begin]
        (count,) = struct.unpack_from(">H", page, begin + 3)
        pointers = begin + (12 if kind == INDEX_INTERIOR else 8)
        for place in range(pointers, min(pointers + 2 * count, self.size - 1), 2):
            (at,) = struct.unpack_from(">H", page, place)
            try:
                yield PageCell(_record(self._payload(page, at, kind)), kind == TABLE_LEAF)
            except (ValueError, IndexError, struct.error):
                continue  # damaged; its neighbours may not be

    def _payload(self, page: bytes, at: int, kind: int) -> bytes:
        if kind == INDEX_INTERIOR:
            at += 4
        length, at = _varint(page, at)
        if length > len(self._file) + self.size * len(self._newer):
            raise ValueError("longer than the file")  # a chain that runs in a circle would fill the memory
        if kind == TABLE_LEAF:
            _, at = _varint(page, at)
        local = _local_length(length, self.size, is_table=kind == TABLE_LEAF)
        payload = bytearray(page[at : at + local])
        if length > local:
            (following,) = struct.unpack_from(">I", page, at + local)
            while following and len(payload) < length:
                overflow = self.page(following)
                if len(overflow) < self.size:
                    raise ValueError("the chain leaves the file")
                payload += overflow[4:]
                (following,) = struct.unpack_from(">I", overflow)
        if len(payload) < length:
            raise ValueError("the record breaks off")
        return bytes(payload[:length])

    def _free_pages(self, last: int) -> set[int]:
        """Pages that belong to nothing, where the list of them can be read: they hold what was deleted."""
        first = self.page(1)
        if first[:16] != MAGIC:
            return set()
        free: set[int] = set()
        (trunk,) = struct.unpack_from(">I", first, 32)
        while 0 < trunk <= last and trunk not in free:
            page = self.page(trunk)
            if len(page) < self.size:
                break
            free.add(trunk)
            trunk, count = struct.unpack_from(">II", page)
            leaves = struct.unpack_from(f">{min(count, self.size // 4 - 2)}I", page, 8)
            free.update(leaf for leaf in leaves if leaf <= last)
        return free


def _page_size(file: bytes, log: bytes) -> int:
    """As the file says, or its log; else the usual one."""
    if file[:16] == MAGIC:
        (size,) = struct.unpack_from(">H", file, 16)
        size = 2**16 if size == 1 else size
        if size in SIZES:
            return size
    if len(log) >= LOG_HEADER:
        (size,) = struct.unpack_from(">I", log, 8)
        if size in SIZES:
            return int(size)
    return USUAL_SIZE


def _log_pages(log: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """Pages of the log that were committed, oldest first."""
    uncommitted: dict[int, bytes] = {}
    for at in range(LOG_HEADER, len(log) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        number, committed = struct.unpack_from(">II", log, at)
        if log[at + 8 : at + 16] != log[16:24]:
            return  # left over from an earlier use of the log
        uncommitted[number] = log[at + FRAME_HEADER : at + FRAME_HEADER + size]
        if committed:
            yield from uncommitted.items()
            uncommitted = {}


def _local_length(length: int, size: int, *, is_table: bool) -> int:
    """How much of a record lies in its cell; the rest is in overflow pages."""
    most = size - 35 if is_table else (size - 12) * 64 // 255 - 23
    if length <= most:
        return length
    least = (size - 12) * 32 // 255 - 23
    wanted = least + (length - least) % (size - 4)
    return wanted if wanted <= most else least


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _record(payload: bytes) -> list[Any]:
    end, at = _varint(payload, 0)
    if end > len(payload):
        raise ValueError("no record")
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values, at = [], end
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    return values


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    length = INTEGERS.get(kind) or (8 if kind == 7 else (kind - 12) // 2)
    part = payload[at : at + length]
    if kind in (10, 11) or len(part) < length:
        raise ValueError("no value")
    if kind in INTEGERS:
        return int.from_bytes(part, "big", signed=True), at + length
    if kind == 7:
        return struct.unpack(">d", part)[0], at + length
    return (part.decode() if kind % 2 else part), at + length
