"""Which ids were used, and where: a hash table in two arrays.

A dict or set of a million ids takes 60 to 150 MB, a temporary SQLite table takes longer than reading the
samples. This takes 12 bytes a slot and about a microsecond an id. Only 64-bit hashes are kept: among a
million ids the chance that two different ones are taken for the same is 3 in 100 million.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from steelyard.samples.files import Place

_START = 1 << 10
_MASK = (1 << 64) - 1


class Ids:
    """The ids of one input. Hashes are Python's own, salted per process: no file can be made to collide."""

    def __init__(self) -> None:
        self._hashes = array("Q", bytes(8 * _START))
        self._numbers = array("I", bytes(4 * _START))
        self._used = 0
        # Rows of all sources share one numbering, so that a slot needs four bytes to remember its place.
        self._sources: list[Place] = []
        self._offsets: list[int] = []
        self._highest = 0

    def __contains__(self, id: str) -> bool:
        return self._hashes[self._slot(_hash(id))] != 0

    def claim(self, id: str, place: Place) -> Place | None:
        """Take an id for this place, or say which place has it already."""
        if not self._sources or self._sources[-1].file != place.file:
            self._sources.append(place)
            self._offsets.append(self._highest)
        hashed = _hash(id)
        slot = self._slot(hashed)
        if self._hashes[slot]:
            return self._place(self._numbers[slot])
        number = self._offsets[-1] + place.number
        self._highest = max(self._highest, number)
        self._hashes[slot], self._numbers[slot] = hashed, number
        self._used += 1
        if 4 * self._used > 3 * len(self._hashes):
            self._grow()
        return None

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

    def _place(self, number: int) -> Place:
        source = bisect_right(self._offsets, number - 1) - 1
        like = self._sources[source]
        return Place(like.file, number - self._offsets[source], like.unit)

    def _slot(self, hashed: int) -> int:
        hashes, size = self._hashes, len(self._hashes)
        slot = hashed % size
        while hashes[slot] not in (0, hashed):
            slot = (slot + 1) % size
        return slot

    def _grow(self) -> None:
        hashes, numbers = self._hashes, self._numbers
        size = len(hashes) * 3 // 2
        self._hashes, self._numbers = array("Q", bytes(8 * size)), array("I", bytes(4 * size))
        for hashed, number in zip(hashes, numbers, strict=True):
            if hashed:
                slot = self._slot(hashed)
                self._hashes[slot], self._numbers[slot] = hashed, number


def _hash(id: str) -> int:
    return hash(id) & _MASK or 1
