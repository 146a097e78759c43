"""Langfuse: exports of observations, traces and scores, by the blob-storage export, the UI or the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.samples.importers.base import (
    ImportedScore,
    Importer,
    Skipped,
    mappings_at,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import decoded
from steelyard.samples.importers.traces import Span, traces

PEOPLE = ("ANNOTATION",)


def _spans(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Span]:
    """A row is an observation, a trace (with its observations, from the API) or a score. The blob export writes names
    with underscores, the UI and the API in camel case."""
    if _is_score(row):
        trace = _id(row, "trace_id", "traceId")
        yield Span(trace, "", scores=tuple(_score(row, skipped)), record=row, is_span=False)
        return
    if _is_dataset_item(row):
        skipped["dataset item (it has no answer of the assistant's)"] += 1
        return
    trace = _id(row, "trace_id", "traceId")
    if trace:
        yield _observation(row, trace, skipped)
        return
    id = _id(row, "id")
    metadata = decoded(row.get("metadata"))
    yield Span(
        id,
        id,
        input=row.get("input"),
        output=row.get("output"),
        session=_id(row, "session_id", "sessionId"),
        start=str(row.get("timestamp") or ""),
        tags=_tags(row),
        scores=tuple(score for one in mappings_at(row, "scores") for score in _score(one, skipped)),
        record={**row, "metadata": metadata} if isinstance(metadata, Mapping) else row,
    )
    for part in mappings_at(row, "observations"):
        yield _observation(part, id, skipped, under=id)


def _observation(row: Mapping[str, Any], trace: str, skipped: Skipped, under: str = "") -> Span:
    return Span(
        trace,
        _id(row, "id"),
        _id(row, "parent_observation_id", "parentObservationId") or under,
        text_at(row, "type").casefold(),
        row.get("input"),
        row.get("output"),
        _id(row, "session_id", "sessionId"),
        str(row.get("start_time", row.get("startTime")) or ""),
        error=text_at(row, "status_message") or "error" if row.get("level") == "ERROR" else "",
        tags=_tags(row),
        model=text_at(row, "provided_model_name") or text_at(row, "providedModelName") or text_at(row, "model"),
        scores=tuple(score for one in mappings_at(row, "scores") for score in _score(one, skipped)),
        record=row,
    )


def _is_score(row: Mapping[str, Any]) -> bool:
    return "input" not in row and "name" in row and not {"data_type", "dataType"}.isdisjoint(row)


def _is_dataset_item(row: Mapping[str, Any]) -> bool:
    return bool({"dataset_id", "datasetId"} & row.keys()) and bool({"expected_output", "expectedOutput"} & row.keys())


def _score(row: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    by_person = row.get("source") in PEOPLE
    by = _id(row, "author_user_id", "authorUserId") or ("annotator" if by_person else "")
    value = row.get("value")
    if value is None:
        value = row.get("string_value", row.get("stringValue"))
    yield from scored(skipped, row.get("name"), value, by=by, by_person=by_person, reason=text_at(row, "comment"))


def _id(row: Mapping[str, Any], *names: str) -> str:
    return next((id for name in names if (id := plain_id(row.get(name)))), "")


def _tags(row: Mapping[str, Any]) -> list[str]:
    tags = decoded(row.get("tags"))
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


IMPORTER = Importer(
    "langfuse",
    "Langfuse",
    traces("langfuse", _spans),
    signs=(
        signs("id trace_id parent_observation_id type start_time input output"),
        signs("id traceId type startTime input output level"),
        signs("id timestamp sessionId input output release"),
        signs("id timestamp session_id input output release"),
        signs("id trace_id name value data_type source"),
        signs("id traceId name value dataType source"),
    ),
)
