"""One mapping to one sample: which of its keys means what, under the names people already use."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final, Literal

from steelyard.errors import ConfigError, InputError
from steelyard.records import DialogueSample, RagSample, Sample, Turn
from steelyard.samples import values
from steelyard.samples.literals import parsed
from steelyard.samples.messages import exchange, has_roles, messages_of, system_of, turns_of

Kind = Literal["rag", "dialogue"]

Names = tuple[tuple[str, ...], ...]
"""The names of a field in ranks. The first rank that has a value gives it; two different values within
a rank are an error, because either could be meant."""

_SHARED: Final[dict[str, Names]] = {
    "id": (("id",), ("sample_id", "query_id")),
    "tags": (("tags",), ("tag", "标签", "標籤")),
    "model": (("model",), ("model_name", "模型")),
    "messages": (("messages",),),
}
_RAG: Final[dict[str, Names]] = {
    **_SHARED,
    "question": (("question",), ("user_input", "query", "input", "问题", "問題"), ("prompt",)),
    # One rank only: where `answer` stands beside `response`, one of the two is often the reference answer.
    "answer": (
        ("answer", "response", "actual_output", "生成内容", "生成內容", "回答"),
        ("output",),
    ),
    "references": (
        ("references",),
        ("retrieved_contexts", "retrieval_context", "retrieved_context"),
        ("contexts", "background", "passages", "documents", "docs", "参考答案", "參考答案"),
        # Last, because deepeval's `context` is the ideal beside what was retrieved.
        ("context",),
    ),
    "reference_answer": (
        ("reference_answer",),
        ("reference", "ground_truth", "ground_truths", "expected_output", "gt_answer"),
        ("标准答案", "標準答案"),
    ),
    "key_points": (("key_points",), ("关键信息", "關鍵資訊", "必須包含的關鍵資訊", "必须包含的关键信息")),
    "date": (("date",), ("日期",)),
    "place": (("place",), ("pos", "地点", "地點")),
}
_DIALOGUE: Final[dict[str, Names]] = {
    **_SHARED,
    "system_prompt": (("system_prompt",), ("system", "系统提示词", "系統提示詞")),
    "turns": (("turns",), ("待评估对话", "待評估對話", "dialogue", "conversation")),
}
_TURN: Final[dict[str, Names]] = {
    "prompt": (("prompt",), ("question", "query", "input", "user_input", "user")),
    "answer": (("answer",), ("response", "actual_output", "output", "assistant")),
    "criteria": (("criteria",), ("评估细则", "評估細則")),
}
_NAMES: Final[dict[Kind, dict[str, Names]]] = {"rag": _RAG, "dialogue": _DIALOGUE}
_SPELLING = re.compile(r"[\s_$-]+")


def known_fields(kind: Kind) -> tuple[str, ...]:
    """The canonical names that `fields` (`--map`) may give a column for."""
    turn = tuple(f"turns.{name}" for name in _TURN) if kind == "dialogue" else ()
    return (*_NAMES[kind], *turn)


def check_fields(kind: Kind, fields: Mapping[str, str] | None) -> None:
    """A mistyped name would leave the field silently unread, so it stops everything."""
    for name in fields or ():
        if name not in known_fields(kind):
            known = ", ".join(known_fields(kind))
            raise ConfigError(f"no field is called {name!r}; a column can be mapped to: {known}")


def sample_from(row: Mapping[str, object], kind: Kind, *, fields: Mapping[str, str] | None = None) -> Sample:
    """The sample that one mapping stands for. Raises `InputError`, which names the field."""
    check_fields(kind, fields)
    sample = coerce(row, kind, fields or {})
    return sample if sample.id else sample.model_copy(update={"id": derived_id(sample)})


def derived_id(sample: Sample) -> str:
    """Twelve hex digits of the content: the same row has the same id in every file and on every machine."""
    # Defaults are left out so that a field added later does not change the ids of old rows.
    content = sample.model_dump(mode="json", exclude={"id"}, exclude_defaults=True)
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def coerce(row: object, kind: Kind, fields: Mapping[str, str]) -> Sample:
    """Like `sample_from`, but a missing id stays empty."""
    if not isinstance(row, Mapping):
        raise InputError(f"expected an object with fields, got {values.kind_of(row)}")
    try:
        return _rag(row, fields) if kind == "rag" else _dialogue(row, fields)
    except RecursionError:
        raise InputError("nested too deeply to be read") from None


class _Row:
    """The fields of one mapping, by canonical name."""

    def __init__(
        self, row: Mapping[str, object], names: Mapping[str, Names], fields: Mapping[str, str], inside: str = ""
    ) -> None:
        self._row, self._names, self._fields, self._inside = row, names, fields, inside
        self._columns: dict[str, list[str]] = {}
        for key in row:
            self._columns.setdefault(_spelling(str(key)), []).append(key)

    def path(self, name: str) -> str:
        return f"{self._inside}{name}"

    def value(self, name: str) -> object:
        """The value of a field; None where it is absent, null or no more than an empty cell."""
        found = self.find(name)[1]
        return None if values.is_blank(found) else found

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return None if value is None else values.text(value, self.path(name))

    def needed(self, name: str, *, blank: bool = False) -> str:
        """A text that must be there. Null is not an empty text: it says that nothing was recorded."""
        column, value = self.find(name)
        if column is None:
            raise self.missing(name)
        if value is None:
            raise InputError('is null; write "" for an empty text', field=self.path(name))
        found = values.text(value, self.path(name))
        if not blank and not found.strip():
            raise InputError("is empty", field=self.path(name))
        return found

    def missing(self, name: str) -> InputError:
        problem = f"not in this row; {self._has()} (name the right one: --map {self._mapped(name)}=COLUMN)"
        return InputError(problem, field=self.path(name))

    def find(self, name: str) -> tuple[str | None, object]:
        """The column that holds a field, and what it holds."""
        if name in self._fields:
            return self._fields[name], self._at(name, self._fields[name])
        blank: tuple[str | None, object] = (None, None)
        for rank in self._names[name]:
            keys = [key for alias in rank for key in self._columns.get(_spelling(alias), ())]
            found = [(key, values.plain(self._row[key])) for key in keys]
            given = [(key, value) for key, value in found if not values.is_blank(value)]
            for key, value in given[1:]:
                if value != given[0][1]:
                    raise InputError(
                        f"{given[0][0]!r} and {key!r} differ, and either could be meant; "
                        f"choose with --map {self._mapped(name)}={key}",
                        field=self.path(name),
                    )
            if given:
                return given[0]
            # Of names that are all blank, an empty text says more than a null.
            for candidate in found:
                if blank[0] is None or (blank[1] is None and candidate[1] is not None):
                    blank = candidate
        return blank

    def _at(self, name: str, path: str) -> object:
        """The value at `a.b.0`, unless a column is called exactly that."""
        if path in self._row:
            return values.plain(self._row[path])
        here: object = self._row
        for step in path.split("."):
            here = _step(here, step)
            if here is _NOWHERE:
                problem = f"{path!r}, which it is mapped to, is not in this row; {self._has()}"
                raise InputError(problem, field=self.path(name))
        return values.plain(here)

    def _has(self) -> str:
        keys = [repr(str(key)[:40]) for key in self._row]
        more = ", …" if len(keys) > 8 else ""
        return f"it has {', '.join(keys[:8])}{more}" if keys else "it has no fields"

    def _mapped(self, name: str) -> str:
        return f"turns.{name}" if self._inside else name


_NOWHERE: Final = object()


def _step(here: object, step: str) -> object:
    if isinstance(here, str):
        try:
            here = parsed(here)
        except ValueError:
            return _NOWHERE
    elif not isinstance(here, Mapping | list):
        here = values.plain(here)
    if isinstance(here, Mapping):
        return here.get(step, _NOWHERE)
    if isinstance(here, list) and re.fullmatch(r"-?\d{1,9}", step) and -len(here) <= int(step) < len(here):
        return here[int(step)]
    return _NOWHERE


def _spelling(name: str) -> str:
    """`User Input`, `userInput` and `user_input` are one name."""
    return _SPELLING.sub("", name).strip("\ufeff").casefold()


def _rag(data: Mapping[str, object], fields: Mapping[str, str]) -> RagSample:
    row = _Row(data, _RAG, fields)
    question, answer = _question_and_answer(row)
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
    )


def _question_and_answer(row: _Row) -> tuple[str, str]:
    messages = row.value("messages")
    asked, answered = row.value("question"), row.find("answer")[0]
    if messages is None or (asked is not None and answered is not None):
        return row.needed("question"), row.needed("answer", blank=True)
    question, answer = exchange(messages_of(messages, "messages"), answered=answered is not None)
    return (
        row.needed("question") if asked is not None else question,
        row.needed("answer", blank=True) if answered is not None else answer,
    )


def _references(row: _Row) -> tuple[str, ...]:
    value = row.value("references")
    return () if value is None else values.passages(value, "references")


def _tags(row: _Row) -> tuple[str, ...]:
    value = row.value("tags")
    return () if value is None else values.tags(value, "tags")


def _id(row: _Row) -> str:
    value = row.value("id")
    return "" if value is None else values.scalar(value, "id")


def _dialogue(data: Mapping[str, object], fields: Mapping[str, str]) -> DialogueSample:
    row = _Row(data, _DIALOGUE, fields)
    name = "turns" if row.value("turns") is not None else "messages"
    value = row.value(name)
    if value is None:
        row.needed("system_prompt")
        raise row.missing("turns")
    listed = values.structured(value, name)
    inner = {key.removeprefix("turns."): path for key, path in fields.items() if key.startswith("turns.")}
    if name == "messages" or has_roles(listed):
        messages = messages_of(listed, name)
        turns = turns_of(messages, name, _criteria)
        system = row.text("system_prompt") or system_of(messages)
    else:
        turns = tuple(_turn(turn, f"turns[{index}]", inner) for index, turn in enumerate(listed))
        system = None
    return DialogueSample(
        id=_id(row),
        system_prompt=system or row.needed("system_prompt"),
        turns=turns,
        tags=_tags(row),
        model=row.text("model"),
    )


def _turn(data: object, path: str, fields: Mapping[str, str]) -> Turn:
    if not isinstance(data, Mapping):
        raise InputError(f"expected an object with prompt and answer, got {values.kind_of(data)}", field=path)
    row = _Row(data, _TURN, fields, f"{path}.")
    return Turn(
        prompt=row.needed("prompt", blank=True),
        answer=row.needed("answer", blank=True),
        criteria=_row_criteria(row),
    )


def _criteria(data: Mapping[str, object], path: str) -> tuple[str, ...]:
    return _row_criteria(_Row(data, _TURN, {}, f"{path}."))


def _row_criteria(row: _Row) -> tuple[str, ...]:
    value = row.value("criteria")
    return () if value is None else values.lines(value, row.path("criteria"))
