"""A calibration as one HTML file, in the look of the reports: nothing is loaded, every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from steelyard.people.calibration.model import Calibration, Reliability
from steelyard.people.calibration.page import blocks
from steelyard.people.calibration.reliability import ReliabilityPage
from steelyard.reports.blocks import Block, Heading, Lines, Table, Toned
from steelyard.reports.html import charts
from steelyard.reports.html.environment import make_environment, policy, static
from steelyard.reports.model import Estimate
from steelyard.text.wording import say


@dataclass(frozen=True)
class PagePart:
    """A heading with its chart, some lines, or a table; whichever is not empty."""

    heading: str = ""
    level: int = 2
    chart: Markup | str = ""
    lines: tuple[str, ...] = ()
    listed: bool = False
    columns: tuple[str, ...] = ()
    align: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


@cache
def _environment() -> Environment:
    return make_environment(PackageLoader("steelyard.people.calibration"))


def render(found: Calibration) -> str:
    """The page as a document, with a curve for each judge and kind of label that has confidences."""
    style = static("style.css")
    title, *parts = page_parts(found)
    return (
        _environment()
        .get_template("calibration.html")
        .render(
            title=title.heading,
            parts=parts,
            language=found.language,
            say=lambda key: say(found.language, key),
            policy=policy(style, ""),
            style=Markup(style),
        )
    )


def page_parts(found: Calibration) -> Iterator[PagePart]:
    """The page in order, its title first; the viewer shows the same."""
    page = ReliabilityPage(found)
    drawn = {page.title(curve): _chart(curve, page) for curve in found.reliability}
    return parts_of(blocks(found), drawn)


def parts_of(shown: Iterable[Block], drawn: Mapping[str, Markup] | None = None) -> Iterator[PagePart]:
    """Blocks as the templates have them, with the charts that belong to headings."""
    for block in shown:
        match block:
            case Heading(text, level):
                yield PagePart(heading=text, level=level, chart=(drawn or {}).get(text, ""))
            case Lines(lines, listed):
                yield PagePart(lines=lines, listed=listed)
            case Table(columns, align, rows):
                cells = tuple(tuple(cell.text if isinstance(cell, Toned) else cell for cell in row) for row in rows)
                yield PagePart(columns=columns, align=align, rows=cells)


def _chart(curve: Reliability, page: ReliabilityPage) -> Markup:
    points = [(each.confidence, Estimate(value=each.right, interval=each.interval, n=each.n)) for each in curve.bins]
    axes = page.say("mean_confidence"), page.say("share_right")
    return charts.reliability(points, page.title(curve), page.said(curve), axes)
