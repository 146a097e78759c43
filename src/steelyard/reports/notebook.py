"""The report as a piece of HTML for a notebook's cell. Everything that comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from steelyard.records import Language
from steelyard.reports.blocks import Block, Heading, Lines, Table, Toned, one_line
from steelyard.reports.layout import Page
from steelyard.reports.model import Report, in_language


def fragment(report: Report, notes: Iterable[str] = (), language: Language | None = None) -> str:
    """What the terminal shows, as headings, tables and paragraphs."""
    blocks = [*(_block(block) for block in Page(in_language(report, language), brief=True).blocks())]
    said = [Markup("<p>{}</p>").format(one_line(note)) for note in notes]
    return str(Markup("\n").join([Markup("<div>"), *blocks, *said, Markup("</div>")]))


def _block(block: Block) -> Markup:
    match block:
        case Heading(text, level):
            return Markup("<h{0}>{1}</h{0}>").format(level + 2, one_line(text))
        case Lines(lines):
            return Markup("<p>{}</p>").format(Markup("<br>").join(escape(one_line(line)) for line in lines))
        case Table(columns, align, rows):
            head = _row("th", columns, align)
            body = Markup("").join(_row("td", row, align) for row in rows)
            return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(head, body)
    return Markup("")


def _row(tag: str, cells: Iterable[str | Toned], align: str) -> Markup:
    made = (
        Markup('<{0} style="text-align: {1}">{2}</{0}>').format(tag, "right" if side == "r" else "left", _text(cell))
        for cell, side in zip(cells, align, strict=True)
    )
    return Markup("<tr>{}</tr>").format(Markup("").join(made))


def _text(cell: str | Toned) -> str:
    return one_line(cell.text if isinstance(cell, Toned) else cell)
