"""Dates, days of the week and times of day, as far as they are written."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from steelyard.text.quantities import HAN_DIGIT, HAN_NUMERAL, han_number


class Day(NamedTuple):
    """A date as far as it is written; years before our era are negative."""

    year: int | None
    month: int | None = None
    day: int | None = None

    def fits(self, other: Day) -> bool | None:
        """Whether nothing that both say differs: 1949年10月 fits 1949年10月1日. None where they say nothing alike."""
        both = [(a, b) for a, b in zip(self, other, strict=True) if a is not None and b is not None]
        return all(a == b for a, b in both) if both else None


class Weekday(NamedTuple):
    """A day of the week, from 0 for Monday."""

    at: int


class Clock(NamedTuple):
    """Minutes since midnight, and whether it is plain which half of the day is meant."""

    minutes: int
    is_plain: bool

    def fits(self, other: Clock) -> bool | None:
        """Whether both are one time; None for 3:00 beside 15:00, which may be the same hour."""
        gap = self.minutes - other.minutes
        return None if gap and gap % 720 == 0 and not (self.is_plain and other.is_plain) else not gap


Moment = Day | Weekday | Clock

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
    rf"|(?<!\d)(?P<m>{SMALL})\s?月(?:份|\s?(?P<d>{SMALL})\s?[日号號])?"
    rf"|(?<!\d)(?P<iy>[12]\d{{3}})[-/.](?P<im>\d{{1,2}})(?:[-/.](?P<id>\d{{1,2}}))?(?!\d)"
    rf"|(?<![\d/.-])(?P<p>\d{{1,2}})(?P<sep>[/.-])(?P<q>\d{{1,2}})(?P=sep)(?P<py>[12]\d{{3}})(?![\d/.-])"
    rf"|\b(?P<em>{MONTH})\b\.?\s+(?P<ed>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<ey>[12]\d{{3}})\b)?"
    rf"|\b(?:(?P<fd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<fm>{MONTH})\b\.?,?(?:\s+(?P<fy>[12]\d{{3}})\b)?",
    re.IGNORECASE,
)
BARE_YEAR = re.compile(
    r"(?<![\d.,$¥€£])(?P<y>1\d{3}|20\d{2}|2100)(?![\d,%]|\.\d|\s?(?!B\.?C)[A-Za-z万亿元个個人米])(?P<bce>\s?B\.?C\b)?",
    re.IGNORECASE,
)
CLOCK = re.compile(
    r"(?P<day>凌晨|清晨|早上|早晨|上午|中午|午后|午後|下午|傍晚|晚上|夜里|晚间)?\s?"
    rf"(?:(?<!\d)(?P<hour>\d{{1,2}})(?::(?P<minute>\d{{2}})(?![:\d])|[时時点點](?:(?P<hm>\d{{1,2}})分?)?)"
    rf"|(?P<han>[{HAN_NUMERAL}]{{1,3}})[点點時时](?:(?P<han_minute>[{HAN_NUMERAL}]{{1,3}})(?P<fen>分)?)?"
    r"|(?<!\d)(?P<whole>\d{1,2})(?=\s?[ap]\.?m\b))(?P<half>半)?(?:钟|鐘|整)?\s?(?:(?P<m>[ap])\.?m\b\.?|o'clock)?",
    re.IGNORECASE,
)
LATE = frozenset(("午后", "午後", "下午", "傍晚", "晚上", "晚间"))


def moment_at(text: str, start: int, *, bare_years: bool) -> tuple[Moment, int] | None:
    """The moment that begins at a place of a folded text, and where it ends; a year may be a bare number or not."""
    if match := WEEKDAY.match(text, start):
        return Weekday(HAN_WEEKDAYS[match["zh"]] if match["zh"] else WEEKDAYS[match["en"].lower()]), match.end()
    match = DATE.match(text, start)
    if match and (day := _day(match)):
        return day, match.end()
    if bare_years and (match := BARE_YEAR.match(text, start)):
        return Day(-int(match["y"]) if match["bce"] else int(match["y"])), match.end()
    match = CLOCK.match(text, start)
    if match and (time := _clock(match)):
        return time, match.end()
    return None


def _day(match: re.Match[str]) -> Day | None:
    part = match.groupdict()
    year = _number(part["zy"] or part["iy"] or part["ey"] or part["fy"] or part["py"])
    named = part["em"] or part["fm"]
    month = MONTHS[named.lower()] if named else _number(part["zm"] or part["m"] or part["im"])
    day = _number(part["zd"] or part["d"] or part["id"] or part["ed"] or part["fd"])
    if part["py"]:
        low, high = sorted((int(part["p"]), int(part["q"])))
        # 5/1/2023 is two dates, 25/12/2023 only one.
        if low != high and high <= 12:
            return None
        month, day = low, high
    if year is not None and part["bc"]:
        year = -year
    written = [month] if month is not None else []
    is_date = all(1 <= number <= 12 for number in written) and (day is None or 1 <= day <= 31)
    return Day(year, month, day) if is_date and (year, month, day) != (None, None, None) else None


def _clock(match: re.Match[str]) -> Clock | None:
    hour = _number(match["hour"] or match["whole"] or match["han"])
    minute = 30 if match["half"] else _number(match["minute"] or match["hm"] or match["han_minute"] or "0")
    if hour is None or minute is None or hour > 24 or minute > 59:
        return None
    if match["han_minute"] and "十" not in match["han_minute"] and not (match["fen"] or match["day"]):
        # 三点五 is a number.
        return None
    if match["m"]:
        hour = hour % 12 + (12 if match["m"].lower() == "p" else 0)
    elif match["day"] in LATE and hour < 12:
        hour += 12
    return Clock(
        hour * 60 + minute, bool(match["m"] or match["day"] or hour > 12 or (match["hour"] or "").startswith("0"))
    )


def _number(text: str | None) -> int | None:
    if not text:
        return None
    value = Fraction(text) if text.isascii() else han_number(text)
    return None if value is None else int(value)
