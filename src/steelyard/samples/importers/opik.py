"""Comet Opik: files of `opik export` (`trace_*.json`, `experiment_*.json`)."""

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
from steelyard.samples.importers.traces import Span, traces

PEOPLE = ("ui",)


def _spans(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Span]:
    if "experiment" in row:
        experiment = plain_id(mapping_at(row, "experiment").get("id"))
        for item in mappings_at(row, "items"):
            yield from _item(item, experiment, skipped)
        return
    trace = mapping_at(row, "trace")
    id = plain_id(trace.get("id"))
    if not id:
        skipped["record without a trace"] += 1
        return
    yield Span(
        id,
        id,
        input=trace.get("input"),
        output=trace.get("output"),
        session=plain_id(trace.get("thread_id")),
        start=str(trace.get("start_time") or ""),
        error="error" if trace.get("error_info") else "",
        tags=[tag for tag in list_at(trace, "tags") if isinstance(tag, str)],
        scores=tuple(_scores(trace, skipped)),
        record=trace,
    )
    for span in mappings_at(row, "spans"):
        named = f"{text_at(span, 'type')} {text_at(span, 'name')}".casefold()
        yield Span(
            id,
            plain_id(span.get("id")),
            plain_id(span.get("parent_span_id")) or id,
            # Opik has no kind for retrieval; such spans are tools or general ones with that name.
            "retriever" if "retriev" in named else text_at(span, "type").casefold(),
            span.get("input"),
            span.get("output"),
            model=text_at(span, "model"),
            record=span,
        )


def _item(item: Mapping[str, Any], experiment: str, skipped: Skipped) -> Iterator[Span]:
    id = plain_id(item.get("trace_id")) or plain_id(item.get("id"))
    yield Span(
        id,
        plain_id(item.get("id")) or id,
        input=item.get("input"),
        output=item.get("output"),
        scores=tuple(_scores(item, skipped)),
        record=dict(item) | {"experiment_id": experiment},
    )


def _scores(record: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    for one in mappings_at(record, "feedback_scores"):
        by_person = one.get("source") in PEOPLE
        by = _author(one) if by_person else ""
        reason = text_at(one, "reason")
        yield from scored(skipped, one.get("name"), one.get("value"), by=by, by_person=by_person, reason=reason)


def _author(one: Mapping[str, Any]) -> str:
    return plain_id(one.get("last_updated_by")) or plain_id(one.get("created_by")) or "annotator"


IMPORTER = Importer(
    "opik",
    "Opik",
    traces("opik", _spans),
    signs=(signs("trace.id trace.input spans downloaded_at"), signs("experiment.id items downloaded_at")),
    is_whole=True,
)
