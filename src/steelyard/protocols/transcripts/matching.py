"""Which item of a list a later section speaks of: models renumber and reword what they list."""

from __future__ import annotations

from typing import NamedTuple

from steelyard.text import normalise

SIMILAR = 0.6
COMPARED = 400
# Sections that shuffle their numbers shuffle neighbours; comparing with all would take quadratic time.
NEAR = 20


class Match(NamedTuple):
    """Which listed item a later section speaks of, and what was odd about how it was named."""

    id: int
    flags: tuple[str, ...] = ()


def bigrams(text: str) -> frozenset[str]:
    key = normalise(text[:COMPARED]) or text[:COMPARED]
    return frozenset(key[i : i + 2] for i in range(max(1, len(key) - 1)))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0


class ListedItems:
    """Items as the first section lists them. Later mentions are found by text; the number only breaks ties."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.flags: dict[int, tuple[str, ...]] = {}
        self._ids: dict[str, list[int]] = {}
        self._bigrams: dict[int, frozenset[str]] = {}
        self._free = 1

    def add(self, id: int, text: str) -> int:
        """List an item once; a number that is taken by another text is replaced by a free one."""
        if id in self.texts:
            if self.texts[id] == text:
                return id
            while self._free in self.texts:
                self._free += 1
            id = self._free
            self.flags[id] = ("id_mismatch",)
        self.texts[id] = text
        self._ids.setdefault(_key(text), []).append(id)
        return id

    def find(self, id: int, text: str) -> Match | None:
        """The item with this text; 0 is the number of a mention that has none."""
        same = self._ids.get(_key(text), ())
        if id in self.texts and _key(self.texts[id]) == _key(text):
            return Match(id)
        if len(same) == 1:
            return Match(same[0], ("id_mismatch",) if id else ())
        if not same and id in self.texts and self._most_alike(id, text):
            return Match(id, ("text_differs",))
        return None

    def _most_alike(self, id: int, text: str) -> bool:
        """The text is a variant of this item, and of none numbered near it more."""
        wanted = bigrams(text)
        own = likeness(wanted, self._bigrams_of(id))
        if own < SIMILAR:
            return False
        near = (other for other in range(id - NEAR, id + NEAR + 1) if other != id and other in self.texts)
        return all(likeness(wanted, self._bigrams_of(other)) < own for other in near)

    def _bigrams_of(self, id: int) -> frozenset[str]:
        if id not in self._bigrams:
            self._bigrams[id] = bigrams(self.texts[id])
        return self._bigrams[id]


def _key(text: str) -> str:
    # Only the beginning is normalised: that of a megabyte of combining marks takes quadratic time.
    beginning = text[:COMPARED].strip()
    return (normalise(beginning) or beginning) + text[COMPARED:]
