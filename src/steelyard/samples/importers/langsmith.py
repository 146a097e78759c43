"""LangSmith: runs as the client and the bulk export write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.samples.importers.base import (
    ImportedScore,
    Importer,
    Skipped,
    list_at,
    mapping_at,
    mappings_at,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import decoded
from steelyard.samples.importers.traces import Span, traces

THREAD = ("session_id", "thread_id", "conversation_id")


def _spans(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Span]:
    if "run_type" not in row:
        skipped["example of a dataset (it has no answer of the assistant's)"] += 1
        return
    id = plain_id(row.get("id"))
    metadata = mapping_at({"extra": decoded(row.get("extra"))}, "extra", "metadata")
    yield Span(
        plain_id(row.get("trace_id")) or id,
        id,
        plain_id(row.get("parent_run_id")),
        text_at(row, "run_type").casefold(),
        row.get("inputs"),
        row.get("outputs"),
        next((thread for name in THREAD if (thread := plain_id(metadata.get(name)))), ""),
        str(row.get("start_time") or ""),
        error=text_at(row, "error"),
        tags=[tag for tag in list_at(row, "tags") if isinstance(tag, str)],
        model=text_at(metadata, "ls_model_name"),
        reference=row.get("reference_outputs"),
        scores=tuple(_feedback(row, skipped)),
        record=row,
    )
    for child in mappings_at(row, "child_runs"):
        yield from _spans({"trace_id": row.get("trace_id") or id, "parent_run_id": id} | dict(child), skipped)


def _feedback(row: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    """Each feedback with who gave it; where there is only `feedback_stats`, its mean, of an unknown giver."""
    for one in mappings_at(row, "feedback"):
        kind = text_at(mapping_at(one, "feedback_source"), "type")
        by_person = kind == "app"
        value = one.get("score") if one.get("score") is not None else one.get("value")
        by = plain_id(mapping_at(one, "feedback_source").get("user_id")) or ("annotator" if by_person else "")
        yield from scored(skipped, one.get("key"), value, by=by, by_person=by_person, reason=text_at(one, "comment"))
    if not list_at(row, "feedback"):
        stats = decoded(row.get("feedback_stats"))
        for key, summary in (stats if isinstance(stats, Mapping) else {}).items():
            yield from scored(skipped, key, mapping_at({"of": summary}, "of").get("avg"))


IMPORTER = Importer(
    "langsmith",
    "LangSmith",
    traces("langsmith", _spans),
    signs=(
        signs("id run_type inputs outputs trace_id"),
        signs("id run_type inputs outputs parent_run_id"),
        signs("id run_type inputs outputs dotted_order"),
    ),
)
