"""One mapping to one sample."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from steelyard.errors import InputError, Surface
from steelyard.records import DialogueSample, RagSample, Sample, Turn
from steelyard.samples import values
from steelyard.samples.columns import Kind, SourceRow, check_fields
from steelyard.samples.messages import exchange, has_roles, messages_of, system_of, turns_of
from steelyard.samples.objects import as_mapping

NO_QUESTION = "rows without a question: relevance is not judged there"


def sample_from(
    row: Mapping[str, object],
    kind: Kind,
    *,
    fields: Mapping[str, str] | None = None,
    needs_question: bool = True,
) -> Sample:
    """The sample that one mapping stands for. Raises `InputError`, which names the field."""
    check_fields(kind, fields)
    sample, _ = coerce(row, kind, fields or {}, needs_question=needs_question)
    return sample if sample.id else sample.model_copy(update={"id": derived_id(sample)})


def derived_id(sample: Sample) -> str:
    """Twelve hex digits of the content: the same row has the same id in every file and on every machine."""
    # Defaults are left out so that a field added later does not change the ids of old rows.
    content = sample.model_dump(mode="json", exclude={"id", "source"}, exclude_defaults=True)
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def coerce(
    row: object,
    kind: Kind,
    fields: Mapping[str, str],
    surface: Surface = Surface.python,
    *,
    needs_question: bool = True,
    record: Mapping[str, object] | None = None,
) -> tuple[Sample, str]:
    """Like `sample_from`, but a missing id stays empty. A record of the right kind is taken as it is.

    The second value says how the row was read, where that is not plain from the names of its columns. `record` is what
    an importer made the row from.
    """
    if isinstance(row, DialogueSample if kind == "dialogue" else RagSample):
        if kind == "pair" and isinstance(row, RagSample) and row.other_answer is None:
            raise InputError(f"the sample {row.id!r} has none, and this protocol compares two", field="other_answer")
        if needs_question and isinstance(row, RagSample) and not row.question.strip():
            raise InputError(f"the sample {row.id!r} has none, and this protocol needs one", field="question")
        return _sendable(row), ""
    row = row if isinstance(row, RagSample | DialogueSample) else as_mapping(row)
    if not isinstance(row, Mapping):
        raise InputError(f"expected an object with fields, got {values.kind_of(row)}")
    try:
        if kind == "dialogue":
            return _dialogue(row, fields, surface, record), ""
        sample = _rag(row, kind, fields, surface, needs_question, record)
        return sample, "" if sample.question.strip() else NO_QUESTION
    except RecursionError:
        raise InputError("nested too deeply to be read") from None


def _sendable(sample: Sample) -> Sample:
    """A record that did not come through `values.text`, and so may hold what no file, socket or database takes."""
    for name, value in sample.model_dump().items():
        if not values.is_encodable(json.dumps(value, ensure_ascii=False)):
            raise InputError("holds half of a surrogate pair, which is no text", field=name)
    return sample


def _rag(
    data: Mapping[str, object],
    kind: Kind,
    fields: Mapping[str, str],
    surface: Surface,
    needs_question: bool,
    record: Mapping[str, object] | None,
) -> RagSample:
    row = SourceRow(data, kind, fields, surface=surface, record=record)
    if kind == "pair":
        row.need("answer", "other_answer")
        data = {**data, **_conversations(row)}
        row = SourceRow(data, kind, fields, surface=surface, record=record)
    question, answer = _question_and_answer(row, needs_question)
    reference_answer, key_points = row.value("reference_answer"), row.value("key_points")
    date = row.value("date")
    return RagSample(
        id=_id(row),
        question=question,
        answer=answer,
        references=_references(row),
        reference_answer=None
        if reference_answer is None
        else values.joined(reference_answer, "reference_answer") or None,
        key_points=None if key_points is None else values.lines(key_points, "key_points"),
        date=None if date is None else values.date(date, "date"),
        place=row.text("place"),
        tags=_tags(row),
        model=row.text("model"),
        other_answer=row.needed("other_answer", blank=True) if kind == "pair" else None,
        other_model=row.text("other_model") if kind == "pair" else None,
        source=_source(data),
    )


def _conversations(row: SourceRow) -> dict[str, object]:
    """The columns of a pair whose answers are whole conversations, as preference data has them: what was said last in
    each, and the question where no column has it."""
    found: dict[str, object] = {}
    for name in ("answer", "other_answer"):
        column, value = row.find(name)
        if column and isinstance(value, list) and has_roles(value):
            question, found[column] = exchange(messages_of(value, column), answered=False)
            if row.value("question") is None and row.value("messages") is None:
                found["question"] = question
    return found


def _question_and_answer(row: SourceRow, needs_question: bool) -> tuple[str, str]:
    messages = row.value("messages")
    if messages is None:
        if needs_question or row.find("answer")[0] is None:
            # Whoever named one column otherwise may have named the other so too.
            row.need("question", "answer")
        return (
            row.needed("question") if needs_question else row.optional("question"),
            row.needed("answer", blank=True),
        )
    asked, answered = row.value("question") is not None, row.find("answer")[1] is not None
    question, answer = "", ""
    if not (asked and answered):
        question, answer = exchange(messages_of(messages, "messages"), answered=answered)
    return (
        row.needed("question") if asked else question,
        row.needed("answer", blank=True) if answered else answer,
    )


def _references(row: SourceRow) -> tuple[str, ...]:
    value = row.value("references")
    return () if value is None else values.passages(value, "references")


def _tags(row: SourceRow) -> tuple[str, ...]:
    value = row.value("tags")
    return () if value is None else values.tags(value, "tags")


def _source(data: Mapping[str, object]) -> dict[str, str]:
    """Where an imported sample came from, in a file that we wrote. Any other column of that name is nothing we read."""
    source = data.get("source")
    if not isinstance(source, Mapping) or "tool" not in source:
        return {}
    return {str(name): values.scalar(value, f"source.{name}") for name, value in source.items()}


def _id(row: SourceRow) -> str:
    value = row.value("id")
    return "" if value is None else values.scalar(value, "id")


def _dialogue(
    data: Mapping[str, object], fields: Mapping[str, str], surface: Surface, record: Mapping[str, object] | None
) -> DialogueSample:
    row = SourceRow(data, "dialogue", fields, surface=surface, record=record)
    name = "turns" if row.value("turns") is not None else "messages"
    value = row.value(name)
    if value is None:
        row.need("system_prompt", "turns")
        row.needed("system_prompt")
        row.needed("turns")
        raise row.missing("turns")
    listed = values.structured(value, name)
    inner = {key.removeprefix("turns."): path for key, path in fields.items() if key.startswith("turns.")}
    if name == "messages" or has_roles(listed):
        messages = messages_of(listed, name)
        turns = turns_of(messages, name, _criteria)
        system = row.text("system_prompt") or system_of(messages)
    else:
        turns = tuple(_turn(turn, f"turns[{index}]", inner, surface) for index, turn in enumerate(listed))
        system = None
    return DialogueSample(
        id=_id(row),
        # Many platforms keep it elsewhere than the conversation; the importer says so, and a rubric needs none.
        system_prompt=system or row.needed("system_prompt", blank=record is not None),
        turns=turns,
        tags=_tags(row),
        model=row.text("model"),
        source=_source(data),
    )


def _turn(data: object, path: str, fields: Mapping[str, str], surface: Surface) -> Turn:
    if not isinstance(data, Mapping):
        raise InputError(f"expected an object with prompt and answer, got {values.kind_of(data)}", field=path)
    row = SourceRow(data, "turn", fields, f"{path}.", surface)
    row.need("prompt", "answer")
    return Turn(
        prompt=row.needed("prompt", blank=True),
        answer=row.needed("answer", blank=True),
        criteria=_row_criteria(row),
    )


def _criteria(data: Mapping[str, object], path: str) -> tuple[str, ...]:
    return _row_criteria(SourceRow(data, "turn", {}, f"{path}."))


def _row_criteria(row: SourceRow) -> tuple[str, ...]:
    value = row.value("criteria")
    return () if value is None else values.lines(value, row.path("criteria"))
