"""Markdown tables: rows as cells by the column they stand in. What a cell means is for its protocol to say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.protocols.transcripts.lines import undecorated

RULE = re.compile(r":?-+:?")
BREAK = re.compile(r"<br\s?/?>", re.IGNORECASE)
MOST_COLUMNS = 20


class MarkdownTable(NamedTuple):
    """The header of a table and its rows, all cells undecorated; and the lines it was read from."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]


def cells_of(line: str) -> tuple[str, ...]:
    """The cells of a table's line; `\\|` is a bar inside a cell."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    cells = re.split(r"(?<!\\)\|", inner)
    return tuple(undecorated(BREAK.sub("\n", cell.replace("\\|", "|"))) for cell in cells)


def with_tables(lines: list[str]) -> Iterator[str | MarkdownTable]:
    """The lines in order, with every table as one element."""
    index = 0
    while index < len(lines):
        end = _end(lines, index)
        if end == index:
            yield lines[index]
            index += 1
        else:
            header, _, *rows = lines[index:end]
            yield MarkdownTable(cells_of(header), tuple(cells_of(row) for row in rows), tuple(lines[index:end]))
            index = end


def rules_of(line: str) -> int:
    """How many columns the line under a table's header rules off; 0 for any other line."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line and "-" in line else []
    return len(cells) if len(cells) <= MOST_COLUMNS and all(RULE.fullmatch(cell) for cell in cells) else 0


def _end(lines: list[str], start: int) -> int:
    """Where the table that begins at this line ends; the line itself where none begins."""
    rules = rules_of(lines[start + 1]) if "|" in lines[start] and start + 1 < len(lines) else 0
    if not rules or len(cells_of(lines[start])) != rules:
        return start
    end = start + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return end


class LineReader(Protocol):
    """Goes through a transcript part by part, and knows when another one begins and whether its own end was read.

    One that begins inside another may be a text of that one: then both are `suspect`, and all that follow.
    """

    suspect: bool

    @property
    def finished(self) -> bool: ...

    def begins_another(self, part: str | MarkdownTable) -> bool: ...

    def take(self, part: str | MarkdownTable) -> None: ...


AnyReader = TypeVar("AnyReader", bound=LineReader)


def readers_of(lines: list[str], new: Callable[[], AnyReader]) -> list[AnyReader]:
    """One reader for each transcript that the lines hold, in order; one for lines that hold none."""
    readers = [new()]
    for part in with_tables(lines):
        if readers[-1].begins_another(part):
            readers[-1].suspect = readers[-1].suspect or not readers[-1].finished
            readers.append(new())
            readers[-1].suspect = readers[-2].suspect
        readers[-1].take(part)
    return readers


def columns_of(table: MarkdownTable, names: Mapping[str, FormPattern]) -> dict[str, int]:
    """Which column holds what; the first column of a name has it."""
    found: dict[str, int] = {}
    for index, title in enumerate(table.header):
        name = next((name for name, form in names.items() if form.fullmatch(title)), None)
        if name is not None:
            found.setdefault(name, index)
    return found


class TableRow:
    """One row of a table, by the names of its columns."""

    def __init__(self, cells: tuple[str, ...], columns: Mapping[str, int]) -> None:
        self._cells, self._columns = cells, columns

    def __getitem__(self, name: str) -> str:
        return self._cells[self._columns[name]] if name in self._columns else ""

    def has(self, name: str) -> bool:
        return name in self._columns


def rows_of(table: MarkdownTable, columns: Mapping[str, int], spare: str | None = None) -> Iterable[TableRow | None]:
    """The rows; None for one that has not the header's number of cells.

    `spare` names the column that takes cells too many: a bar in its text was not escaped.
    """
    width = len(table.header)
    for cells in table.rows:
        extra = len(cells) - width
        if extra > 0 and spare in columns:
            at = columns[str(spare)]
            cells = (*cells[:at], " | ".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :])
        yield TableRow(cells, columns) if len(cells) == width else None
