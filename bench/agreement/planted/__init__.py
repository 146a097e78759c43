"""Single errors planted in true claims about texts of our own: 480 pairs in six kinds and three scripts.

A text file holds blocks: `== id | question`, the passages (a paragraph each), and claims `kind: claim`. Every claim is
true of its passages and marks one span as [[right]] or [[right>wrong]]. Where no wrong value is written down, the code
makes one: beyond the tolerance that PROTOCOLS grants to numbers and dates, and not to be found in the passages.
The same texts give the same pairs on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from steelyard.text import language_of
from steelyard.text.quantities import magnitude, same_magnitude

HERE = Path(__file__).parent
Kind = Literal["number", "date", "entity", "negation", "unit", "ordinal"]
Script = Literal["en", "zh-Hans", "zh-Hant"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SCRIPTS: tuple[Script, ...] = get_args(Script)
SPAN = re.compile(r"\[\[(?P<right>[^\[\]>]+)(?:>(?P<wrong>[^\[\]>]+))?\]\]")
CLAIM = re.compile(rf"({'|'.join(KINDS)}): (.+)")


class Pair(NamedTuple):
    """A true claim and its twin with one error; the passages decide both."""

    id: str
    kind: Kind
    script: Script
    question: str
    passages: tuple[str, ...]
    clean: str
    planted: str

    @property
    def language(self) -> Literal["zh", "en"]:
        return "en" if self.script == "en" else "zh"


class Text(NamedTuple):
    id: str
    question: str
    passages: tuple[str, ...]
    claims: tuple[tuple[Kind, str], ...]


def pairs(folder: Path = HERE) -> list[Pair]:
    """All pairs, text by text."""
    return [pair for script in SCRIPTS for pair in pairs_of((folder / f"{script}.txt").read_text("utf-8"), script)]


def pairs_of(text: str, script: Script) -> Iterator[Pair]:
    """The pairs of one file. The next text's first passage is put beside the right ones: retrieval brings such too."""
    texts = list(read(text))
    for at, own in enumerate(texts):
        other = texts[(at + 1) % len(texts)]
        passages = (*own.passages, *(other.passages[:1] if other is not own else ()))
        # Now before, now after the right ones, so that the place gives nothing away.
        shown = passages if at % 2 else (*passages[len(own.passages) :], *own.passages)
        for kind, claim in own.claims:
            clean, planted = twins(claim, kind, " ".join(own.passages))
            yield Pair(f"{own.id}-{kind}", kind, script, own.question, shown, clean, planted)


def read(text: str) -> Iterator[Text]:
    """The blocks of a file; a claim that cannot be read is an error with its line."""
    for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        head, *lines = [line for line in block.splitlines() if line.strip()]
        name, _, question = head.partition(" | ")
        claims = [match for line in lines if (match := CLAIM.fullmatch(line))]
        passages = tuple(line for line in lines if not CLAIM.fullmatch(line))
        if not question or not passages or any("[[" in passage for passage in passages):
            raise ValueError(f"{name}: needs a question, passages, and claims that begin with a kind")
        # mypy cannot see that the pattern allows kinds only.
        yield Text(name, question, passages, tuple((match[1], match[2]) for match in claims))  # type: ignore[misc]


def twins(claim: str, kind: Kind, passages: str) -> tuple[str, str]:
    """The claim as it is true, and with its marked span made wrong."""
    spans = list(SPAN.finditer(claim))
    if len(spans) != 1:
        raise ValueError(f"exactly one span must be marked: {claim}")
    (span,) = spans
    wrong = span["wrong"] or WRONG[kind](span["right"], passages, _draws(claim))
    before, after = claim[: span.start()], claim[span.end() :]
    return before + span["right"] + after, before + wrong + after


Draws = Iterator[int]


def _draws(seed: str) -> Draws:
    """As many repeatable numbers as are wanted."""
    turn = 0
    while True:
        yield int.from_bytes(hashlib.sha256(f"{seed} {turn}".encode()).digest()[:4], "big")
        turn += 1


def _first_absent(made: Iterator[str], passages: str, *, tries: int = 200) -> str:
    for _, candidate in zip(range(tries), made, strict=False):
        if candidate not in passages:
            return candidate
    raise ValueError("no wrong value could be made that the passages do not hold")


NUMBER = re.compile(r"(?P<digits>[0-9][0-9,]*(?:\.[0-9]+)?)(?P<unit>[万萬]?)")
# Larger or smaller by more than the tolerance lets pass, with other digits than the right one.
FACTORS = (Fraction(1, 23), Fraction(1, 14), Fraction(13), Fraction(17), Fraction(28), Fraction(46))


