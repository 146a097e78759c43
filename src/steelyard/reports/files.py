"""Result lines and flat rows, written to files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.errors import MissingExtra

# Spreadsheets run what begins with one of these; an apostrophe makes it text again.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
BATCH = 5000


def write_lines(out: Path, lines: Iterator[dict[str, Any]]) -> int:
    """One JSON object per line; returns how many."""
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    return count


def write_csv(out: Path, rows: Iterator[dict[str, Any]]) -> int:
    """UTF-8 with a mark at the front, so that spreadsheets read Chinese; columns as the first rows have them."""
    first = list(islice(rows, BATCH))
    columns = list(dict.fromkeys(name for row in first for name in row))
    count = 0
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", restval="")
        writer.writeheader()
        for row in (*first, *rows):
            writer.writerow({name: safe_cell(value) for name, value in row.items()})
            count += 1
    return count


def safe_cell(value: Any) -> Any:
    """A cell that no spreadsheet runs."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def write_parquet(out: Path, rows: Iterator[dict[str, Any]]) -> int:
    """The rows as Parquet; returns how many."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "writing Parquet") from None
    count, writer = 0, None
    while batch := list(islice(rows, BATCH)):
        table = pa.Table.from_pylist(batch, schema=writer.schema if writer else None)
        if writer is None:
            # A column that is empty so far may hold numbers later.
            fields = [pa.field(f.name, pa.float64()) if pa.types.is_null(f.type) else f for f in table.schema]
            table = table.cast(pa.schema(fields))
            writer = pq.ParquetWriter(out, table.schema)
        writer.write_table(table)
        count += len(batch)
    if writer:
        writer.close()
    else:
        pq.write_table(pa.table({"id": pa.array([], pa.string())}), out)
    return count
