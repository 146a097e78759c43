"""Charts as inline SVG. Colours come from the style sheet by class, so light, dark and print are its business.

Each chart that says something by itself has a title and a description for those who do not see it. The small bars
inside tables are hidden from them: the numbers stand in the same row.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from steelyard.protocols.vocabulary import BOUNDS, Scale
from steelyard.reports.blocks import minus, number
from steelyard.reports.model import Bin, Estimate, Spread
from steelyard.stats import Interval


class ChartPart(NamedTuple):
    """A share of a whole, as a stacked bar shows it."""

    name: str
    n: int
    tone: str
    sign: str = ""


class Series(NamedTuple):
    """One line of a line chart; a point without a value leaves a gap."""

    name: str
    points: Sequence[Estimate]


def _n(value: float) -> str:
    """A coordinate: short, and never in the exponent form that SVG readers stumble over."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def tag(name: str, content: Markup | str = "", **attributes: object) -> Markup:
    """An element with escaped attributes; `class_` and `view_box` become what SVG calls them."""
    names = {"class_": "class", "view_box": "viewBox"}
    given = "".join(
        f' {names.get(key) or key.replace("_", "-")}="{escape(_n(value) if isinstance(value, float) else value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{escape(content)}</{name}>")


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def svg(width: int | None, height: int, content: Markup, *, kind: str, title: str = "", desc: str = "") -> Markup:
    """A picture. With a title it is an image to everybody; without one it is decoration.

    With a width it keeps its proportions; without one it is as wide as its place and places its parts by percent.
    """
    seen = {"role": "img", "aria_label": f"{title}. {desc}" if desc else title} if title else {"aria_hidden": "true"}
    description = joined([tag("title", title), tag("desc", desc)]) if title else Markup("")
    return tag(
        "svg",
        description + content,
        class_=f"chart {kind}",
        view_box=f"0 0 {width} {height}" if width else None,
        width=width or "100%",
        height=height,
        focusable="false",
        **seen,
    )


# --- scales ----------------------------------------------------------------------------------------


def bounds_of(estimates: Iterable[Estimate], scale: Scale) -> Interval:
    """The ends of the axis: those of the scale; where it has none, those of the data."""
    low, high = BOUNDS[scale]
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    ends = [end for e in estimates for end in (*(e.interval or ()), e.value) if end is not None and math.isfinite(end)]
    low, high = min([0.0, *ends]), max([*ends, 0.0])
    return (low, high) if high > low else (low, low + 1.0)


def place(value: float, bounds: Interval, start: float, end: float) -> float:
    """Where a value lies between two coordinates; what is off the axis lies at its end."""
    low, high = bounds
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return start + (end - start) * share


def nice_ticks(most: int) -> list[int]:
    """Whole numbers from 0 to at least `most`, three to six of them, in steps of 1, 2 or 5 times ten."""
    step = 1
    while most / step > 5:
        digit = int(str(step)[0])
        step = step * 2 if digit in (1, 5) else step // 2 * 5
    return list(range(0, step * max(1, math.ceil(most / step)) + 1, step))


def tick_text(value: float, scale: Scale) -> str:
    """A value on an axis: without decimals where it has none."""
    if scale == "ratio":
        return minus(f"{value * 100:.4g}%")
    return minus(f"{value:.4g}")


# --- one estimate ----------------------------------------------------------------------------------

BAR_HEIGHT = 18


def percent(value: float, bounds: Interval) -> str:
    """Where a value lies on an axis that is as wide as its place."""
    return f"{_n(place(value, bounds, 0.0, 100.0))}%"


def _band(ends: Interval, bounds: Interval, y: float, height: float) -> Markup:
    low, high = (place(end, bounds, 0.0, 100.0) for end in ends)
    width = f"{_n(max(high - low, 0.4))}%"
    return tag("rect", x=f"{_n(low)}%", y=y, width=width, height=height, rx=2, class_="interval")


def interval_bar(estimate: Estimate, bounds: Interval) -> Markup:
    """The value as a stroke and its interval as a band, on a track from one end of the scale to the other."""
    middle = BAR_HEIGHT / 2
    parts = [tag("line", x1="0%", x2="100%", y1=middle, y2=middle, class_="track")]
    for x in ("0%", "50%", "100%"):
        parts.append(tag("line", x1=x, x2=x, y1=middle - 3, y2=middle + 3, class_="track"))
    if estimate.value is not None:
        if estimate.interval:
            parts.append(_band(estimate.interval, bounds, middle - 5, 10.0))
        x = percent(estimate.value, bounds)
        parts.append(tag("line", x1=x, x2=x, y1=middle - 6, y2=middle + 6, class_="value"))
    return svg(None, BAR_HEIGHT, joined(parts), kind="bar")


def bar_axis(bounds: Interval, scale: Scale) -> Markup:
    """The axis that stands above a column of such bars."""
    low, high = bounds
    ticks = ((low, "0%", "start"), ((low + high) / 2, "50%", "middle"), (high, "100%", "end"))
    parts = [
        tag("text", tick_text(value, scale), x=x, y=13, text_anchor=anchor, class_="tick") for value, x, anchor in ticks
    ]
    return svg(None, BAR_HEIGHT, joined(parts), kind="bar")


def difference_bar(value: float, ends: Interval | None, reach: float, tone: str) -> Markup:
    """A difference as a dot and its interval as a line, on a track from -reach to +reach with zero in the middle."""
    middle, bounds = BAR_HEIGHT / 2, (-reach, reach)
    parts = [
        tag("line", x1="0%", x2="100%", y1=middle, y2=middle, class_="track"),
        tag("line", x1="50%", x2="50%", y1=0, y2=BAR_HEIGHT, class_="zero-line"),
    ]
    if ends:
        x1, x2 = (percent(end, bounds) for end in ends)
        parts.append(tag("line", x1=x1, x2=x2, y1=middle, y2=middle, class_=f"spread {tone}"))
        parts += [tag("line", x1=x, x2=x, y1=middle - 4, y2=middle + 4, class_=f"spread {tone}") for x in (x1, x2)]
    parts.append(tag("circle", cx=percent(value, bounds), cy=middle, r=5, class_=f"point {tone}"))
    return svg(None, BAR_HEIGHT, joined(parts), kind="bar")


BEAM_HEIGHT = 68
WEIGHT = "M-4 14h8l5 16a3 3 0 0 1-3 4h-12a3 3 0 0 1-3-4z"


def beam(estimate: Estimate, scale: Scale, title: str, desc: str) -> Markup:
    """The steelyard itself: a graduated beam, the interval along it, and the weight hanging at the value."""
    bounds, y = bounds_of([estimate], scale), 26.0
    parts = [tag("line", x1="0%", x2="100%", y1=y, y2=y, class_="beam")]
    for step in range(21):
        reach = 7 if step % 10 == 0 else 5 if step % 2 == 0 else 3
        parts.append(tag("line", x1=f"{5 * step}%", x2=f"{5 * step}%", y1=y - reach, y2=y, class_="graduation"))
    if estimate.interval and estimate.value is not None:
        parts.append(_band(estimate.interval, bounds, y - 4, 8.0))
    if estimate.value is not None:
        hanging = tag("line", x1=0, x2=0, y1=-6, y2=14, class_="string") + tag("path", d=WEIGHT, class_="weight")
        parts.append(tag("svg", hanging, x=percent(estimate.value, bounds), y=y, overflow="visible"))
    for value, x, anchor in ((bounds[0], "0%", "start"), (bounds[1], "100%", "end")):
        parts.append(tag("text", tick_text(value, scale), x=x, y=y - 12, text_anchor=anchor, class_="tick"))
    return svg(None, BEAM_HEIGHT, joined(parts), kind="beam-chart", title=title, desc=desc)


# --- many samples ----------------------------------------------------------------------------------

HIST_WIDTH, HIST_HEIGHT = 360, 196


def histogram(
    bins: Sequence[Bin], mean: float | None, scale: Scale, title: str, desc: str, counted: str = ""
) -> Markup:
    """How many samples lie in each step of the scale; a line where their mean is. `counted` names the upright axis."""
    left, right, top, bottom = 34.0, HIST_WIDTH - 10.0, 34.0, HIST_HEIGHT - 26.0
    ticks = nice_ticks(max((b.n for b in bins), default=0))
    bounds = (bins[0].low, bins[-1].high)
    parts = [tag("text", counted, x=0.0, y=10, class_="tick")]
    for tick in ticks:
        y = bottom - (bottom - top) * tick / ticks[-1]
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="base" if tick == 0 else "grid"))
        parts.append(tag("text", str(tick), x=left - 6, y=y + 4, text_anchor="end", class_="tick"))
    for step in range(6):
        value = bounds[0] + (bounds[1] - bounds[0]) * step / 5
        x, anchor = place(value, bounds, left, right), "end" if step == 5 else "middle"
        x += 6 if step == 5 else 0
        parts.append(tag("text", tick_text(value, scale), x=x, y=bottom + 17, text_anchor=anchor, class_="tick"))
    if mean is not None:
        x = place(mean, bounds, left, right)
        parts.append(tag("line", x1=x, x2=x, y1=top - 14, y2=bottom, class_="mean"))
        parts.append(tag("path", d=f"M{_n(x - 4)} {_n(top - 20)}h8l-4 6z", class_="mean-mark"))
    for each in bins:
        if not each.n:
            continue
        x1, x2 = place(each.low, bounds, left, right), place(each.high, bounds, left, right)
        y = bottom - (bottom - top) * each.n / ticks[-1]
        parts.append(tag("rect", x=x1 + 1.5, y=y, width=x2 - x1 - 3, height=bottom - y, rx=2, class_="column"))
        parts.append(tag("text", str(each.n), x=(x1 + x2) / 2, y=y - 4, text_anchor="middle", class_="count"))
    return svg(HIST_WIDTH, HIST_HEIGHT, joined(parts), kind="histogram", title=title, desc=desc)


