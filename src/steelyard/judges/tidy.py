"""Repairs small deviations of small models from a reply's schema where only one meaning is possible."""

from __future__ import annotations

import re
import types
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from steelyard.tasks import SYNONYMS
from steelyard.text import fold

TRUE, FALSE = ("是", "真", "有效", "valid"), ("否", "假", "无效", "無效", "invalid")
NOTHING = ("", "null", "none", "n/a", "无", "無")
# What the judged text says of itself is no source.
NO_SOURCE = (
    "answer",
    "atom",
    "atoms",
    "sentence",
    "question",
    "claim",
    "key_points",
    "答案",
    "回答",
    "原子信息",
    "问题",
    "問題",
)
DECORATION = " \t\r\n\"'`*【】[]（）()《》“”。.：:"
# Between letters only: the minus of -1 is not a joint.
JOINT = re.compile(r"(?<=[a-z])[-\s]+(?=[a-z])")
# "1.", "id 1", "reference 0", "第1条"; -1 and 1.5 are other numbers, and of two nobody knows which is meant.
# No count has twenty digits, and Python reads no number of five thousand.
ONE_NUMBER = re.compile(r"[^\d\-−.]*+(\d{1,18})[^\d]*+")


def tidy(value: Any, kind: Any) -> Any:
    """The value converted to `kind` if the conversion is unambiguous; otherwise unchanged."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _tidy_option(value, get_args(kind))
    if origin is Literal:
        return _tidy_choice(value, get_args(kind))
    if origin is list and isinstance(value, list):
        (item_kind,) = get_args(kind)
        return [tidy(item, item_kind) for item in _numbered(value, item_kind)]
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, dict):
        return _tidy_fields(value, kind)
    if isinstance(value, str):
        # A lone half of a surrogate pair comes from a token cut in two; nothing could store it.
        value = value.encode("utf-8", "replace").decode()
    if kind is bool and isinstance(value, str):
        word = value.strip(DECORATION).casefold()
        return True if word in TRUE else False if word in FALSE else value
    if kind is int and isinstance(value, str) and (number := ONE_NUMBER.fullmatch(value)):
        return int(number[1])
    return value


def _numbered(values: list[Any], kind: Any) -> list[Any]:
    """Bare texts where each item has but an id and a text: they count from 1, as the judge was told to."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel) and values):
        return values
    required = {name for name, field in kind.model_fields.items() if field.is_required()}
    if required != {"id", "text"} or not all(isinstance(value, str) for value in values):
        return values
    return [{"id": number, "text": text} for number, text in enumerate(values, start=1)]


def _tidy_fields(value: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    tidied: dict[str, Any] = {}
    for name, inner in value.items():
        field = model.model_fields.get(name)
        if field is None:
            continue
        inner = tidy(inner, field.annotation)
        if inner is None and not field.is_required() and not _takes_none(field.annotation):
            continue  # an explicit null where there is a default means: left out
        tidied[name] = inner
    return tidied


def _tidy_option(value: Any, options: tuple[Any, ...]) -> Any:
    nullable = type(None) in options and str not in options
    if nullable and isinstance(value, str) and _is_nothing(value):
        return None
    if type(None) in options and isinstance(value, dict) and all(_is_nothing(inner) for inner in value.values()):
        return None  # all its fields filled with nothing
    rest = [option for option in options if option is not type(None)]
    if nullable and "reference" in get_args(rest[0]) and _word(value) in NO_SOURCE:
        return None
    return tidy(value, rest[0]) if len(rest) == 1 else value


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip(DECORATION).lower() in NOTHING)


def _tidy_choice(value: Any, choices: tuple[Any, ...]) -> Any:
    if not isinstance(value, str | bool):
        return value
    word = _word(value)
    # "reference 1" names the passage beside the kind of source that was asked for.
    said = JOINT.sub("_", re.sub(r"(?<=[a-z])\s+\d+$", "", word))
    matches = {choice for choice in choices if str(choice).casefold() == said or word in SYNONYMS.get(str(choice), ())}
    return matches.pop() if len(matches) == 1 else value


def _word(value: Any) -> str:
    return fold(str(value)).strip(DECORATION).casefold()


def _takes_none(annotation: Any) -> bool:
    return type(None) in get_args(annotation)
