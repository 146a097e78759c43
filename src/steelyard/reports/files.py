"""Result lines and flat rows, written to files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.records import Verdict

# Spreadsheets run what begins with one of these; an apostrophe makes it text again.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
BATCH = 5000
# What a line has only where there is something to say.
LEFT_OUT = ("stated",)


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


def line_schema() -> dict[str, Any]:
    """The JSON Schema of a result line, made from the records. docs/result-line.schema.json holds the same."""
    schema = Verdict.model_json_schema(mode="serialization")
    del schema["properties"]["notes"]
    schema["required"] = [name for name in schema["properties"] if name not in LEFT_OUT]
    shapes = [
        schema["$defs"][ref["$ref"].rpartition("/")[2]] for ref in schema["properties"]["items"]["items"]["oneOf"]
    ]
    typed = [kind["const"] for shape in shapes if "const" in (kind := shape["properties"]["kind"])]
    for shape in shapes:
        shape["required"] = list(dict.fromkeys(["kind", *shape["required"]]))
        if "const" not in shape["properties"]["kind"]:
            # Or an item with a field that it must not have would pass as one of a kind that is not known.
            shape["properties"]["kind"]["not"] = {"enum": typed}
    about = {"title": "Result line", "description": "A line of a results file: one judged sample."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema | about
