"""MLflow: traces as `Trace.to_json()` and `search_traces()` give them, and rows of `mlflow.genai.evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.errors import InputError
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

PEOPLE = ("HUMAN",)


def _spans(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Span]:
    trace = decoded(row["trace"]) if "trace" in row else row
    if not isinstance(trace, Mapping):
        raise InputError("expected a trace with info and data", field="trace")
    info = mapping_at(trace, "info")
    id = plain_id(info.get("trace_id", info.get("request_id")))
    if not id:
        raise InputError("a trace needs info.trace_id", field="info")
    metadata = mapping_at(info, "trace_metadata")
    wanted: object = mapping_at(row, "expectations") or None
    scores: list[ImportedScore] = []
    for one in (*mappings_at(info, "assessments"), *(_given(row))):
        if expectation := mapping_at(one, "expectation"):
            wanted = wanted or expectation.get("value")
        else:
            scores += _assessment(one, skipped)
    spans = mappings_at(mapping_at(trace, "data"), "spans")
    # The topmost span has what went in and out; the previews are cut off.
    top = next((span for span in spans if not _parent(span)), {})
    asked = row.get("inputs") if row.get("inputs") is not None else _attribute(top, "mlflow.spanInputs")
    said = row.get("outputs") if row.get("outputs") is not None else _attribute(top, "mlflow.spanOutputs")
    if not top and asked is None:
        skipped["trace without spans (only its cut-off previews are left)"] += 1
        return
    yield Span(
        id,
        id,
        input=asked,
        output=said,
        session=plain_id(metadata.get("mlflow.trace.session")),
        start=str(info.get("request_time", info.get("timestamp_ms")) or ""),
        error="error" if info.get("state", info.get("status")) == "ERROR" else "",
        reference=_wanted(wanted),
        scores=scores,
        record=dict(row) | {"inputs": asked, "outputs": said},
    )
    for span in spans:
        if span is not top:
            yield Span(
                id,
                plain_id(span.get("span_id")),
                _parent(span) or id,
                str(_attribute(span, "mlflow.spanType") or "").casefold(),
                _attribute(span, "mlflow.spanInputs"),
                _attribute(span, "mlflow.spanOutputs"),
                model=str(_attribute(span, "mlflow.llm.model") or ""),
                record=span,
            )


def _given(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in list_at(row, "assessments") if isinstance(one, Mapping)]


def _parent(span: Mapping[str, Any]) -> str:
    return plain_id(span.get("parent_span_id", span.get("parent_id")))


def _attribute(span: Mapping[str, Any], name: str) -> object:
    """MLflow writes every attribute as JSON, texts with their quotes."""
    value = mapping_at(span, "attributes").get(name)
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return decoded(f"[{value}]")[0] if isinstance(decoded(f"[{value}]"), list) else value  # type: ignore[index]
    return decoded(value)


def _wanted(value: object) -> object:
    if isinstance(value, Mapping):
        return value.get("expected_response", value.get("expected_facts"))
    return value


def _assessment(one: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    source = mapping_at(one, "source")
    by_person = source.get("source_type") in PEOPLE
    feedback = mapping_at(one, "feedback")
    if feedback.get("error") or (feedback and feedback.get("value") is None):
        skipped["assessment that failed"] += 1
        return
    name = one.get("assessment_name", one.get("name"))
    by = plain_id(source.get("source_id"))
    yield from scored(
        skipped, name, feedback.get("value"), by=by, by_person=by_person, reason=text_at(one, "rationale")
    )


IMPORTER = Importer(
    "mlflow",
    "MLflow",
    traces("mlflow", _spans),
    signs=(
        signs("info.trace_id data.spans"),
        signs("info.request_id data.spans"),
        signs("trace_id trace request response trace_metadata"),
        signs("trace.info.trace_id inputs outputs"),
    ),
    is_whole=True,
)