def amounts(spread: Spread, write: Callable[[float], str], title: str, desc: str, counted: str) -> Markup:
    """How many samples took which amount, in steps that grow; a line where the middle one is, a dotted one at 95 %."""
    left, right, top, bottom = 34.0, HIST_WIDTH - 10.0, 34.0, HIST_HEIGHT - 26.0
    bins, ticks = spread.bins, nice_ticks(max(b.n for b in spread.bins))
    step = (right - left) / len(bins)
    parts = [tag("text", counted, x=0.0, y=10, class_="tick")]
    for tick in ticks:
        y = bottom - (bottom - top) * tick / ticks[-1]
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="base" if tick == 0 else "grid"))
        parts.append(tag("text", str(tick), x=left - 6, y=y + 4, text_anchor="end", class_="tick"))
    edges = [bins[0].low, *(b.high for b in bins)]
    every = math.ceil(len(edges) / 6)
    for at in range(0, len(edges), every):
        parts.append(
            tag("text", write(edges[at]), x=left + step * at, y=bottom + 17, text_anchor="middle", class_="tick")
        )
    for at, each in enumerate(bins):
        y = bottom - (bottom - top) * each.n / ticks[-1]
        if each.n:
            parts.append(
                tag("rect", x=left + step * at + 1.5, y=y, width=step - 3, height=bottom - y, rx=2, class_="column")
            )
    for value, kind in ((spread.median, "mean"), (spread.p95, "mean late")):
        at = min(len(bins) - 1, max(0, bisect_right(edges, value) - 1))
        share = math.log(value / bins[at].low) / math.log(bins[at].high / bins[at].low)
        x = left + step * (at + min(1.0, max(0.0, share)))
        parts.append(tag("line", x1=x, x2=x, y1=top - 14, y2=bottom, class_=kind))
    return svg(HIST_WIDTH, HIST_HEIGHT, joined(parts), kind="histogram", title=title, desc=desc)


