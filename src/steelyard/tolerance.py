"""How far apart a claimed and a stated value may be: the one place that decides it, whoever found the difference.

Only figures that sources themselves give roughly have a margin: statistics are right when their order of magnitude is.
Specifications must be equal, or agree as finely as the coarser of the two is written. Of a date the year must be right,
of a political one all of it. `Tolerance` changes that.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

from steelyard.measures import LONGEST_VALUE, Measure, agree_as_written, aligned, clock, comparable, measure
from steelyard.quantities import HAN_DIGIT, han_number, numbers, same_magnitude
from steelyard.records import Tolerance, ValueDifference
from steelyard.tasks import Difference
from steelyard.text import fold

Ruling = Literal["same", "within", "beyond"]
"""The values are equal; they differ, but the tolerance lets it pass; they differ too much."""

# Ordinals, models, versions, codes and identifiers: nothing near them is right.
NAMING = re.compile(
    r"第|号(?![码召])|號(?![碼召])|版本|型号|型號|编号|編號|端口|车次|車次|航班"
    r"|[A-Za-z][-.]?\d|\d(?:st|nd|rd|th)\b|#\s?\d|(?<!\d)\d++\.\d++\.\d"
    r"|\b(?:port|version|room|gate|line|route|flight|model|channel|chapter|section|article|page|type|grade|level|floor"
    r"|platform|track|step|series|no\.|number)\s\d",
    re.IGNORECASE,
)
# iPhone 15, Windows 11: a word with a capital letter before a bare number, unless it only says about how many.
NAMED = re.compile(r"\A(?!(?:About|Around|Over|Some|Nearly|Almost|Roughly)\b)(?=[A-Za-z]*[A-Z])[A-Za-z]+ \d+\Z")
# Neither money before a number nor a squared unit behind it makes a name: RMB300, 120 m2.
NOT_NAMING = re.compile(r"\b(?:rmb|cny|usd|eur|gbp|jpy|hkd)\s?(?=\d)|(?<=[\d\s])[kcm]?m[23]\b", re.IGNORECASE)


def ruling(difference: Difference | ValueDifference, tolerance: Tolerance) -> Ruling | None:
    """What becomes of a difference; None where code cannot tell and the judge's own label stands."""
    claimed, stated = fold(difference.claimed).strip(), fold(difference.stated).strip()
    if max(len(claimed), len(stated)) > LONGEST_VALUE or _plain(claimed) == _plain(stated):
        return None
    if _is_name(claimed) or _is_name(stated):
        # 第2排 and 第二排 are one name; beside the number it is for the judge to say.
        return None if numbers(claimed) == numbers(stated) else "beyond"
    if difference.kind in ("date", "political_date"):
        found = _dates(claimed, stated, difference.kind, tolerance)
        if found is not None or dates(claimed) or dates(stated):
            return found
        # A time of day, or a weekday.
        return _specifications(claimed, stated)
    return _quantities(claimed, stated, difference.kind == "statistic", tolerance)


def _plain(text: str) -> str:
    return "".join(text.casefold().split())


def _is_name(text: str) -> bool:
    bare = NOT_NAMING.sub("", text)
    return bool(NAMING.search(bare) or NAMED.match(bare)) and not dates(text)


# --- quantities ------------------------------------------------------------------------------------


def _quantities(claimed: str, stated: str, is_statistic: bool, tolerance: Tolerance) -> Ruling | None:
    if _is_moment(claimed) and _is_moment(stated):
        # A time of day has no order of magnitude.
        return _specifications(claimed, stated)
    policy = tolerance.quantities
    left, right = _value(claimed), _value(stated)
    is_specification = not is_statistic and policy in ("statistics", "exact")
    if left is None or right is None or not comparable(left, right):
        return _specifications(claimed, stated) if is_specification else None
    left, right = aligned(left, right)
    if left.value == right.value:
        # More than 100 is not 100, but how it differs is for the judge to say.
        return "same" if left.bound == right.bound or "about" in (left.bound, right.bound) else None
    return "within" if _tolerated(left, right, is_statistic, policy) else "beyond"


def _is_moment(text: str) -> bool:
    return clock(text) is not None or weekday(text) is not None or any(day.month for day in dates(text))


def _value(text: str) -> Measure | None:
    found = measure(text)
    if found is None and (start := re.search(r"[$€£¥₩]?\s?-?\d", text)):
        # "costs 300 dollars": the word before is no name, or _is_name would have said so.
        found = measure(text[start.start() :])
    return found


def _tolerated(claimed: Measure, stated: Measure, is_statistic: bool, policy: str) -> bool:
    """Whether two different values are near enough."""
    match policy:
        case "exact":
            return False
        case "magnitude":
            return same_magnitude(claimed.value, stated.value)
        case "statistics":
            # A percentage or a rate is something to act on, whoever calls it a statistic.
            if is_statistic and stated.unit.dimension != "percent":
                return same_magnitude(claimed.value, stated.value)
            return agree_as_written(claimed, stated)
        case _:
            share = Fraction(policy.removesuffix("%")) / 100
            return abs(claimed.value - stated.value) <= share * abs(stated.value)


