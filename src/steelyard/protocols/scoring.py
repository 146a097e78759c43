"""From labels to numbers: ratios, bands, gates and weighted means. Exact arithmetic, no I/O, no floats inside.

Where nothing can be said (an empty denominator, all items unjudged) that is `None`, never 0 and never 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Number = float | int | None


def ratio(part: int, whole: int) -> Fraction | None:
    """part / whole, or None where there is nothing to divide by."""
    return Fraction(part, whole) if whole else None


def plain(value: Fraction | None) -> Number:
    """A fraction as JSON can hold it; whole numbers stay whole."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


# --- bands -----------------------------------------------------------------------------------------


def band(value: Fraction) -> int:
    """Which of the ten bands a ratio falls into: 0 (below 0.1) to 9 (0.9 and above)."""
    part, whole = value.as_integer_ratio()
    if not 0 <= part <= whole:
        raise ValueError(f"a ratio lies between 0 and 1, not {value}")
    return min(10 * part // whole, 9)


def band_score(value: Fraction) -> int:
    """The ratio placed linearly inside its band's score range, rounded half up."""
    k, (part, whole) = band(value), value.as_integer_ratio()
    width = 10 if k == 9 else 9
    # 10k + (10·value - k)·width, over a common denominator: whole numbers are ten times as fast as Fractions.
    return (2 * (10 * k * whole + (10 * part - k * whole) * width) + whole) // (2 * whole)


def band_of_score(score: int) -> int:
    """The band a score from 0 to 100 belongs to."""
    return min(score // 10, 9)


# --- gates and weights -----------------------------------------------------------------------------


def conjunction(labels: Iterable[int | str | None]) -> int | None:
    """AND of 0/1 labels. One 0 settles it; otherwise anything unknown leaves it unknown."""
    known = list(labels)
    if 0 in known:
        return 0
    return 1 if known and all(label == 1 for label in known) else None


def composite(scores: Mapping[str, Number], weights: Mapping[str, float]) -> Number:
    """The weighted mean of the user's metrics; null as soon as one of them is, so that samples stay comparable."""
    exact = {name: Fraction(str(weight)) for name, weight in weights.items() if weight}
    values = {name: scores[name] for name in exact}
    if not exact or any(value is None for value in values.values()):
        return None
    total = sum((exact[n] * Fraction(str(values[n])) for n in exact), Fraction(0))
    return plain(total / sum(exact.values()))