STACK_HEIGHT = 30
ROOM_FOR_SIGN = 0.06


def stacked(parts: Sequence[ChartPart], title: str) -> Markup:
    """A whole and its shares as one bar, as wide as its place; each share that has room for it shows its sign."""
    total = sum(part.n for part in parts)
    desc = ", ".join(f"{part.name} {part.n}" for part in parts if part.n)
    drawn, before = [], 0.0
    for part in parts:
        if not part.n:
            continue
        share = part.n / total
        drawn.append(
            tag(
                "rect",
                x=f"{_n(100 * before)}%",
                y=0,
                width=f"{_n(100 * share)}%",
                height=30,
                class_=f"fill {part.tone}",
            )
        )
        if share > ROOM_FOR_SIGN:
            middle = f"{_n(100 * (before + share / 2))}%"
            drawn.append(tag("text", part.sign, x=middle, y=20, text_anchor="middle", class_="sign"))
        before += share
    return svg(None, STACK_HEIGHT, joined(drawn), kind="stack", title=title, desc=desc)


LINES_HEIGHT = 250
MARKERS = ("round", "square")


def lines(
    names: Sequence[str], series: Sequence[Series], scale: Scale, title: str, desc: str, along: str = ""
) -> Markup:
    """Rates along an order (turn 1, 2, 3 …) with their intervals; each series has a marker of its own."""
    width = min(720, max(340, 64 + 84 * len(names)))
    left, right, top, bottom = 44.0, width - 16.0, 14.0, LINES_HEIGHT - 44.0
    bounds = bounds_of([point for line in series for point in line.points], scale)
    parts = []
    for step in range(5):
        value = bounds[0] + (bounds[1] - bounds[0]) * step / 4
        y = place(value, bounds, bottom, top)
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="base" if step == 0 else "grid"))
        parts.append(tag("text", tick_text(value, scale), x=left - 8, y=y + 4, text_anchor="end", class_="tick"))
    gap = (right - left) / max(1, len(names))
    every = max(1, math.ceil(len(names) / 15))
    for index, name in enumerate(names):
        if index % every == 0:
            x = left + gap * (index + 0.5)
            parts.append(tag("text", name, x=x, y=bottom + 18, text_anchor="middle", class_="tick"))
    parts.append(tag("text", along, x=(left + right) / 2, y=bottom + 38, text_anchor="middle", class_="tick"))
    for index, line in enumerate(series):
        parts.append(_line(line, index, bounds, (left + gap / 2, gap, top, bottom)))
    return svg(width, LINES_HEIGHT, joined(parts), kind="lines", title=title, desc=desc)


