"""Verdicts and items as Parquet: two tables whose columns are the same for every protocol (docs/results.md).

What differs between protocols stands in maps (`scores`, `labels`) and, for single fields, in JSON (`details`), so that
the files of any runs are one dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from steelyard.errors import MissingExtra
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary, name_of, turn_of
from steelyard.records import AnyItem, Sample, Verdict

Table = Literal["verdicts", "items"]
TABLES: Final[tuple[Table, ...]] = ("verdicts", "items")
# Column → type, in the order of the file.
COLUMNS: Final[dict[Table, dict[str, str]]] = {
    "verdicts": {
        "id": "string",
        "protocol": "string",
        "status": "string",
        "scores": "map<string, double>",
        "flags": "list<string>",
        "judge": "string",
        "model": "string",
        "tags": "list<string>",
        "calls": "int64",
        "prompt_tokens": "int64",
        "completion_tokens": "int64",
        "cached_tokens": "int64",
        "cost": "double",
    },
    "items": {
        "sample": "string",
        "protocol": "string",
        "kind": "string",
        "turn": "int64",
        "id": "int64",
        "name": "string",
        "text": "string",
        "label": "string",
        "labels": "map<string, string>",
        "reason": "string",
        "flags": "list<string>",
        "confidence": "double",
        "confidence_kind": "string",
        "judge": "string",
        "evidence_reference": "int64",
        "evidence_quote": "string",
        "evidence_verified": "bool",
        "evidence_source": "string",
        "details": "string",
    },
}
# Rows that are held before they are written: a row group.
BATCH: Final = 5000
_APART: Final = frozenset({"evidence", "id", *COLUMNS["items"]})


def table_rows(table: Table, sample: Sample, verdict: Verdict) -> Iterator[dict[str, Any]]:
    """The rows of one sample."""
    if table == "items":
        words = vocabulary(verdict.protocol)
        yield from (_item_row(item, verdict, words) for item in verdict.items)
        return
    yield {
        "id": verdict.id,
        "protocol": verdict.protocol,
        "status": verdict.status,
        "scores": dict(verdict.scores),
        "flags": verdict.flags,
        "judge": verdict.judge,
        "model": sample.model,
        "tags": sample.tags,
        **verdict.usage.model_dump(),
    }


def _item_row(item: AnyItem, verdict: Verdict, words: Vocabulary) -> dict[str, Any]:
    kind = words.kind_named(item.kind)
    label = getattr(item, kind.leading.field, None)
    fields = item.model_dump(mode="json")
    evidence = fields.get("evidence") or {}
    own = _APART | {aspect.field for aspect in kind.aspects}
    details = {name: value for name, value in fields.items() if name not in own and value not in (None, "", [], {})}
    return {
        "sample": verdict.id,
        "protocol": verdict.protocol,
        "kind": item.kind,
        "turn": turn_of(item),
        "id": item.id,
        "name": name_of(item) or None,
        "text": item.text,
        "label": None if label is None else str(label),
        "labels": dict(words.labels_of(item)),
        "reason": item.reason,
        "flags": item.flags,
        "confidence": item.confidence,
        "confidence_kind": None if item.confidence is None else item.confidence_kind,
        "judge": item.judge or verdict.judge,
        **{f"evidence_{name}": evidence.get(name) for name in ("reference", "quote", "verified", "source")},
        "details": json.dumps(details, ensure_ascii=False),
    }


class ParquetFile:
    """One file of a table, written a batch of rows at a time. One without rows still has the columns."""

    def __init__(self, out: Path, table: Table) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtra("pyarrow", "parquet", "writing Parquet") from None
        types = {
            "string": pa.string(),
            "int64": pa.int64(),
            "double": pa.float64(),
            "bool": pa.bool_(),
            "list<string>": pa.list_(pa.string()),
            "map<string, double>": pa.map_(pa.string(), pa.float64()),
            "map<string, string>": pa.map_(pa.string(), pa.string()),
        }
        self._schema = pa.schema([(name, types[type]) for name, type in COLUMNS[table].items()])
        self._from_rows = pa.Table.from_pylist
        self._writer = pq.ParquetWriter(out, self._schema, compression="zstd")
        self._waiting: list[dict[str, Any]] = []
        self.rows = 0

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        self.rows += 1
        if len(self._waiting) >= BATCH:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(self._from_rows(self._waiting, schema=self._schema))
            self._waiting = []


def write_parquet(out: Path, judged: Iterable[tuple[Sample, Verdict]], table: Table) -> int:
    """One table as one file; returns how many rows."""
    file = ParquetFile(out, table)
    try:
        for sample, verdict in judged:
            for row in table_rows(table, sample, verdict):
                file.add(row)
    finally:
        file.close()
    return file.rows
