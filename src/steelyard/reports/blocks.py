"""The parts a page is made of, before it becomes terminal output or Markdown: plain text, no markup.

Judged text is hostile: it goes through `clean` here and through the renderer's own escaping there.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from steelyard.protocols.vocabulary import Scale
from steelyard.reports.model import Estimate
from steelyard.stats import Interval

Tone = Literal["good", "bad", "open", "plain"]
NOT_APPLICABLE = "–"


@dataclass(frozen=True)
class Curve:
    """How often a judge is right (upright) where it is so sure (along), and the same in words. It is drawn where a page
    can draw; a table below it has the numbers."""

    points: tuple[tuple[float, Estimate], ...]
    in_words: str
    axes: tuple[str, str]


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2
    curve: Curve | None = None


@dataclass(frozen=True)
class TonedText:
    """A word that may be coloured; it says the same without colour."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Table:
    """`align` has one letter per column: `l` is text and may wrap, `r` is a number and is never cut.

    Where `grouped`, rows with the same first cell belong together.
    """

    columns: tuple[str, ...]
    align: str
    rows: tuple[tuple[str | TonedText, ...], ...]
    grouped: bool = False


@dataclass(frozen=True)
class Lines:
    """Short paragraphs, as a list where `listed`."""

    lines: tuple[str, ...]
    listed: bool = False


@dataclass(frozen=True)
class Passage:
    """Text from outside, shown as a quotation; `marks` are the spans that serve as evidence."""

    text: str
    title: str = ""
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Entry:
    """One labelled item: its number and text, its labels, and what is known about it."""

    number: int
    text: str
    labels: tuple[TonedText, ...]
    facts: tuple[tuple[str, str], ...] = ()


Block = Heading | Table | Lines | Passage | Entry


# --- text ------------------------------------------------------------------------------------------

JOINERS = "\u200c\u200d"


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    if character == "\n":
        return character
    if character in "\t\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    # Cc moves the cursor, Cf turns the reading direction or hides text; joiners only build emoji and words.
    return "" if category == "Cc" or (category == "Cf" and character not in JOINERS) else character


def clean(text: str) -> str:
    """Text without control, bidirectional and other invisible characters; line breaks stay."""
    text = text.replace("\r\n", "\n")
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def one_line(text: str, longest: int | None = None) -> str:
    """Cleaned text on one line, cut with … where it is longer than that."""
    if longest is not None:
        text = text[: 4 * longest]
    text = " ".join(clean(text).split())
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


# --- numbers ---------------------------------------------------------------------------------------


def minus(text: str) -> str:
    """A number as it is printed: with a minus sign where the machine writes a hyphen."""
    return text.replace("-", "\u2212")


def _one_decimal(value: float, low: float, high: float) -> str:
    """One decimal; only the ends themselves are shown as the ends, so 99.97 never reads as 100."""
    rounded = round(value, 1)
    if low < value < high:
        rounded = min(max(rounded, low + 0.1), high - 0.1)
    return minus(f"{rounded:.1f}")


def number(value: float | None, scale: Scale) -> str:
    """A value as people read it: 83.3% of a ratio, 73.4 points, any other number as it is."""
    if value is None:
        return NOT_APPLICABLE
    if scale in ("ratio", "binary"):
        return _one_decimal(value * 100, 0.0, 100.0) + "%"
    return _one_decimal(value, 0.0, 100.0) if scale == "points" else minus(f"{value:.4g}")


def score(value: float | None, scale: Scale) -> str:
    """One sample's score: points are whole numbers there."""
    if value is None or scale != "points" or value != int(value):
        return number(value, scale)
    return str(int(value))


def interval(ends: Interval | None, scale: Scale) -> str:
    if ends is None:
        return NOT_APPLICABLE
    low, high = (number(end, scale) for end in ends)
    return f"{low.removesuffix('%')}–{high}" if scale not in ("number", "count") else f"{low} … {high}"


def estimate_cells(estimate: Estimate, scale: Scale) -> tuple[str, ...]:
    """The five cells that every number comes with: value, interval, n, not applicable, unjudged."""
    counts = (estimate.n, estimate.n_null, estimate.n_unjudged)
    return (number(estimate.value, scale), interval(estimate.interval, scale), *map(str, counts))


def share(part: int, whole: int) -> str:
    return number(part / whole if whole else None, "ratio")
