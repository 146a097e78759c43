"""What must agree exactly: numbers with their units, dates, times, ordinals, versions, codes.

Values are read by `text/values.py`, as the tolerance reads them. Here they are found in sentences and compared: which
value of a claim stands nowhere in the passages, and which other value stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from steelyard.tasks import Difference
from steelyard.text import fold, in_simplified
from steelyard.text.measures import Measure, agree_as_written, aligned, comparable, measure
from steelyard.text.moments import Clock, Day, Weekday
from steelyard.text.quantities import numbers
from steelyard.text.values import Name, Value, figures

# In characters, and in values. A claim is a sentence; of more values in the passages only equal ones are looked for.
LONGEST, MOST_OWN, MOST_KNOWN = 2000, 40, 2000
# What a number counts, where it is no unit that is known: 8 GB, 70分, 第二排, the third floor.
NOUN = re.compile(r"[\s-]?(?:of the )?([A-Za-z%]+|[\u4e00-\u9fff])")
# Where no word follows, the one before tells: a population of 900,000; 评分为7.
LEAD = re.compile(
    r"((?<![A-Za-z])[A-Za-z]++|[\u4e00-\u9fff])(?:\s?(?:\b(?:of|is|was|are|were|about|over|up|to|at)\b|[为為是达達约約有:])){0,3}+\s?\Z"
)
NEAR = 40
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
ORDINAL = re.compile(rf"(?<!\ba )\b({'|'.join(ORDINALS)})\b(?= [a-z])", re.IGNORECASE)
# As often an article or part of a word as a number; 參觀 and 大陆 have old numerals in them.
NO_NUMBER = re.compile(
    r"[一半十百零]|one|an?|half|[壹贰貳叁參肆伍陆陸柒捌玖]\D?|一[个個名位座](?:人|座位)?", re.IGNORECASE
)
RANGE = re.compile(r"\s?(?:-|~|至|到|to|through|until)\s?")


class Stated(NamedTuple):
    """A value that a text states, and the noun behind it."""

    value: Value
    text: str
    noun: str
    start: int
    range: tuple[Value, Value] | None = None
    """The two ends, where this is one of them: Tuesday to Sunday."""


class Clash(NamedTuple):
    """Two values of which one stands in the place of the other."""

    kind: Literal["quantity", "date", "name"]
    claimed: str
    stated: str
    at: int = 0
    """Where the claim has its own, folded."""


def stated(text: str) -> tuple[Stated, ...]:
    """The values of a sentence."""
    return _stated(text[:LONGEST])


@lru_cache(maxsize=4096)
def _stated(text: str) -> tuple[Stated, ...]:
    text = fold(text)
    found: list[Stated] = []
    ends = -1
    for figure in figures(text):
        if NO_NUMBER.fullmatch(figure.text) and not isinstance(figure.value, Name):
            continue
        start, end, is_ordinal = figure.start, figure.end, text[figure.start - 1 : figure.start] == "第"
        noun = NOUN.match(text, end)
        if noun is None:
            lead = LEAD.search(text[max(0, start - NEAR) : start])
            word = lead[1].lower() if lead else ""
        else:
            word = noun[1].lower().removesuffix("s")
        if is_ordinal:
            start, end = start - 1, noun.end() if noun else end
        one = Stated(figure.value, text[start:end].strip(), in_simplified(word), start)
        if found and ends >= 0 and RANGE.fullmatch(text, ends, figure.start):
            ends_of = found[-1].value, one.value
            found[-1], one = found[-1]._replace(range=ends_of), one._replace(range=ends_of)
        found.append(one)
        ends = figure.end
    for match in ORDINAL.finditer(text):
        number = str(ORDINALS.index(match[1].lower()) + 1)
        noun = NOUN.match(text, match.end())
        word = noun[1].lower().removesuffix("s") if noun else ""
        found.append(Stated(Name(number), match[1], word, match.start()))
    return tuple(found)


def agree(claimed: Stated, other: Stated) -> bool | None:
    """Whether two values are the same, as finely as the coarser one is written; None where they are not comparable."""
    match claimed.value, other.value:
        case Measure() as a, Measure() as b:
            if not comparable(a, b):
                return None
            left, right = aligned(a, b)
            if left.value == right.value or agree_as_written(left, right):
                return True
            found = False if _count_the_same(claimed, other) else None
        case Name() as a, Name() as b:
            if a.text.casefold() == b.text.casefold() or _numbers(a.text) == _numbers(b.text) != ():
                return True
            # L9 and port 5432 are names of different things; 第二排 and 第三排 are not.
            return False if claimed.noun == other.noun and _form(a.text) == _form(b.text) else None
        case (Day() as a, Day() as b) | (Clock() as a, Clock() as b):
            found = a.fits(b)  # type: ignore[arg-type]
        case a, b if type(a) is type(b):
            found = a == b
        case _:
            return _across(claimed, other)
    # Wednesday is neither end of Tuesday to Sunday, and still no other day.
    return None if found is False and _lies_within(claimed, other) else found


def _across(claimed: Stated, other: Stated) -> bool | None:
    """2层 and 第二层, 1889 and the year 1889: one value written as two kinds can agree, but never clash."""
    is_one = _numbers(claimed.text) == _numbers(other.text) != ()
    is_year = any(isinstance(one.value, Day) and one.text.isdigit() for one in (claimed, other))
    return True if is_one and (is_year or claimed.noun == other.noun) else None


def _count_the_same(claimed: Stated, other: Stated) -> bool:
    """Whether two values measure the same, by their unit or else by the noun that follows them."""
    units = [one.value.unit.dimension for one in (claimed, other) if isinstance(one.value, Measure)]
    # 个 says nothing of what there are so many.
    if any(units) and units != ["pieces", "pieces"]:
        return units[0] == units[1]
    return claimed.noun == other.noun != ""


def _lies_within(claimed: Stated, other: Stated) -> bool:
    """Whether a value lies between the two ends that the other is one of; an end is held against the ends."""
    if claimed.range or not other.range:
        return False
    places = [_place(value) for value in (other.range[0], claimed.value, other.range[1])]
    if None in places or type(other.range[0]) is not type(other.range[1]):
        return False
    low, here, high = places
    return low <= here <= high if low <= high else here >= low or here <= high  # type: ignore[operator]


def _place(value: Value) -> Fraction | int | None:
    match value:
        case Measure():
            return value.value
        case Clock():
            return value.minutes
        case Weekday():
            return value.at
        case Day(year=int() as year, month=None):
            return year
    return None


@lru_cache(maxsize=4096)
def _numbers(text: str) -> tuple[Fraction, ...]:
    return tuple(numbers(text))


def _form(code: str) -> str:
    """Letters and the places of digits: two codes of one kind have the same form."""
    return re.sub(r"[\d一二三四五六七八九十]+", "0", code).casefold()


class Values:
    """The values of all passages, read once for many claims."""

    def __init__(self, sentences: Iterable[str]) -> None:
        found = dict.fromkeys(one._replace(start=0) for sentence in sentences for one in stated(sentence))
        self._equal = {_key(one) for one in found}
        self._near = list(found)[:MOST_KNOWN]

    def missing(self, claim: str) -> list[Stated]:
        """The values of a claim that no sentence states."""
        own = stated(claim)[:MOST_OWN]
        return [
            one for one in own if _key(one) not in self._equal and not any(agree(one, other) for other in self._near)
        ]

    def clash(self, claim: str, sentence: str) -> Clash | None:
        """A value of the claim that no sentence states, and the value in its place in the sentence it is about."""
        own = stated(claim)[:MOST_OWN]
        free = [other for other in stated(sentence) if not any(agree(mine, other) for mine in own)]
        for one in self.missing(claim):
            if rivals := [other for other in free if agree(one, other) is False]:
                rival = min(rivals, key=lambda other: (other.noun != one.noun, abs(other.start - one.start)))
                return Clash(_kind(one.value), one.text, rival.text, one.start)
        return None

    def rounded(self, claim: str, sentence: str) -> Clash | None:
        """A quantity of the claim that the sentence has more or less finely: 3.1万 for 31,200."""
        for one in stated(claim)[:MOST_OWN]:
            if not isinstance(one.value, Measure) or _key(one) in self._equal:
                continue
            for other in stated(sentence):
                if isinstance(other.value, Measure) and agree(one, other):
                    left, right = aligned(one.value, other.value)
                    return None if left.value == right.value else Clash("quantity", one.text, other.text, one.start)
        return None


def missing(claim: str, sentences: Iterable[str]) -> list[Stated]:
    return Values(sentences).missing(claim)


def clash(claim: str, sentence: str, sentences: Iterable[str]) -> Clash | None:
    return Values(sentences).clash(claim, sentence)


def _key(one: Stated) -> object:
    return (one.value.unit.dimension, one.value.value) if isinstance(one.value, Measure) else one.value


def _kind(value: Value) -> Literal["quantity", "date", "name"]:
    if isinstance(value, Name):
        return "name"
    return "quantity" if isinstance(value, Measure) else "date"


# --- the kind of a difference, which the tolerance wants to know -----------------------------------

POLITICAL = re.compile(
    r"总统|主席|总理|首相|选举|大选|条约|独立|战争|战役|起义|革命|政变|宪法|建国|开国|回归|政府|议会|国会|国务院|党|外交"
    r"|人大|政协|建交|制裁|公投|停战|投降|政权|王朝"
    r"|\b(?:presiden\w+|prime minister|chancellor|elect\w*|treaty|independence|wars?|battle|revolution|coup"
    r"|constitution|parliament|congress|senate|referendum|government|political|armistice|ceasefire|legislation|annex\w*)\b"
)
# Aggregates that sources themselves give roughly, by what is measured: people and things counted, money, time, space.
COUNTED = re.compile(
    r"人口|居民|伤亡|死亡|遇难|死难|丧生|阵亡|遇害|屠杀|观众|参观|入馆|入园|游客|访客|客流|收视|播放量|阅读量|粉丝|产量|储量"
    r"|\b(?:population|inhabitants|residents|casualt\w+|deaths?|dead|killed|died|audience|viewers"
    r"|visitors|attendance|spectators|followers|reserves)\b"
)
MONEY = re.compile(r"票房|生产总值|总产值|\b(?:box[ -]office|gross\w*|gdp)\b")
AGE = re.compile(
    r"年前|距今|化石|恐龙|宇宙|星系|\b(?:years ago|[mb]illion years|fossils?|dinosaurs?|universe|galax\w+)\b"
)
SPACE = re.compile(r"光年|地球|月球|太阳|行星|恒星|\b(?:light[ -]years?|earth|moon|sun|planets?|stars?|galax\w+)\b")
BY_DIMENSION = {
    **dict.fromkeys(("yuan", "dollars", "euros", "pounds sterling"), MONEY),
    **dict.fromkeys(("months", "seconds"), AGE),
    **dict.fromkeys(("metres", "light years"), SPACE),
}
# What a reader acts on, whatever else the sentence speaks of.
TO_ACT_ON = re.compile(
    r"票价|门票|价格|售价|费用|押金|罚款|收费|免费|不得|限[制于定]|[上下]限|不超过|最多|至少|以内|必须|应当|规定|载客|座位|容量"
    r"|剂量|每[天日次周人]|\b(?:price|fee|fare|ticket|deposit|fine|limit|m[ai][xn]imum|at most|at least|no more than"
    r"|up to|must|required?|dose|seats?|capacity)\b"
)


def difference_of(found: Clash, around: str) -> Difference | None:
    """The clash as a difference with its kind; `around` is all that is said there. None for a name: it is exact."""
    words = in_simplified(fold(around)).lower()
    if found.kind == "name":
        return None
    if found.kind == "date":
        return Difference(
            kind="political_date" if POLITICAL.search(words) else "date", claimed=found.claimed, stated=found.stated
        )
    is_rough = _is_statistic(found.stated, words)
    kind: Literal["statistic", "specification"] = "statistic" if is_rough else "specification"
    return Difference(kind=kind, claimed=found.claimed, stated=found.stated)


def _is_statistic(value: str, words: str) -> bool:
    """A statistic only where the words say so; in doubt it is a specification."""
    found = measure(value)
    unit = found.unit if found else None
    is_known = bool(unit and unit.is_known)
    if unit and is_known and unit.dimension not in BY_DIMENSION:
        return False
    speaks = BY_DIMENSION.get(unit.dimension if unit else "", COUNTED)
    # 光年 and 地球 make a bare number a distance, 票房 makes it money.
    is_told = speaks.search(words) or (not is_known and (MONEY.search(words) or SPACE.search(words)))
    return bool(is_told) and not TO_ACT_ON.search(words)


def mended(claim: str, found: Clash) -> str:
    """The claim with the passage's own value in it."""
    claim = fold(claim)
    return claim[: found.at] + found.stated + claim[found.at + len(found.claimed) :]
