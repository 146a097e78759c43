"""Pages as HTML files in the look of the reports: nothing is loaded, every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from steelyard.records import Language
from steelyard.reports.blocks import Block, Curve, Heading, Lines, Table, TonedText
from steelyard.reports.html import charts
from steelyard.reports.html.environment import environment, policy, static
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


def html_document(blocks: Iterable[Block], language: Language) -> str:
    """Blocks as a document; the first of them is its title."""
    title, *parts = page_parts(blocks)
    return from_template("document.html", language, title=title.heading, parts=parts)


def from_template(name: str, language: Language, *styles: str, **values: Any) -> str:
    """A document made with one of the templates; `styles` stand behind the style sheet of the reports."""
    style = "".join(map(static, ("style.css", *styles)))
    return (
        environment()
        .get_template(name)
        .render(
            language=language,
            say=lambda key: say(language, key),
            policy=policy(style, ""),
            style=Markup(style),
            **values,
        )
    )


def page_parts(blocks: Iterable[Block]) -> Iterator[PagePart]:
    """The blocks in order, with their charts drawn; the viewer shows the same."""
    for block in blocks:
        match block:
            case Heading(text, level, curve):
                yield PagePart(heading=text, level=level, chart=_chart(text, curve) if curve else "")
            case Lines(lines, listed):
                yield PagePart(lines=lines, listed=listed)
            case Table(columns, align, rows):
                cells = tuple(tuple(cell.text if isinstance(cell, TonedText) else cell for cell in row) for row in rows)
                yield PagePart(columns=columns, align=align, rows=cells)


def _chart(title: str, curve: Curve) -> Markup:
    return charts.reliability(curve.points, title, curve.in_words, curve.axes)
