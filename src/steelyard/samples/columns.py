"""Maps columns to fields: the names people already use, and a mapping for any other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal

from steelyard.errors import ConfigError, InputError, Surface
from steelyard.samples import values
from steelyard.samples.literals import parsed

Kind = Literal["rag", "dialogue", "pair"]

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
        (
            *("reference", "ground_truth", "ground_truths", "expected_output", "gt_answer"),
            *("reference_response", "标准答案", "標準答案"),
        ),
    ),
    "key_points": (("key_points",), ("关键信息", "關鍵資訊", "必須包含的關鍵資訊", "必须包含的关键信息")),
    "date": (("date",), ("日期",)),
    "place": (("place",), ("pos", "地点", "地點")),
}
# Two answers to a question. Of a pair of preference data, the chosen one is A.
_PAIR: Final[dict[str, Names]] = {
    **_RAG,
    "answer": (
        (
            *("answer_a", "response_a", "output_a", "model_a_answer", "model_a_response", "回答a"),
            *("answer_1", "response_1", "output_1", "chosen"),
        ),
        *_RAG["answer"],
    ),
    "other_answer": (
        ("other_answer",),
        (
            *("answer_b", "response_b", "output_b", "model_b_answer", "model_b_response", "回答b"),
            *("answer_2", "response_2", "output_2", "rejected", "other_response", "baseline"),
            *("另一个回答", "另一個回答"),
        ),
    ),
    "model": (("model_a", "model_1", "模型a"), *_RAG["model"]),
    "other_model": (("other_model",), ("model_b", "model_2", "模型b")),
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
_NAMES: Final[dict[Kind, dict[str, Names]]] = {"rag": _RAG, "dialogue": _DIALOGUE, "pair": _PAIR}
_SPELLING = re.compile(r"[\s_$-]+")


@lru_cache(maxsize=4096)
def _spelling(name: str) -> str:
    """`User Input`, `userInput` and `user_input` are one name."""
    return _SPELLING.sub("", name).strip("\ufeff").casefold()


def _by_spelling(names: Mapping[str, Names]) -> dict[str, tuple[str, int]]:
    return {
        _spelling(alias): (name, rank)
        for name, ranks in names.items()
        for rank, aliases in enumerate(ranks)
        for alias in aliases
    }


_SPELLED: Final = {
    "rag": _by_spelling(_RAG),
    "dialogue": _by_spelling(_DIALOGUE),
    "pair": _by_spelling(_PAIR),
    "turn": _by_spelling(_TURN),
}


def known_fields(kind: Kind) -> tuple[str, ...]:
    """The canonical names that a mapping may give a column for."""
    turn = tuple(f"turns.{name}" for name in _TURN) if kind == "dialogue" else ()
    return (*_NAMES[kind], *turn)


def check_fields(kind: Kind, fields: Mapping[str, str] | None) -> None:
    """Refuse a mapping of an unknown field, which would silently leave the field unread."""
    for name in fields or ():
        if name not in known_fields(kind):
            known = ", ".join(known_fields(kind))
            raise ConfigError(f"no field is called {name!r}; a column can be mapped to: {known}")


def names_a_sample(keys: Iterable[str]) -> bool:
    """Whether these are the columns of a sample, rather than of something that holds samples."""
    meant = {spelled[key][0] for spelled in _SPELLED.values() for key in map(_spelling, keys) if key in spelled}
    known = ({"question", "answer"}, {"references", "answer"}, {"answer", "other_answer"}, {"system_prompt", "turns"})
    return any(meant >= names for names in known)


class SourceRow:
    """The fields of one mapping, by canonical name. `inside` is the path of a mapping within a row, `record` what an
    importer made the row from."""

    def __init__(
        self,
        row: Mapping[str, object],
        shape: Literal["rag", "dialogue", "pair", "turn"],
        fields: Mapping[str, str],
        inside: str = "",
        surface: Surface = Surface.python,
        record: Mapping[str, object] | None = None,
    ) -> None:
        self._row, self._fields, self._inside, self._surface = row, fields, inside, surface
        # What the user maps, and is told of, is the record as the tool wrote it.
        self._record = row if record is None else record
        source = row.get("source") if record is not None else None
        self._tool = source.get("tool") if isinstance(source, Mapping) else None
        self._columns: dict[str, list[tuple[int, str]]] = {}
        for key in row:
            # Longer ones are nobody's column, and the cache of spellings would keep them.
            meant = _SPELLED[shape].get(_spelling(key)) if isinstance(key, str) and len(key) < 64 else None
            if meant:
                name, rank = meant
                self._columns.setdefault(name, []).append((rank, key))

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

    def optional(self, name: str) -> str:
        """A text that may be left out, unless the user named its column."""
        column, value = self.find(name)
        if name in self._fields and column is not None and value is None:
            raise self.missing(name)
        return "" if value is None else values.text(value, self.path(name))

    def need(self, *names: str) -> None:
        """Raise one error for all of these fields that no column holds."""
        if absent := [name for name in names if self.find(name)[0] is None]:
            raise self.missing(*absent)

    def missing(self, *names: str) -> InputError:
        """The error to raise for fields that must be there and are not."""
        mapping = self._surface.mapping({self._mapped(name): "COLUMN" for name in names})
        if self._tool:
            # A mapping alone would turn off the recognition of the file.
            mapping = f"{self._surface.importing(self._tool)} {mapping}"
        right = "the right one" if len(names) == 1 else "the right ones"
        problem = f"not in this row; {self._has()} (name {right}: {mapping})"
        return InputError(problem, field=", ".join(map(self.path, names)))

    def find(self, name: str) -> tuple[str | None, object]:
        """The column that holds a field, and what it holds; the column is None where there is none."""
        if name in self._fields:
            return self._fields[name], self._at(name, self._fields[name])
        if name not in self._columns:
            return None, None
        columns = [(rank, key, values.plain(self._row[key])) for rank, key in self._columns[name]]
        given = [column for column in columns if not values.is_blank(column[2])]
        if not given:
            # Of names that are all blank, an empty text says more than a null.
            return max(((key, value) for _, key, value in columns), key=_is_text)
        best, key, value = min(given, key=_rank)
        for rank, other, second in given:
            if rank == best and second != value:
                choice = f"choose with {self._surface.mapping({self._mapped(name): key})}"
                raise InputError(
                    f"{key!r} and {other!r} differ, and either could be meant; {choice}", field=self.path(name)
                )
        return key, value

    def _at(self, name: str, path: str) -> object:
        """The value at `a.b.0`, unless a column is called exactly that."""
        if path in self._record:
            return values.plain(self._record[path])
        here: object = self._record
        for step in path.split("."):
            here = _step(here, step)
            if here is _NOWHERE:
                problem = f"{path!r}, which it is mapped to, is not in this row; {self._has()}"
                raise InputError(problem, field=self.path(name))
        return values.plain(here)

    def _has(self) -> str:
        keys = [repr(str(key)[:40]) for key in self._record]
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


def _rank(column: tuple[int, str, object]) -> int:
    return column[0]


def _is_text(column: tuple[str, object]) -> bool:
    return column[1] is not None
