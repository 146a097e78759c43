"""Pages for the terminal. Everything is a `Text`, so nothing in judged text is ever read as markup."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from rich import box
from rich.cells import get_character_cell_size
from rich.console import Console, Group, RenderableType
from rich.containers import Lines as RichLines
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from steelyard.records import Language
from steelyard.reports.blocks import Block, Entry, Heading, Lines, Passage, Table, Tone, TonedText, clean, one_line
from steelyard.reports.layout import Page
from steelyard.reports.model import Report, in_language

STYLES: dict[Tone, str] = {"good": "green", "bad": "bold red", "open": "yellow", "plain": ""}
# Brackets as well as style: evidence must be visible in a pipe and without colour.
MARK_OPEN, MARK_CLOSE = "⟦", "⟧"
# What must not begin a line, and what must not end one.
CLOSERS = frozenset("，。；：！？、）》」』】”’…,.;:!?)]}%" + MARK_CLOSE)
OPENERS = frozenset("（《「『【“‘([{" + MARK_OPEN)


class Prose(Text):
    """Text that may break between Chinese characters; rich only knows spaces, and takes a sentence for a word."""

    def wrap(self, console: Console, width: int, **_: Any) -> RichLines:
        lines = RichLines()
        for line in self.split(allow_blank=True):
            for part in line.divide(breaks(line.plain, width)):
                part.rstrip()
                lines.append(part)
        return lines


def breaks(text: str, width: int) -> list[int]:
    """Where new lines begin so that none is wider than this."""
    found: list[int] = []
    start = used = 0
    allowed: int | None = None
    for at, character in enumerate(text):
        size = get_character_cell_size(character)
        if at > start and _may_break(text[at - 1], character):
            allowed = at
        if used + size > width and at > start and not character.isspace():
            start, allowed = allowed or at, None
            found.append(start)
            used = sum(map(get_character_cell_size, text[start:at]))
            if used + size > width and start < at:
                start, used = at, 0
                found.append(start)
        used += size
    return found


def _may_break(before: str, after: str) -> bool:
    if after.isspace():
        return False
    is_wide = 2 in (get_character_cell_size(before), get_character_cell_size(after))
    return before.isspace() or (is_wide and before not in OPENERS and after not in CLOSERS)


def render(report: Report, language: Language | None = None) -> RenderableType:
    """The report for a terminal of 80 columns or more."""
    return renderable(Page(in_language(report, language), brief=True).blocks())


def as_text(blocks: Iterable[Block]) -> str:
    """Blocks as plain text of 80 columns, without colour."""
    console = Console(file=io.StringIO(), width=80, highlight=False, color_system=None)
    with console.capture() as shown:
        console.print(renderable(blocks))
    return shown.get().rstrip()


def renderable(blocks: Iterable[Block]) -> RenderableType:
    """Blocks as rich shows them."""
    parts: list[RenderableType] = []
    before: Block | None = None
    for block in blocks:
        together = isinstance(before, Heading) or (isinstance(before, Entry) and isinstance(block, Entry))
        if before and not together:
            parts.append(Text())
        parts += _block(block)
        before = block
    return Group(*parts)


def _block(block: Block) -> Iterator[RenderableType]:
    match block:
        case Heading(text, level):
            yield Text(one_line(text), style="bold underline" if level == 1 else "bold")
        case Lines(lines, listed):
            for line in lines:
                shown = Prose(one_line(line), style="dim" if listed else "")
                yield Padding(shown, (0, 0, 0, 2), expand=False) if listed else shown
        case Table():
            yield _table(block)
        case Passage():
            yield from _passage(block)
        case Entry():
            yield from _entry(block)


def _table(table: Table) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    for title, align in zip(table.columns, table.align, strict=True):
        is_number = align == "r"
        shown.add_column(
            Text(title),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    group: str | TonedText | None = None
    for row in table.rows:
        cells = [_cell(cell, align) for cell, align in zip(row, table.align, strict=True)]
        if table.grouped and row[0] == group:
            cells[0] = Text()
        group = row[0]
        shown.add_row(*cells)
    return shown


def _cell(cell: str | TonedText, align: str) -> Text:
    made = Text if align == "r" else Prose
    if isinstance(cell, TonedText):
        return made(one_line(cell.text), style=STYLES[cell.tone])
    return made(one_line(cell))


def _passage(passage: Passage) -> Iterator[RenderableType]:
    if passage.title:
        yield Text(one_line(passage.title), style="italic")
    text = Prose()
    at = 0
    for start, end in passage.marks:
        text.append(clean(passage.text[at:start]))
        text.append(MARK_OPEN + clean(passage.text[start:end]) + MARK_CLOSE, style="bold green")
        at = end
    text.append(clean(passage.text[at:]))
    yield Padding(text, (0, 0, 0, 2), expand=False)


def _entry(entry: Entry) -> Iterator[RenderableType]:
    title = Prose(f"{entry.number}. ", style="bold")
    title.append(one_line(entry.text))
    yield title
    labels = Prose("   ")
    for index, label in enumerate(entry.labels):
        labels.append(" · " if index else "")
        labels.append(one_line(label.text), style=STYLES[label.tone])
    if entry.labels:
        yield labels
    for name, fact in entry.facts:
        line = Prose()
        line.append(name, style="dim")
        line.append(one_line(fact))
        yield Padding(line, (0, 0, 0, 3), expand=False)
