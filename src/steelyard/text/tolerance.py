"""How far apart a claimed and a stated value may be: the one place that decides it, whoever found the difference.

Only figures that sources themselves give roughly have a margin: statistics are right when their order of magnitude is.
Specifications must be equal, or agree as finely as the coarser of the two is written. Of a date the year must be right,
of a political one all of it. `Tolerance` changes that.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from steelyard.records import Tolerance, ValueDifference
from steelyard.tasks import Difference
from steelyard.text import fold
from steelyard.text.measures import LONGEST_VALUE, Measure, agree_as_written, aligned, comparable
from steelyard.text.moments import Clock, Day
from steelyard.text.quantities import numbers, same_magnitude
from steelyard.text.values import Contents, Name, Value, read

Ruling = Literal["same", "within", "beyond"]
"""The values are equal; they differ, but the tolerance lets it pass; they differ too much."""


def ruling(difference: Difference | ValueDifference, tolerance: Tolerance) -> Ruling | None:
    """What becomes of a difference; None where code cannot tell and the judge's own label stands.

    Code can tell only where it read every number, and every other word stands on both sides.
    """
    claimed, stated = fold(difference.claimed).strip(), fold(difference.stated).strip()
    if max(len(claimed), len(stated)) > LONGEST_VALUE or _plain(claimed) == _plain(stated):
        return None
    is_date = difference.kind in ("date", "political_date")
    left, right = read(claimed, bare_years=is_date), read(stated, bare_years=is_date)
    if left is None or right is None or not left.values or not _are_alike(left, right):
        return None
    pairs = list(zip(left.values, right.values, strict=True))
    equal = [_equal(a, b, is_alone=len(pairs) == 1) for a, b in pairs]
    if None in equal:
        return None
    differing = [pair for pair, is_equal in zip(pairs, equal, strict=True) if not is_equal]
    if not differing:
        return "same"
    if is_date and any(isinstance(value, Day) for value in left.values):
        return _dates(pairs, differing, difference.kind, tolerance)
    return _quantities(pairs, differing, difference.kind == "statistic", tolerance)


def _plain(text: str) -> str:
    return "".join(text.casefold().split())


def _are_alike(left: Contents, right: Contents) -> bool:
    return left.words == right.words and [type(value) for value in left.values] == [
        type(value) for value in right.values
    ]


def _equal(claimed: Value, stated: Value, *, is_alone: bool) -> bool | None:
    """Whether two values are the same; None where they cannot be compared."""
    match claimed, stated:
        case Measure(), Measure():
            if not comparable(claimed, stated) or (not is_alone and claimed.unit.dimension != stated.unit.dimension):
                return None
            left, right = aligned(claimed, stated)
            if left.value != right.value:
                return False
            # More than 100 is not 100, but how it differs is for the judge to say.
            return True if left.bound == right.bound or "about" in (left.bound, right.bound) else None
        case Name(), Name():
            if claimed.text.casefold() == stated.text.casefold():
                return True
            # 第2排 and 第二排 are one name, 3.1 and 3.10 are two: that is for the judge to say.
            return None if numbers(claimed.text) == numbers(stated.text) else False
        case Day(), Day():
            return claimed.fits(stated)
        case Clock(), Clock():
            return claimed.fits(stated)
        case _:
            return claimed == stated


# --- quantities ------------------------------------------------------------------------------------

Pair = tuple[Value, Value]


def _quantities(pairs: list[Pair], differing: list[Pair], is_statistic: bool, tolerance: Tolerance) -> Ruling | None:
    policy = tolerance.quantities
    is_strict = policy == "exact" or (policy == "statistics" and not is_statistic)
    amounts = [(a, b) for a, b in differing if isinstance(a, Measure) and isinstance(b, Measure)]
    if len(amounts) < len(differing):
        # A name or a time of day has no order of magnitude.
        is_sure = is_strict or all(value.surely for pair in differing for value in pair if isinstance(value, Name))
        return "beyond" if is_sure else None
    if not is_strict and sum(isinstance(a, Measure) for a, _ in pairs) > 1:
        return None
    found = [_amount(*aligned(a, b), is_statistic, policy) for a, b in amounts]
    return "beyond" if "beyond" in found else None if None in found else "within"


def _amount(claimed: Measure, stated: Measure, is_statistic: bool, policy: str) -> Ruling | None:
    if _tolerated(claimed, stated, is_statistic, policy):
        return "within"
    # 50多人 may be 55人: how many more is for the judge to say.
    is_open = any(
        (a.bound == "above" and b.value > a.value) or (a.bound == "below" and b.value < a.value)
        for a, b in ((claimed, stated), (stated, claimed))
    )
    return None if is_open and policy == "statistics" else "beyond"


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


# --- dates -----------------------------------------------------------------------------------------


def _dates(pairs: list[Pair], differing: list[Pair], kind: str, tolerance: Tolerance) -> Ruling | None:
    if tolerance.dates == "exact" or (tolerance.dates == "seed" and kind == "political_date"):
        return "beyond"
    days = [(a, b) for a, b in pairs if isinstance(a, Day) and isinstance(b, Day)]
    # Without a year a date is its month and day, and those differ.
    if not all(a.year == b.year and a.year is not None for a, b in days):
        return "beyond"
    # In the right year, but at another hour or in another quarter: the judge's.
    return "within" if all(isinstance(a, Day) for a, _ in differing) else None
