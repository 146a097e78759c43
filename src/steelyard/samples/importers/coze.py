"""Coze Loop 扣子罗盘: items of an evaluation set with the results of evaluators, and spans of traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from steelyard.samples.importers.content import passages_in
from steelyard.samples.importers.conversations import Conversation
from steelyard.samples.importers.traces import Span, traces

ASKED = ("input", "question", "query", "prompt", "问题")
SAID = ("actual_output", "output", "answer", "response", "回答")
WANTED = ("reference_output", "expected_output", "reference", "reference_answer", "参考答案", "参考输出")
FOUND = ("context", "contexts", "references", "retrieval_context", "documents", "背景")
SYSTEM = ("system", "system_prompt")
_DEEPEST = 12


def _item(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    item = plain_id(row.get("id", row.get("item_id")))
    talk = Conversation(item, ids("coze", item_id=item, item_key=row.get("item_key")), row)
    turns = mappings_at(row, "turns")
    for number, turn in enumerate(turns, 1):
        texts = _texts(turn, skipped)
        asked, said = (_first(texts, names) for names in (ASKED, SAID))
        if asked is None or said is None:
            lacking = "question" if asked is None else "answer of the assistant (run an experiment first)"
            skipped[f"turn without a{'' if lacking[0] == 'q' else 'n'} {lacking}"] += 1
            continue
        talk.system = talk.system or _first(texts, SYSTEM) or ""
        wanted = _first(texts, WANTED)
        if wanted and len(turns) == 1 and kind == "rag":
            talk.more["reference_answer"] = wanted
        elif wanted:
            skipped["reference answer of a turn in a conversation"] += 1
        id = plain_id(turn.get("id"))
        talk.add(
            asked,
            said,
            references=passages_in(_first(texts, FOUND)),
            source=ids("coze", turn_id=id, trace_id=_trace(turn)),
            scores=list(_evaluations(turn if len(turns) > 1 else row, skipped)),
            id=item if len(turns) == 1 else f"{item}#{number}",
        )
    if not turns:
        skipped["item without turns"] += 1
        return
    yield from talk.imported(kind, skipped)


def _texts(turn: Mapping[str, Any], skipped: Skipped) -> dict[str, str]:
    found: dict[str, str] = {}
    for data in mappings_at(turn, "field_data_list"):
        content = mapping_at(data, "content")
        name = text_at(data, "name") or text_at(data, "key")
        if isinstance(content.get("text"), str):
            found[name] = content["text"]
        elif parts := mappings_at(content, "multi_part"):
            found[name] = "\n".join(text_at(part, "text") for part in parts if text_at(part, "text"))
            skipped["image or other part of a field"] += sum(not text_at(part, "text") for part in parts)
        elif content:
            skipped[f"field of content type {str(content.get('content_type'))[:40]!r}"] += 1
    return found


def _first(texts: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((texts[name] for name in names if texts.get(name)), None)


def _trace(turn: Mapping[str, Any]) -> object:
    return next((data.get("trace_id") for data in mappings_at(turn, "field_data_list") if data.get("trace_id")), None)


def _evaluations(record: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    """Every `evaluator_result` in the record, with the name that stands nearest above it. What a person corrected is
    a person's score."""
    rest: list[tuple[object, str, int]] = [(record, "evaluator", 0)]
    while rest:
        part, name, depth = rest.pop()
        if depth > _DEEPEST:
            continue
        if isinstance(part, list):
            rest += [(one, name, depth + 1) for one in reversed(part)]
        elif isinstance(part, Mapping):
            name = text_at(part, "evaluator_name") or name
            result = mapping_at(part, "evaluator_result")
            yield from scored(skipped, name, result.get("score"), reason=text_at(result, "reasoning"))
            if correction := mapping_at(result, "correction"):
                person = correction.get("updated_by")
                by = plain_id(person.get("name") if isinstance(person, Mapping) else person)
                by_whom = {"by": by or "annotator", "by_person": True, "reason": text_at(correction, "explain")}
                yield from scored(skipped, name, correction.get("score"), **by_whom)
            rest += [(one, name, depth + 1) for key, one in part.items() if key != "evaluator_result"]


def _spans(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Span]:
    trace, span = plain_id(row.get("trace_id")), plain_id(row.get("span_id"))
    if not trace or not span:
        raise InputError("a span needs trace_id and span_id", field="trace_id" if not trace else "span_id")
    parent = plain_id(row.get("parent_id"))
    tags = mapping_at(row, "custom_tags")
    status = row.get("status")
    yield Span(
        trace,
        span,
        # The root of a trace has the parent 0.
        "" if parent.strip("0") == "" else parent,
        (text_at(row, "type") or text_at(row, "span_type")).casefold(),
        row.get("input"),
        row.get("output"),
        plain_id(tags.get("session_id", tags.get("thread_id", row.get("session_id")))),
        plain_id(row.get("started_at")).zfill(20),
        error=str(status) if status not in (None, 0, "0", "success", "SUCCESS", "") else "",
        model=text_at(tags, "model_name"),
        scores=tuple(
            score
            for one in mappings_at(row, "annotations")
            for score in scored(
                skipped,
                one.get("key", one.get("name")),
                one.get("value"),
                by_person=_is_manual(one),
                by=plain_id(mapping_at(one, "base_info", "created_by").get("name")) or "annotator" * _is_manual(one),
                reason=text_at(one, "reasoning"),
            )
        ),
        record=row,
    )


def _is_manual(annotation: Mapping[str, Any]) -> bool:
    return "manual" in str(annotation.get("type", "")).casefold()


IMPORTER = Importer(
    "coze",
    "扣子罗盘 Coze Loop",
    by_first_row(lambda first: traces("coze", _spans) if "span_id" in first else one_by_one(_item)),
    signs=(
        signs("turns.field_data_list.content"),
        signs("trace_id span_id parent_id span_name span_type started_at"),
    ),
)
