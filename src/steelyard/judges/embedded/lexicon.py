"""The tables of words.toml, read once, in the shapes the rules use."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.judges.embedded.meaning import stem

TABLES = Path(__file__).with_name("words.toml")


class Unit(NamedTuple):
    """What a unit measures, and how many of the smallest unit of that kind it is."""

    dimension: str
    factor: Fraction


class Opposites(NamedTuple):
    """Two groups of words; a word of one where the other text has a word of the other turns a statement round."""

    kind: str
    zh: tuple[tuple[str, ...], tuple[str, ...]]
    en: tuple[frozenset[str], frozenset[str]]


class Lexicon(NamedTuple):
    units: dict[str, Unit]
    dimensions: frozenset[str]
    counters: str
    opposites: tuple[Opposites, ...]
    sides: dict[str, frozenset[tuple[int, int]]]
    longest_side: int
    negators_zh: re.Pattern[str]
    negators_en: re.Pattern[str]
    hedges: re.Pattern[str]
    extremes: re.Pattern[str]
    kin: re.Pattern[str]
    same_kin: dict[str, str]
    elder: re.Pattern[str]
    firstborn: re.Pattern[str]
    values: dict[str, re.Pattern[str]]
    spelling: frozenset[str]
    surnames: frozenset[str]
    endings: tuple[str, ...]
    exclusive: dict[str, str]
    """Words for values that exclude one another, each with the kind of value it is."""


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The tables, compiled."""
    tables = tomllib.loads(TABLES.read_text("utf-8"))
    negation, kinship = tables["negation"], tables["kinship"]
    opposites = tuple(_opposites(kind, entry) for kind in ("direction", "comparison") for entry in tables[kind])
    sides = _sides(opposites)
    return Lexicon(
        units={name: Unit(kind, Fraction(str(factor))) for name, (kind, factor) in tables["units"].items()},
        dimensions=frozenset(kind for kind, _ in tables["units"].values()),
        counters=tables["counters"]["zh"],
        opposites=opposites,
        sides=sides,
        longest_side=max(len(word) for word in sides if not word.isascii()),
        negators_zh=_any_of(negation["zh"], spared=negation["zh_not"]),
        negators_en=_any_of(negation["en"], spared=negation["en_not"]),
        hedges=_both(tables["hedges"]),
        extremes=_both(tables["extremes"]),
        kin=_both(kinship),
        same_kin={word: group[0] for group in kinship["same"] for word in group},
        elder=_any_of([*kinship["zh_elder"], *kinship["en_elder"]]),
        firstborn=_any_of([*kinship["zh_firstborn"], *kinship["en_firstborn"]]),
        values={name: _any_of(words) for name, words in tables["values"].items()},
        spelling=frozenset(tables["names"]["spelling"]),
        surnames=frozenset(tables["names"]["surnames"]),
        endings=tuple(tables["names"]["endings"]),
        exclusive={word: kind for kind, words in tables["exclusive"].items() for word in words},
    )


def _opposites(kind: str, entry: dict[str, Any]) -> Opposites:
    zh, en = entry["zh"], entry["en"]
    return Opposites(kind, (tuple(zh[0]), tuple(zh[1])), (frozenset(map(stem, en[0])), frozenset(map(stem, en[1]))))


def _sides(opposites: Iterable[Opposites]) -> dict[str, frozenset[tuple[int, int]]]:
    """Every word of the pairs with the pairs and sides it stands on; a single Chinese character tells too little."""
    found: dict[str, set[tuple[int, int]]] = {}
    for number, pair in enumerate(opposites):
        for side in (0, 1):
            for word in (*pair.en[side], *(word for word in pair.zh[side] if len(word) > 1)):
                found.setdefault(word, set()).add((number, side))
    return {word: frozenset(places) for word, places in found.items()}


def _both(table: dict[str, list[str]]) -> re.Pattern[str]:
    return _any_of([*table["zh"], *table["en"]])


def _any_of(words: Iterable[str], spared: Iterable[str] = ()) -> re.Pattern[str]:
    """One of these words; `spared` ones are matched first, as the group of that name, so that they do not count."""
    parts = []
    if found := _alternatives(spared):
        parts.append(f"(?P<spared>{found})")
    parts.append(_alternatives(words))
    return re.compile("|".join(parts))


def _alternatives(words: Iterable[str]) -> str:
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(_whole(word) for word in ordered)


def _whole(word: str) -> str:
    if not word.isascii():
        return re.escape(word)
    before = "" if word.startswith("n'") else r"(?<![a-z0-9])"
    return before + re.escape(word) + r"(?![a-z0-9])"


def found(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches that count: those of the `spared` group are skipped."""
    return [match for match in pattern.finditer(text) if match.lastgroup != "spared"]
