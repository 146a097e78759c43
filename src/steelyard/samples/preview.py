"""A preview of a file: its first rows, and the column that each field is read from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from pydantic import Field

from steelyard.errors import InputError
from steelyard.records import Record
from steelyard.samples import importer_of, values
from steelyard.samples.columns import Kind, SourceRow, known_fields
from steelyard.samples.files import check_sources, rows_of
from steelyard.samples.importers import PLAIN, detected, importer_named
from steelyard.samples.importers.base import Importer, paths_of

ROWS: Final = 5
# Columns are gathered from more rows than are shown: JSONL need not have all of them in each.
LOOKED_AT: Final = 20
MOST_COLUMNS: Final = 100
LONGEST_CELL: Final = 300


class PreviewRow(Record):
    """A row as the file has it, cells cut to what can be shown."""

    number: int
    cells: dict[str, str]


class FilePreview(Record):
    columns: tuple[str, ...] = Field(description="of the first rows; a.b is a value within an object")
    rows: tuple[PreviewRow, ...]
    detected: dict[str, str] = Field(description="field → the column that it is read from without a mapping")
    fields: tuple[str, ...] = Field(description="those that a column can be mapped to")
    importer: str | None = Field(default=None, description="the tool whose export this is, named or recognised")
    tool: str = Field(default="", description="what that tool calls itself")


def preview(name: str, kind: Kind, *, encoding: str = "utf-8", importer: str | None = None) -> FilePreview:
    """The beginning of one file. Rows that cannot be read are left out: whoever reads the samples says why."""
    check_sources([name], None, encoding)
    tool = (None if importer == PLAIN else importer_named(importer)) if importer else importer_of(name, None, encoding)
    rows = list(_rows(name, encoding, tool))
    if tool is None and not importer and rows:
        tool = detected(paths_of(rows[0][1]))
    columns = tuple(dict.fromkeys(column for _, row in rows for column in _columns(row)))[:MOST_COLUMNS]
    # Of what a turn holds, the columns are not those of a row.
    fields = [field for field in known_fields(kind) if "." not in field]
    found = {} if tool else {field: column for field in fields if (column := _found(field, kind, rows))}
    shown = tuple(
        PreviewRow(number=number, cells={str(key): _cell(value) for key, value in row.items()})
        for number, row in rows[:ROWS]
    )
    return FilePreview(
        columns=columns,
        rows=shown,
        detected=found,
        fields=tuple(sorted(fields, key=_is_shared)),
        importer=tool.name if tool else importer,
        tool=tool.title if tool else "",
    )


def _rows(name: str, encoding: str, tool: Importer | None) -> Iterator[tuple[int, Mapping[str, object]]]:
    opened = tool.open(name) if tool and tool.open and tool.opens(name) else None
    rows = opened or rows_of(name, None, encoding, whole=tool is not None and tool.is_whole)
    for place, row in islice(rows, LOOKED_AT):
        if isinstance(row, Mapping):
            yield place.number, row


def _columns(row: Mapping[str, object]) -> Iterator[str]:
    for key, value in row.items():
        yield str(key)
        if isinstance(value, Mapping):
            yield from (f"{key}.{inner}" for inner in value)


def _found(field: str, kind: Kind, rows: list[tuple[int, Mapping[str, object]]]) -> str | None:
    for _, row in rows:
        try:
            column, _value = SourceRow(row, kind, {}).find(field)
        except InputError:  # two columns, and either could be meant: nobody but the user can say which
            continue
        if column is not None:
            return column
    return None


def _is_shared(field: str) -> bool:
    """Ids, tags and the like come after what the kind of sample is made of."""
    return field in known_fields("rag") and field in known_fields("dialogue")


def _cell(value: object) -> str:
    value = values.plain(value)
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return beginning(text)


def beginning(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
