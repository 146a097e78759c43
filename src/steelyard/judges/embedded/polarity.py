"""Whether a clause affirms or denies: negators, and words of which one side denies what the other affirms.

*Dogs are forbidden* and *you may not bring a dog* both deny; *dogs are welcome* affirms. What is compared is the
parity of such words, and what is left of the clause without them.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.lexicon import TABLES
from steelyard.judges.embedded.meaning import plain


class Polar(NamedTuple):
    """A clause without its polar words: whether it denies, what else it says, and which pairs it used."""

    denies: bool
    rest: str
    pairs: tuple[str, ...]
    words: tuple[str, ...]


class _Table(NamedTuple):
    pattern: re.Pattern[str]
    sides: dict[str, tuple[str, bool]]
    spared: frozenset[str]


@lru_cache(maxsize=1)
def _table() -> _Table:
    held = tomllib.loads(TABLES.read_text("utf-8"))["polarity"]
    sides: dict[str, tuple[str, bool]] = {word: ("", True) for key in ("zh", "en") for word in held["negators"][key]}
    for number, pair in enumerate(held["pairs"]):
        for side, denies in (("for", False), ("against", True)):
            sides.update((word, (f"~{number}", denies)) for word in pair[side])
    spared = frozenset(held["spared"])
    ordered = sorted((*sides, *spared), key=lambda word: (-len(word), word))
    return _Table(re.compile("|".join(map(_whole, ordered))), sides, spared)


def _whole(word: str) -> str:
    if not word.isascii():
        return re.escape(word)
    before = "" if word.startswith("n'") else r"(?<![a-z0-9])"
    return before + re.escape(word).replace(r"\ ", r"\s+") + r"(?![a-z0-9])"


@lru_cache(maxsize=8192)
def polar(clause: str) -> Polar:
    """What a clause denies or affirms, and what about."""
    table, low = _table(), plain(clause)
    denies, pairs, found = False, [], []
    rest, at = [], 0
    for match in table.pattern.finditer(low):
        word = " ".join(match.group().split())
        if word in table.spared:
            continue
        pair, side = table.sides[word]
        denies ^= side
        if pair:
            pairs.append(pair)
        found.append(word)
        rest.append(low[at : match.start()])
        at = match.end()
    return Polar(denies, " ".join((*rest, low[at:])), tuple(pairs), tuple(found))
