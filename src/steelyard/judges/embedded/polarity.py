"""Whether a clause affirms or denies: negators, and words of which one side denies what the other affirms.

*Dogs are forbidden* and *you may not bring a dog* both deny; *dogs are welcome* affirms. What is compared is the
parity of such words, and what is left of the clause without them.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.lexicon import TABLES, lexicon
from steelyard.judges.embedded.meaning import HAN_RUN, plain, stem


class Polar(NamedTuple):
    """A clause without its polar words: whether it denies, what else it says, which pairs it used, what is negated.

    `scope` is what follows the negators; a word like forbidden may speak of what stands before it, so it has none.
    """

    denies: bool
    rest: str
    pairs: tuple[str, ...]
    scope: str


class _Table(NamedTuple):
    han: re.Pattern[str]
    latin: re.Pattern[str]
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
    latin = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered if word.isascii() and word != "n't")
    return _Table(
        re.compile("|".join(re.escape(word) for word in ordered if not word.isascii())),
        re.compile(rf"n't(?![a-z0-9])|(?<![a-z0-9])(?:{latin})(?![a-z0-9])"),
        sides,
        spared,
    )


# So many characters after a negator are what it denies.
HAN_SCOPE, LATIN_SCOPE = 7, 28
LATIN = re.compile(r"[a-z]")


@lru_cache(maxsize=8192)
def polar(clause: str) -> Polar:
    """What a clause denies or affirms, and what about."""
    table, low = _table(), plain(clause)
    denies, pairs, scopes = False, [], []
    is_plain = True
    rest, at = [], 0
    matches = [*table.han.finditer(low)] if not low.isascii() else []
    if LATIN.search(low):
        matches = sorted([*matches, *table.latin.finditer(low)], key=lambda match: match.start())
    for match in matches:
        word = " ".join(match.group().split())
        if word in table.spared:
            continue
        pair, side = table.sides[word]
        denies ^= side
        if pair:
            pairs.append(pair)
            is_plain &= not side
        else:
            scopes.append(low[match.end() : match.end() + (HAN_SCOPE if match.group()[0] > "\u2fff" else LATIN_SCOPE)])
        rest.append(low[at : match.start()])
        at = match.end()
    return Polar(denies, " ".join((*rest, low[at:])), tuple(pairs), " ".join(scopes) if is_plain else "")


# A single character tells a direction only where something is compared: 比去年多, 更贵.
COMPARED = re.compile(r"(?:比[^，,。]{1,10}|更|较|最|变|得)([多少贵高低大小长短轻重宽窄快慢早晚深浅厚薄])")
SINGLE = [tuple(pair) for pair in ("多少", "高低", "大小", "长短", "重轻", "宽窄", "快慢", "早晚", "深浅", "厚薄")]
DEAR = ("贵", "便宜")
ENGLISH_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")


@lru_cache(maxsize=8192)
def told_by_words(text: str) -> frozenset[tuple[int, int]]:
    """Which sides of which pairs of opposites a text has words of."""
    low, held = plain(text), lexicon().sides
    found = [held[one] for one in set(map(stem, ENGLISH_WORD.findall(low))) if one in held]
    for run in HAN_RUN.findall(low):
        for size in range(2, lexicon().longest_side + 1):
            found += [held[run[at : at + size]] for at in range(len(run) - size + 1) if run[at : at + size] in held]
    return frozenset().union(*found)


@lru_cache(maxsize=8192)
def sides(text: str) -> frozenset[tuple[int, int]]:
    """On which side of which pair of opposites a text stands; both sides of one pair tell nothing."""
    low, found = plain(text), set(told_by_words(text))
    for match in COMPARED.finditer(low):
        for number, single in enumerate((*SINGLE, DEAR), start=1000):
            if match[1] in single:
                found.add((number, single.index(match[1])))
    if DEAR[1] in low:
        found.add((1000 + len(SINGLE), 1))
    return frozenset(one for one in found if (one[0], 1 - one[1]) not in found)
