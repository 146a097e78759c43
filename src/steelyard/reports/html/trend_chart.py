"""A score over many runs as inline SVG, as wide as its place: points with intervals, a level to compare with, and marks
where it changed significantly. Hovering a point tells about it, and it leads to its run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from steelyard.reports.html.charts import joined, place, tag
from steelyard.reports.model import Estimate
from steelyard.stats import Interval

TOP, BELOW = 16.0, 24.0
LAST = 97.0
MOST_NAMES, FEWER_NAMES = 5, 3
FEW = 40
SMALL = 130
TRIANGLES = {"bad": "M-7 -5h14l-7 12z", "good": "M-7 5h14l-7 -12z"}


class TrendPoint(NamedTuple):
    """One run: its value, its name on the axis, what hovering tells, where it leads."""

    estimate: Estimate
    name: str
    tooltip: str
    href: str
    tone: str = ""
    """good or bad, where it differs significantly from the point before."""
    is_cut: bool = False
    """Whether it cannot be compared with the point before; then no line leads to it."""


def trend(
    points: Sequence[TrendPoint],
    limits: Interval,
    write: Callable[[float], str],
    label: str,
    *,
    level: float | None = None,
    height: int = 190,
) -> Markup:
    """The points from left to right. `limits` are the ends of the scale, `write` formats its numbers."""
    ends = [end for p in points for end in (*(p.estimate.interval or ()), p.estimate.value) if end is not None]
    is_small = height <= SMALL
    ticks = axis([*ends, *([level] if level is not None else [])], limits, 2 if is_small else 4)
    bounds, bottom = (ticks[0], ticks[-1]), height - BELOW
    parts = []
    for at, value in enumerate(ticks):
        y = place(value, bounds, bottom, TOP)
        parts.append(tag("line", x1="0%", x2="100%", y1=y, y2=y, class_="grid" if at else "base"))
        parts.append(tag("text", write(value), x="0%", y=y - 4, class_="tick"))
    if level is not None:
        y = place(level, bounds, bottom, TOP)
        parts.append(tag("line", x1="0%", x2="100%", y1=y, y2=y, class_="mean"))
    # In percent: room for the numbers of the axis.
    first = 17.0 if is_small else 9.0
    step = (LAST - first) / max(1, len(points) - 1)
    xs = [first + step * at for at in range(len(points))] if len(points) > 1 else [(first + LAST) / 2]
    ys = [None if p.estimate.value is None else place(p.estimate.value, bounds, bottom, TOP) for p in points]
    for at in range(1, len(points)):
        if ys[at - 1] is not None and ys[at] is not None and not points[at].is_cut:
            x1, x2 = f"{xs[at - 1]:.2f}%", f"{xs[at]:.2f}%"
            parts.append(tag("line", x1=x1, x2=x2, y1=ys[at - 1], y2=ys[at], class_="line round"))
    parts += [
        _named(point.name, xs[at], height) for at, point in _with_names(points, FEWER_NAMES if is_small else MOST_NAMES)
    ]
    for point, x, spot in zip(points, xs, ys, strict=True):
        if spot is not None:
            parts.append(_point(point, (x, min(step, 20.0), spot), bounds, bottom, small=len(points) > FEW))
    return tag(
        "svg",
        joined(parts),
        class_="chart trend",
        width="100%",
        height=height,
        role="group",
        aria_label=label,
        focusable="false",
    )


def _with_names(points: Sequence[TrendPoint], most: int) -> list[tuple[int, TrendPoint]]:
    """So many that their names do not run into each other, the last one among them."""
    every = max(1, math.ceil(len(points) / most))
    return [(at, point) for at, point in enumerate(points) if (len(points) - 1 - at) % every == 0]


def _named(name: str, x: float, height: int) -> Markup:
    anchor = "end" if x > 90 else "middle"
    return tag("text", name, x=f"{x:.2f}%", y=height - 6, text_anchor=anchor, class_="tick")


def _point(
    point: TrendPoint, spot: tuple[float, float, float], bounds: Interval, bottom: float, *, small: bool
) -> Markup:
    x, width, y = spot
    across, parts = f"{x:.2f}%", [tag("title", point.tooltip)]
    # What the pointer finds is as wide as its share of the chart, and as high.
    parts.append(tag("rect", x=f"{x - width / 2:.2f}%", y=0, width=f"{width:.2f}%", height=bottom, class_="hit"))
    if point.estimate.interval:
        low, high = (place(end, bounds, bottom, TOP) for end in point.estimate.interval)
        parts.append(tag("line", x1=across, x2=across, y1=low, y2=high, class_="whisker round"))
    if point.tone in TRIANGLES:
        mark = tag("path", d=TRIANGLES[point.tone], class_=f"mark {point.tone}")
        parts.append(tag("svg", mark, x=across, y=y, overflow="visible"))
    else:
        parts.append(tag("circle", cx=across, cy=y, r=2.5 if small else 4.5, class_="marker round"))
    # The table below has the same links; two hundred stops for the tab key are a wall.
    return tag("a", joined(parts), href=point.href, tabindex="-1", aria_label=point.tooltip)


def axis(values: Sequence[float], limits: Interval, steps: int = 4) -> list[float]:
    """Round numbers around these values, some `steps` apart, within the ends of the scale."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    whole = limits[1] - limits[0]
    # A hundredth of the scale must not fill the picture: noise would look like news.
    least = 0.1 * whole if math.isfinite(whole) else max(abs(high), 1e-6) * 0.2
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    low, high = max(low, limits[0]), min(high, limits[1])
    raw = (high - low) / steps
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]
