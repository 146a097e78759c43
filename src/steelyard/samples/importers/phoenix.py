"""Arize Phoenix and other keepers of OpenInference spans; results of Phoenix experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from steelyard.errors import InputError
from steelyard.samples.columns import Kind
from steelyard.samples.importers.base import (
    Imported,
    ImportedScore,
    Importer,
    Skipped,
    by_first_row,
    ids,
    mapping_at,
    mappings_at,
    one_by_one,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import answer_in, decoded, passages_beside, passages_in, question_in
from steelyard.samples.importers.conversations import Conversation
from steelyard.samples.importers.traces import Span, traces

MOST_DOCUMENTS = 1_000


# --- experiments -----------------------------------------------------------------------------------


def _run(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    if row.get("output") is None:
        skipped["run that failed" if row.get("error") else "run without an output"] += 1
        return
    example, repetition = plain_id(row.get("example_id")), plain_id(row.get("repetition_number"))
    id = f"{example}#{repetition}" if repetition not in ("", "1") else example
    source = ids("phoenix", example_id=example, repetition=repetition, trace_id=row.get("trace_id"))
    scores = [score for one in mappings_at(row, "annotations") for score in _annotation(one, skipped)]
    asked, said = question_in(row.get("input")), answer_in(row.get("output"))
    if kind == "dialogue":
        talk = Conversation(id, source, row)
        talk.add(asked, said)
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    fields = {
        "id": id,
        "question": asked,
        "answer": said,
        "reference_answer": answer_in(row.get("reference_output")),
        "references": passages_beside(row.get("output")) or passages_beside(row.get("input")),
    }
    yield Imported({name: value for name, value in fields.items() if value is not None}, source, tuple(scores), row)


def _annotation(one: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    value = one.get("score") if one.get("score") is not None else one.get("label")
    by_person = text_at(one, "annotator_kind") == "HUMAN"
    by = "annotator" if by_person else ""
    yield from scored(skipped, one.get("name"), value, by=by, by_person=by_person, reason=text_at(one, "explanation"))


# --- spans -----------------------------------------------------------------------------------------


def _spans(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Span]:
    """A span of the API or the client, a row of `get_spans_dataframe`, or a batch of OTLP (`resourceSpans`)."""
    for resource in mappings_at(row, "resourceSpans"):
        for scope in mappings_at(resource, "scopeSpans"):
            for span in mappings_at(scope, "spans"):
                yield _span(_otlp(span), skipped)
    if "resourceSpans" not in row:
        yield _span(row, skipped)


def _span(row: Mapping[str, Any], skipped: Skipped) -> Span:
    context = mapping_at(row, "context")
    trace = _hex(context.get("trace_id", row.get("context.trace_id")))
    span = _hex(context.get("span_id", row.get("context.span_id")))
    if not trace or not span:
        raise InputError("a span needs context.trace_id and context.span_id", field="context")
    kind = text_at(row, "span_kind") or str(_attribute(row, "openinference.span.kind") or "")
    model = _attribute(row, "llm.model_name")
    return Span(
        trace,
        span,
        _hex(row.get("parent_id")),
        kind.casefold(),
        _attribute(row, "input.value"),
        _attribute(row, "output.value"),
        plain_id(_attribute(row, "session.id")),
        str(row.get("start_time") or ""),
        error=text_at(row, "status_message") or "error" if _status(row) == "ERROR" else "",
        tags=[tag for tag in _list(_attribute(row, "tag.tags")) if isinstance(tag, str)],
        model=model if isinstance(model, str) else "",
        documents=_documents(row),
        record=row,
    )


def _hex(id: object) -> str:
    """The OpenTelemetry SDK prints ids with 0x; everybody else writes them without."""
    return plain_id(id).removeprefix("0x")


def _status(row: Mapping[str, Any]) -> object:
    # As Phoenix has it, or as the OpenTelemetry SDK prints a span.
    return row.get("status_code", mapping_at(row, "status").get("status_code"))


def _attribute(row: Mapping[str, Any], name: str) -> object:
    """An attribute under its dotted name, in objects inside each other, or as a column of a table."""
    attributes = mapping_at(row, "attributes")
    for flat in (attributes.get(name), row.get(f"attributes.{name}")):
        if flat is not None:
            return flat
    *outer, last = name.split(".")
    return mapping_at(attributes, *outer).get(last)


def _documents(row: Mapping[str, Any]) -> list[str]:
    found = _attribute(row, "retrieval.documents")
    if found is not None:
        flat = [one.get("document.content") for one in _list(decoded(found)) if isinstance(one, Mapping)]
        return [text for text in flat if isinstance(text, str)] or passages_in(found)
    texts: list[str] = []
    for number in count():
        text = _attribute(row, f"retrieval.documents.{number}.document.content")
        if not isinstance(text, str) or number == MOST_DOCUMENTS:
            return texts
        texts.append(text)
    return texts


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _otlp(span: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {
        plain_id(one.get("key")): next(iter(mapping_at(one, "value").values()), None)
        for one in mappings_at(span, "attributes")
    }
    code = mapping_at(span, "status").get("code")
    return {
        "context": {"trace_id": span.get("traceId"), "span_id": span.get("spanId")},
        "parent_id": span.get("parentSpanId"),
        "start_time": str(span.get("startTimeUnixNano") or "").zfill(20),
        "status_code": "ERROR" if code in (2, "STATUS_CODE_ERROR") else "",
        "status_message": mapping_at(span, "status").get("message"),
        "name": span.get("name"),
        "attributes": attributes,
    }


IMPORTER = Importer(
    "phoenix",
    "Phoenix / OpenInference",
    by_first_row(lambda first: one_by_one(_run) if "example_id" in first else traces("phoenix", _spans)),
    signs=(
        signs("context.trace_id context.span_id attributes parent_id"),
        signs("context.trace_id context.span_id attributes.openinference.span.kind"),
        signs("context.trace_id context.span_id attributes.input.value"),
        signs("resourceSpans.scopeSpans.spans"),
        signs("example_id input output reference_output annotations"),
    ),
)