def _line(line: Series, index: int, bounds: Interval, frame: tuple[float, float, float, float]) -> Markup:
    start, gap, top, bottom = frame
    shift = (index - 0.5) * min(10.0, gap / 4)
    marker = MARKERS[index % len(MARKERS)]
    known = [
        (start + gap * at + shift, place(point.value, bounds, bottom, top), point)
        for at, point in enumerate(line.points)
        if point.value is not None
    ]
    parts = [
        tag("polyline", points=" ".join(f"{_n(x)},{_n(y)}" for x, y, _ in known), class_=f"line {marker}"),
    ]
    for x, y, point in known:
        if point.interval:
            low, high = (place(end, bounds, bottom, top) for end in point.interval)
            parts.append(tag("line", x1=x, x2=x, y1=low, y2=high, class_=f"whisker {marker}"))
        if marker == "round":
            parts.append(tag("circle", cx=x, cy=y, r=4.5, class_=f"marker {marker}"))
        else:
            parts.append(tag("rect", x=x - 4, y=y - 4, width=8.0, height=8.0, class_=f"marker {marker}"))
    return joined(parts)


def described(estimates: Mapping[str, Estimate], scale: Scale) -> str:
    """Estimates as a sentence, for the description of a chart."""
    return ", ".join(f"{name} {number(estimate.value, scale)}" for name, estimate in estimates.items())


SHARE_WIDTH = 80


def share_bar(share: float) -> Markup:
    """A share as a short bar, for a column of counts."""
    width = max(SHARE_WIDTH * share, 1.5 if share else 0.0)
    bar = tag("rect", x=0, y=2, width=width, height=6, rx=1.5, class_="column") if share else Markup("")
    return svg(SHARE_WIDTH, 10, bar, kind="share")


CURVE_SIZE = 300


def reliability(points: Sequence[tuple[float, Estimate]], title: str, desc: str, axes: tuple[str, str]) -> Markup:
    """How often a judge is right (upright) where it is so sure (along); on the diagonal both are the same."""
    left, right, top, bottom = 48.0, CURVE_SIZE - 12.0, 26.0, CURVE_SIZE - 44.0
    unit = (0.0, 1.0)
    parts = [tag("text", axes[1], x=0.0, y=12, class_="tick")]
    for step in range(6):
        value = step / 5
        x, y = place(value, unit, left, right), place(value, unit, bottom, top)
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="base" if step == 0 else "grid"))
        parts.append(tag("text", tick_text(value, "ratio"), x=left - 8, y=y + 4, text_anchor="end", class_="tick"))
        parts.append(tag("text", tick_text(value, "ratio"), x=x, y=bottom + 17, text_anchor="middle", class_="tick"))
    parts.append(tag("text", axes[0], x=(left + right) / 2, y=bottom + 38, text_anchor="middle", class_="tick"))
    parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=top, class_="track"))
    most = max((estimate.n for _, estimate in points), default=1)
    known = [
        (place(sure, unit, left, right), place(estimate.value or 0.0, unit, bottom, top), estimate)
        for sure, estimate in points
    ]
    parts.append(tag("polyline", points=" ".join(f"{_n(x)},{_n(y)}" for x, y, _ in known), class_="line round"))
    for x, y, estimate in known:
        if estimate.interval:
            low, high = (place(end, unit, bottom, top) for end in estimate.interval)
            parts.append(tag("line", x1=x, x2=x, y1=low, y2=high, class_="whisker round"))
        # The more labels, the larger: a lone point far off says little.
        radius = 2.5 + 4.5 * math.sqrt(estimate.n / most)
        parts.append(tag("circle", tag("title", f"n {estimate.n}"), cx=x, cy=y, r=radius, class_="marker round"))
    return svg(CURVE_SIZE, CURVE_SIZE, joined(parts), kind="lines", title=title, desc=desc)