def _specifications(claimed: str, stated: str) -> Ruling | None:
    """Values that are no single measure: times of day, dates, ranges, sizes. They are equal or they are not."""
    times = clock(claimed), clock(stated)
    if times[0] and times[1]:
        (left, left_is_plain), (right, right_is_plain) = times[0], times[1]
        if left == right:
            return "same"
        # 3:00 beside 15:00 may be the same hour.
        return "beyond" if (left - right) % 720 or (left_is_plain and right_is_plain) else None
    weekdays = weekday(claimed), weekday(stated)
    if None not in weekdays:
        return "same" if weekdays[0] == weekdays[1] else "beyond"
    left_dates, right_dates = dates(claimed), dates(stated)
    if left_dates and right_dates and len(left_dates) == len(right_dates):
        return "same" if all(a.fits(b) for a, b in zip(left_dates, right_dates, strict=True)) else "beyond"
    if measure(claimed) and measure(stated):
        # 一个月 and 30天, 5 kg and 5 boxes: what cannot be converted is the judge's.
        return None
    left_numbers, right_numbers = numbers(claimed), numbers(stated)
    if not left_numbers or not right_numbers or left_numbers == right_numbers:
        return None
    return "beyond"


# --- dates -----------------------------------------------------------------------------------------


class Day(NamedTuple):
    """A date as far as it is written."""

    year: int | None
    month: int | None
    day: int | None

    def fits(self, other: Day) -> bool:
        """Whether nothing that both say differs: 1949年10月 fits 1949年10月1日."""
        both = [(a, b) for a, b in zip(self, other, strict=True) if a is not None and b is not None]
        return bool(both) and all(a == b for a, b in both)


MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), start=1)
    for name in names.split()
}  # fmt: skip
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
WEEKDAYS = {name: at for at, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())}
HAN_WEEKDAYS = {name: at for at, name in enumerate("一二三四五六日")} | {"天": 6}
WEEKDAY = re.compile(
    rf"(?:星期|周|週|礼拜|禮拜)(?P<zh>[一二三四五六日天])|\b(?P<en>{'|'.join(WEEKDAYS)})s?\b", re.IGNORECASE
)
SMALL = rf"(?:\d{{1,2}}|[{HAN_DIGIT}十廿卅]{{1,3}})"
DATE = re.compile(
    rf"(?P<bc>公元前|西元前|前)?(?P<zy>(?<!\d)\d{{4}}|[{HAN_DIGIT}]{{4}}|(?<=元)\d{{1,4}}|(?<=前)\d{{1,4}})\s?年(?:\s?(?P<zm>{SMALL})\s?月(?:份|\s?(?P<zd>{SMALL})\s?[日号號]?)?)?"
    rf"|(?<!\d)(?P<m>{SMALL})\s?月(?:份|\s?(?P<d>{SMALL})\s?[日号號])"
    rf"|(?<!\d)(?P<iy>[12]\d{{3}})[-/.](?P<im>\d{{1,2}})(?:[-/.](?P<id>\d{{1,2}}))?(?!\d)"
    rf"|\b(?P<em>{MONTH})\b\.?\s+(?P<ed>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<ey>[12]\d{{3}})\b)?"
    rf"|\b(?:(?P<fd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<fm>{MONTH})\b\.?,?(?:\s+(?P<fy>[12]\d{{3}})\b)?"
    rf"|(?<![\d.,$¥€£-])(?P<y>1\d{{3}}|20\d{{2}}|2100)(?![\d,.%]|\s?(?!B\.?C)[A-Za-z万亿元个個人米])(?P<bce>\s?B\.?C)?",
    re.IGNORECASE,
)


def dates(text: str) -> list[Day]:
    """The dates of a text, in order; years before our era are negative."""
    found = []
    for match in DATE.finditer(fold(text)):
        part = match.groupdict()
        year = _number(part["zy"] or part["iy"] or part["ey"] or part["fy"] or part["y"])
        named = part["em"] or part["fm"]
        month = MONTHS[named.lower()] if named else _number(part["zm"] or part["m"] or part["im"])
        day = _number(part["zd"] or part["d"] or part["id"] or part["ed"] or part["fd"])
        if year is not None and (part["bc"] or part["bce"]):
            year = -year
        if 1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31:
            found.append(Day(year, month, day))
    return found


def weekday(text: str) -> int | None:
    """The one day of the week that a text names, from 0 for Monday."""
    found = [HAN_WEEKDAYS[m["zh"]] if m["zh"] else WEEKDAYS[m["en"].lower()] for m in WEEKDAY.finditer(text)]
    return found[0] if len(found) == 1 else None


def _number(text: str | None) -> int | None:
    if not text:
        return None
    value = Fraction(text) if text.isascii() else han_number(text)
    return None if value is None else int(value)


def _dates(claimed: str, stated: str, kind: str, tolerance: Tolerance) -> Ruling | None:
    left, right = dates(claimed), dates(stated)
    if not left or len(left) != len(right):
        return None
    pairs = list(zip(left, right, strict=True))
    if all(a.fits(b) for a, b in pairs):
        return "same"
    if tolerance.dates == "exact" or (tolerance.dates == "seed" and kind == "political_date"):
        return "beyond"
    # Without a year a date is its month and day, and those differ.
    return "within" if all(a.year == b.year and a.year is not None for a, b in pairs) else "beyond"
