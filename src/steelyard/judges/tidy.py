"""Small liberties that small models take with a reply, undone where only one meaning is possible."""

from __future__ import annotations

import re
import types
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from steelyard.text import fold

# Canonical label -> other ways to say it. A word counts only where its label is among the choices, and only
# if no second choice claims it too: 部分 is `partial` of a key point and `partly` of a criterion. Without a schema the
# labels of one list stray into another: a sentence that is `correct` is supported, a `wrong` key point is missing.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "correct": ("正确", "正確", "准确", "準確", "属实", "屬實", "supported", "covered"),
    "wrong": ("错误", "錯誤", "不正确", "不正確", "不准确", "不準確", "incorrect", "contradicted"),
    "undetermined": ("无法判断", "無法判斷", "无法确定", "無法確定", "不确定", "不確定", "uncertain"),
    "exempt": ("豁免", "免检", "免檢", "无需核查", "無需核查", "不需核查", "不需要核查", "no_claim"),
    "supported": ("支持", "有依据", "有依據", "完全支持", "correct", "covered"),
    "partial": ("部分", "部分支持", "部分覆盖", "部分覆蓋", "部分涵盖", "部分涵蓋", "partially"),
    "unsupported": ("不支持", "无依据", "無依據", "没有依据", "沒有依據", "missing"),
    "no_claim": ("无主张", "無主張", "无陈述", "無陳述", "无断言", "無斷言", "exempt"),
    "covered": ("覆盖", "覆蓋", "已覆盖", "已覆蓋", "涵盖", "涵蓋", "命中", "correct", "supported"),
    "missing": ("缺失", "遗漏", "遺漏", "未覆盖", "未覆蓋", "未涵盖", "未涵蓋", "未命中", "wrong", "unsupported"),
    "deep": ("深入", "详细", "詳細"),
    "adequate": ("适中", "適中", "足够", "足夠"),
    "bare": ("仅提及", "僅提及", "一笔带过", "一筆帶過"),
    "from_background": ("来自背景", "來自背景", "来源于背景", "來源於背景", "supported"),
    "benign_extension": ("良性扩展", "良性擴展", "良性延伸", "合理延伸"),
    "outside": ("背景之外", "背景外", "unsupported", "wrong"),
    "fully": ("符合", "完全符合", "full", "yes", "true"),
    "partly": ("部分", "部分符合", "partially", "partial"),
    "no": ("不符合", "false"),
    "reference": ("参考资料", "參考資料", "资料", "資料"),
    "inference": ("推断", "推斷", "推理", "推论", "推論"),
    "own_knowledge": ("自身知识", "自身知識", "自有知识", "自有知識"),
    "statistic": ("统计", "統計", "统计数字", "統計數字", "statistics"),
    "specification": ("规格", "規格", "数量", "數量", "quantity", "specifications"),
    "date": ("日期",),
    "political_date": ("政治日期", "政治类日期", "政治類日期"),
}
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
    """The value as `kind` would want it, where that is plain; otherwise unchanged."""
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
