"""Traces: spans with a parent, of which the topmost was asked and answered and the retrievers brought the passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.errors import InputError
from steelyard.samples.columns import Kind
from steelyard.samples.files import Place, Rows
from steelyard.samples.importers.base import Imported, ImportedScore, Reader, Skipped, ids
from steelyard.samples.importers.content import (
    answer_in,
    has_more_than_text,
    messages_in,
    passages_beside,
    passages_in,
    question_in,
    system_in,
    without_repeats,
)
from steelyard.samples.importers.conversations import Conversation
from steelyard.samples.importers.grouping import grouped

RETRIEVERS = frozenset(("retriever", "retrieval", "vector_retriever"))
MODELS = frozenset(("llm", "generation", "model", "chat_model"))


class Span(NamedTuple):
    """One span as every tracing tool has it. `kind` is in small letters; `documents` are passages that stand in
    attributes of their own."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    kind: str = ""
    input: object = None
    output: object = None
    session: str = ""
    start: str = ""
    error: str = ""
    tags: Sequence[str] = ()
    model: str = ""
    reference: object = None
    documents: Sequence[str] = ()
    scores: Sequence[ImportedScore] = ()
    record: Mapping[str, Any] = {}
    is_span: bool = True
    """False for a row that only says more about its trace, such as a score in a file of its own."""


SpansOf = Callable[[Mapping[str, Any], Skipped], Iterable[Span]]


class _Trace(NamedTuple):
    root: Span
    spans: Sequence[Span]
    place: Place

    @property
    def passages(self) -> list[str]:
        retrieved = [span for span in self.spans if span.kind in RETRIEVERS]
        found = [text for span in retrieved for text in (span.documents or passages_in(span.output))]
        return without_repeats(found or passages_beside(self.root.output) or passages_beside(self.root.input))

    @property
    def question(self) -> str | None:
        return question_in(self.root.input)

    @property
    def answer(self) -> str | None:
        return answer_in(self.root.output)

    @property
    def scores(self) -> list[ImportedScore]:
        return [score for span in self.spans for score in span.scores]

    @property
    def system(self) -> str:
        asked = (self.root, *(span for span in self.spans if span.kind in MODELS))
        return next((text for span in asked if (text := system_in(messages_in(span.input)))), "")

    @property
    def model(self) -> str:
        return next((span.model for span in (self.root, *self.spans) if span.model), "")


def traces(tool: str, spans_of: SpansOf) -> Reader:
    """A reader of spans: a trace is one sample, and a session of traces one dialogue."""

    def read(rows: Rows, kind: Kind, skipped: Skipped) -> Iterator[tuple[Place, Imported | InputError]]:
        found = _traces(rows, spans_of, skipped)
        if kind == "rag":
            for one in found:
                yield one if isinstance(one[1], InputError) else (one[1].place, _sample(tool, one[1], skipped))
            return
        sessions: dict[str, list[_Trace]] = {}
        for place, trace in found:
            if isinstance(trace, InputError):
                yield place, trace
            else:
                sessions.setdefault(trace.root.session or trace.root.trace_id, []).append(trace)
        for session, parts in sessions.items():
            parts.sort(key=lambda trace: trace.root.start)
            for imported in _dialogue(tool, session, parts, skipped):
                yield parts[0].place, imported

    return read


def _traces(
    rows: Rows, spans_of: SpansOf, skipped: Skipped
) -> Iterator[tuple[Place, _Trace] | tuple[Place, InputError]]:
    for group in grouped(_spans(rows, spans_of, skipped), lambda span: str(span["trace_id"])):
        if isinstance(group, tuple):
            yield group
            continue
        placed = [(place, _restored(span)) for place, span in group]
        known = {span.span_id for _, span in placed}
        roots = [(at, one) for at, one in placed if one.is_span and (not one.parent_id or one.parent_id not in known)]
        if not roots:
            skipped["score of a trace that is not in the export"] += len(placed)
            continue
        place, root = min(roots, key=lambda one: (bool(one[1].parent_id), one[1].start))
        if answer_in(root.output) is None and (root.error or root.output is None):
            skipped["trace that failed" if root.error else "trace without an output"] += 1
            continue
        yield place, _Trace(root, [span for _, span in placed], place)


def _spans(rows: Rows, spans_of: SpansOf, skipped: Skipped) -> Rows:
    """Every span as a row of its own: some tools write many into one record."""
    for place, row in rows:
        if isinstance(row, InputError):
            yield place, row
        elif not isinstance(row, Mapping):
            yield place, place.error("expected an object of the tool's export")
        else:
            try:
                for span in spans_of(row, skipped):
                    yield place, span._asdict()
            except InputError as error:
                yield place, place.error(error.problem, error.field)
            except RecursionError:
                yield place, place.error("nested too deeply to be read")


def _restored(span: Mapping[str, Any]) -> Span:
    return Span(**{**span, "scores": tuple(ImportedScore(*score) for score in span["scores"])})


def _sample(tool: str, trace: _Trace, skipped: Skipped) -> Imported:
    root = trace.root
    if has_more_than_text(root.input):
        skipped["image, sound or file in a message"] += 1
    fields: dict[str, object] = {"id": root.trace_id, "references": trace.passages, "tags": list(root.tags)}
    # What is missing stays out, so that the error names it and says how to map it.
    if (question := trace.question) is not None:
        fields["question"] = question
    if (answer := trace.answer) is not None:
        fields["answer"] = answer
    if (reference := answer_in(root.reference)) is not None:
        fields["reference_answer"] = reference
    if trace.model:
        fields["model"] = trace.model
    return Imported(fields, _source(tool, root), tuple(trace.scores), root.record)


def _source(tool: str, root: Span) -> dict[str, str]:
    span = root.span_id if root.span_id != root.trace_id else ""
    return ids(tool, trace_id=root.trace_id, span_id=span, session_id=root.session)


def _dialogue(tool: str, session: str, parts: Sequence[_Trace], skipped: Skipped) -> Iterator[Imported]:
    first = parts[0]
    single = not first.root.session
    source = _source(tool, first.root) if single else ids(tool, session_id=session)
    system = next((trace.system for trace in parts if trace.system), "")
    talk = Conversation(session, source, first.root.record, system=system)
    talk.more = {"tags": list(first.root.tags)} | ({"model": first.model} if first.model else {})
    if single and (messages := messages_in(first.root.input)):
        answer = first.answer
        talk.add_messages([*messages, {"role": "assistant", "content": answer}] if answer else messages, skipped)
        talk.scores = list(first.scores)
    else:
        for trace in parts:
            if trace.question is None or trace.answer is None:
                skipped["trace of a session whose input or output holds no text"] += 1
                continue
            talk.add(
                trace.question,
                trace.answer,
                references=trace.passages,
                source=_source(tool, trace.root),
                scores=trace.scores,
            )
    yield from talk.imported("dialogue", skipped)