def wrong_number(right: str, passages: str, draws: Draws) -> str:
    match = NUMBER.fullmatch(right)
    if not match:
        raise ValueError(f"write the wrong number down, {right!r} cannot be changed by code")
    value = Fraction(match["digits"].replace(",", ""))

    def made() -> Iterator[str]:
        for draw in draws:
            other = _rounded(value * FACTORS[draw % len(FACTORS)])
            if not match["unit"] and other < 3:
                continue
            if not same_magnitude(value, other):
                yield _written(other * TEN_THOUSANDS.get(match["unit"], 1), match["unit"] or _unit_of(passages))

    return _first_absent(made(), passages)


def _rounded(value: Fraction) -> Fraction:
    """To two digits, as people write numbers."""
    step = Fraction(10) ** (magnitude(value) - 1)
    return round(value / step) * step


TEN_THOUSANDS = {"万": 10_000, "萬": 10_000}


def _unit_of(passages: str) -> str:
    """What large numbers are counted in where these passages come from."""
    return {"en": "", "zh-Hans": "万", "zh-Hant": "萬"}[language_of(passages)]


def _written(value: Fraction, unit: str) -> str:
    """As people write it: 1,400 in English; 650, 1400, 42万 in Chinese."""
    if not unit:
        return f"{round(value):,}"
    if value < 10_000:
        return str(round(value))
    return f"{float(value / TEN_THOUSANDS[unit]):.2f}".rstrip("0").rstrip(".") + unit


def wrong_date(right: str, passages: str, draws: Draws) -> str:
    match = re.fullmatch(r"([12][0-9]{3})(年?)", right)
    if not match:
        raise ValueError(f"write the wrong date down, {right!r} is not a year")
    years = (int(match[1]) + (4 + draw % 19) * (1 if draw // 19 % 2 else -1) for draw in draws)
    return _first_absent((f"{year}{match[2]}" for year in years if year < 2026), passages)


UNITS = {
    "seconds": "minutes", "minutes": "hours", "hours": "minutes", "months": "days", "kilometres": "metres",
    "metres": "centimetres", "kilograms": "grams", "grams": "kilograms",
    "litres": "millilitres", "millilitres": "litres",
    "秒": "分钟", "分钟": "小时", "小时": "分钟", "个月": "天", "公里": "米", "米": "厘米", "公斤": "克", "克": "公斤",
    "升": "毫升", "毫升": "升", "分鐘": "小時", "小時": "分鐘", "個月": "天", "公尺": "公分",
}  # fmt: skip


def wrong_unit(right: str, passages: str, draws: Draws) -> str:
    if right not in UNITS:
        raise ValueError(f"write the wrong unit down, {right!r} is not in the table")
    return UNITS[right]


ENGLISH = "first second third fourth fifth sixth seventh eighth ninth".split()
HAN = "一二三四五六七八九"


def wrong_ordinal(right: str, passages: str, draws: Draws) -> str:
    if right in ENGLISH:
        return _first_absent((ENGLISH[draw % 9] for draw in draws), passages)
    if match := re.fullmatch(r"第([一二三四五六七八九])", right):
        return _first_absent((f"第{HAN[draw % 9]}" for draw in draws if HAN[draw % 9] != match[1]), passages)
    if match := re.fullmatch(r"(第?)([0-9]+)(st|nd|rd|th|)", right):
        numbers = (int(match[2]) + (3 + draw % 15) * (1 if draw // 15 % 2 else -1) for draw in draws)
        return _first_absent((match[1] + _nth(n) if match[3] else f"第{n}" for n in numbers if n > 0), passages)
    raise ValueError(f"write the wrong ordinal down, {right!r} cannot be changed by code")


def _nth(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{('th', 'st', 'nd', 'rd')[number % 10] if number % 10 < 4 else 'th'}"


def _written_down(right: str, passages: str, draws: Draws) -> str:
    raise ValueError(f"write down what {right!r} becomes: [[{right}>…]]")


WRONG: dict[Kind, Callable[[str, str, Draws], str]] = {
    "number": wrong_number,
    "date": wrong_date,
    "entity": _written_down,
    "negation": _written_down,
    "unit": wrong_unit,
    "ordinal": wrong_ordinal,
}


def listing(found: Sequence[Pair]) -> str:
    """All pairs to be read by a person."""
    return "\n".join(f"{pair.id}\n  + {pair.clean}\n  - {pair.planted}" for pair in found)
