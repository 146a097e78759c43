"""Parses a judge's literal answer into the reply that was asked for, or says what is wrong with it.

The judge quotes judged text, and judged text is hostile: it may hold a complete fake reply, closing think
tags, fences, quotation marks. So a reply is known by the code of its call, which no judged text can contain: an
object without it is not looked at, wherever it stands. Two different objects with the code, a key that is given
twice, or more of a reply after its end (judged text that was quoted without escaping can end the object early)
are asked about again, as is a reply that runs out of one of its strings with the very words of the judged text
(`steelyard.judges.copying`). And a repair may mend punctuation only: where it would move or swallow a key of the
reply, or where the judged text holds keys, its result is not used.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import json_repair
from pydantic import ValidationError

from steelyard.judges.copying import Copies
from steelyard.judges.tidy import tidy
from steelyard.records import ReplyData

Data = TypeVar("Data", bound=ReplyData)

# The key of a reply under which it carries the code of its call.
CODE = "code"
# How a judge's own object begins, also with other quotation marks or none.
OPENING = re.compile(rf"""\{{\s*+["'“]?{CODE}["'”]?\s*+[:：]\s*+["'“]?(\w{{1,40}}+)""")
# One that is never closed goes on to the end: looked for again from each of its quotation marks, it took minutes.
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
# json_repair takes time with the product of length and quotation marks, and with the square of depth: 0.1 s at these
# limits, half a minute at ten times as much, and nothing else runs meanwhile. Long replies are intact as a rule.
LONGEST_REPAIR = 6_000
MOST_QUOTATION_MARKS = 400
QUOTATION_MARK = re.compile(r"[\"'“”‘’]")
DEEPEST_REPAIR = 20
MOST_PROBLEMS = 6
THINK = re.compile(r"<(?:\w+:)?think(?:ing)?>", re.IGNORECASE)
CONTAINERS = (dict, list)
# What may follow a reply that ends the text.
AFTER = " \t\r\n`]"
UNTHINK = re.compile(r"</(?:\w+:)?think(?:ing)?>", re.IGNORECASE)

WORDS = {
    "zh": {
        "no_reply": "没有找到含有键 {keys}、且 code 的值为 {code} 的 JSON 对象",
        "several": "出现了不止一个 JSON 对象，或同一个键出现了两次；引用的文本必须放在字符串里并转义引号",
        "broken": "JSON 不完整或无法解析（字符串里的引号要转义）：{error}",
        "missing": "{place}：缺少",
        "choice": "{place}：只能是 {expected}，而不是 {value}",
        "other": "{place}：{message}",
    },
    "en": {
        "no_reply": "there is no JSON object with the keys {keys} whose code is {code}",
        "several": "there is more than one JSON object, or a key is given twice; "
        "quoted text belongs inside strings, with its quotation marks escaped",
        "broken": "the JSON is incomplete or cannot be parsed (escape quotation marks inside strings): {error}",
        "missing": "{place}: missing",
        "choice": "{place}: must be {expected}, not {value}",
        "other": "{place}: {message}",
    },
}


class Problem(NamedTuple):
    """Why a reply cannot be used, in words to send back to the judge."""

    text: str


class _Repeated(ValueError):
    """A key stands twice in one object, with two values."""


def read(
    said: str, model: type[Data], code: str, language: Literal["zh", "en"] = "en", judged: Iterable[str] = ()
) -> Data | Problem:
    """The reply in what the judge said, known by the code of the call, or what is wrong with it.

    `judged` are the texts that the judge was shown: no key of the reply may be a copy from them.
    """
    words = WORDS[language]
    is_open = bool(THINK.match(said.strip())) and not UNTHINK.search(said)
    try:
        found = _found(without_thoughts(said, code), model, code, Copies(judged, model), is_open=is_open)
    except _Repeated:
        return Problem(words["several"])
    except (ValueError, RecursionError) as error:
        return Problem(words["broken"].format(error=str(error)[:100]))
    if not found:
        return Problem(words["no_reply"].format(keys=", ".join((CODE, *_offered(model))), code=code))
    if any(other != found[0] for other in found[1:]):
        return Problem(words["several"])
    # Half a surrogate pair, from a token cut in two, would pass here and could never be written to a file.
    offered = _only_offered(found[0], model)
    reply = tidy(offered, model) if _may_hold_surrogates(said) else offered
    return _validated(reply, model, words)


def _only_offered(found: dict[str, Any], model: type[ReplyData]) -> dict[str, Any]:
    """The reply without what is for judges in code (`unsure`, `confidence`): no text can set it."""
    offered = {key: value for key, value in found.items() if key in _offered(model)}
    for key, hidden in _hidden_below(model).items():
        if isinstance(rows := offered.get(key), list):
            offered[key] = [_without(row, hidden) if isinstance(row, dict) else row for row in rows]
    return offered


def _without(row: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in hidden}


def without_thoughts(said: str, code: str) -> str:
    """The text after the judge's thinking.

    An opening tag at the start is closed by the first closing tag. Some servers swallow the opening one, and a
    closing tag may also be quoted from the judged text: so a later one counts where a reply begins after it.
    """
    text = said.strip()
    if opening := THINK.match(text):
        closing = UNTHINK.search(text)
        text = text[closing.end() if closing else opening.end() :].strip()
    if "</" not in text:
        return text
    begins = max((at.start() for at in OPENING.finditer(text) if at[1] == code), default=-1)
    closings = [closing.end() for closing in UNTHINK.finditer(text) if closing.end() <= begins]
    return text[closings[-1] :].strip() if closings else text


def _may_hold_surrogates(said: str) -> bool:
    if "\\ud" in said or "\\uD" in said:
        return True
    try:
        said.encode()
    except UnicodeEncodeError:
        return True
    return False


def _validated(found: Any, model: type[Data], words: dict[str, str]) -> Data | Problem:
    try:
        return model.model_validate(found)
    except ValidationError:
        pass
    try:
        return model.model_validate(tidy(found, model))
    except ValidationError as error:
        return Problem("; ".join(_problems(error, words)))


def _problems(error: ValidationError, words: dict[str, str]) -> Iterator[str]:
    for one in error.errors(include_url=False)[:MOST_PROBLEMS]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"]).lstrip(".")
        expected = one.get("ctx", {}).get("expected", "")
        kind = {"missing": "missing", "literal_error": "choice"}.get(one["type"], "other")
        value = json.dumps(one["input"], ensure_ascii=False, default=str)[:40]
        yield words[kind].format(place=place or "JSON", expected=expected, value=value, message=one["msg"])


# --- finding the object ----------------------------------------------------------------------------


def _found(text: str, model: type[ReplyData], code: str, copies: Copies, *, is_open: bool) -> list[dict[str, Any]]:
    """Every object of the text that carries the code and claims to be the reply; a broken one ends the search.

    In thoughts that are never closed (`is_open`) only an object that ends the text counts: others were drafts.
    """
    found: list[tuple[dict[str, Any], int, int]] = []
    at = 0
    while opening := OPENING.search(text, at):
        if opening[1] != code:
            at = opening.end()
            continue
        begins = opening.start()
        try:
            value, at = _DECODER.raw_decode(text, begins)
        except json.JSONDecodeError:
            # Never look inside a broken object: what decodes in there may be a quotation.
            if is_open and not text.rstrip(AFTER).endswith("}"):
                return []
            value, at = _repaired(text[begins:], model, code, copies), len(text)
        if _is_claim(value, model, code):
            found.append((value, begins, at))
    if not found:
        # The code need not come first in an intact object; in a broken one, a repair might fetch it from around it.
        found = [one for one in _intact_objects(text) if _is_claim(one[0], model, code)]
    if not found:
        return []
    end = found[-1][2]
    if end < len(text) and any(name.search(text, end) for name in _quoted_keys(model)):
        raise _Repeated("more of a reply after its end")
    if is_open and text[end:].strip(AFTER):
        return []
    for value, begins, ends in found:
        if _has_strays(value, model) or copies.run_out_of(text[begins:ends]):
            raise _Repeated("keys that were copied")
    return [value for value, _, _ in found]


def _has_strays(value: dict[str, Any], model: type[ReplyData]) -> bool:
    """Whether keys of the reply lie below a key that is none: there the judge's own end up after a quotation."""
    known, fields = _field_names(model), model.model_fields

    def strays(part: Any) -> bool:
        # Plain loops: most of a reply are leaves, and a generator for each level costs more than the looking.
        if isinstance(part, list):
            for inner in part:  # noqa: SIM110
                if isinstance(inner, CONTAINERS) and strays(inner):
                    return True
            return False
        for key, inner in part.items():
            if not isinstance(inner, CONTAINERS):
                continue
            if strays(inner) if key in known else key not in fields and not known.isdisjoint(_keys(inner)):
                return True
        return False

    return strays(value)


def _repaired(text: str, model: type[ReplyData], code: str, copies: Copies) -> Any:
    text = _unfenced(text)
    if len(text) > LONGEST_REPAIR or _depth(text) > DEEPEST_REPAIR or _is_full_of_marks(text):
        raise ValueError("too long or too deep to repair")
    if len(re.findall(r'(?<!\\)"', text)) % 2:
        raise ValueError("a string is not closed")
    bare = STRING.sub("", text)
    if bare.count("[") > bare.count("]"):
        # Closing it would pass for a complete list what was cut off in the middle.
        raise ValueError("a list is not closed")
    if copies.hold_keys(_key_patterns(model).values()):
        raise ValueError("the quoted text holds keys")
    repaired = json_repair.loads(text, skip_json_loads=True)
    objects = repaired if isinstance(repaired, list) else [repaired]
    claim = next((one for one in objects if _is_claim(one, model, code)), None)
    held = Counter(_keys(claim))
    for key, pattern in _key_patterns(model).items():
        if len(pattern.findall(text)) > held[key]:
            raise _Repeated(key)
    return claim


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2] if "\n" in text else text.strip("`").removeprefix("json")
    return text.removesuffix("```").strip()


def _intact_objects(text: str) -> Iterator[tuple[Any, int, int]]:
    """The intact objects in a text, each with its beginning and its end; broken ones are stepped over."""
    at, tries = 0, 0
    while (at := text.find("{", at)) >= 0 and tries < 100:
        try:
            begins = at
            value, at = _DECODER.raw_decode(text, begins)
            yield value, begins, at
        except (ValueError, RecursionError):
            at, tries = at + 1, tries + 1


def _is_claim(value: Any, model: type[ReplyData], code: str) -> bool:
    # Replies whose fields all have defaults are satisfied by any object, even by an item that carries the code.
    return isinstance(value, dict) and value.get(CODE) == code and not value.keys().isdisjoint(_offered(model))


def _is_full_of_marks(text: str) -> bool:
    return len(QUOTATION_MARK.findall(text)) > MOST_QUOTATION_MARKS


def _depth(text: str) -> int:
    deepest = depth = 0
    for mark in re.findall(r"[\[{}\]]", text):
        depth += 1 if mark in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


@cache
def _offered(model: type[ReplyData]) -> tuple[str, ...]:
    """The keys that the schema shows; a reply may have others, for judges in code, that no text can set."""
    return tuple(model.model_json_schema()["properties"])


@cache
def _hidden_below(model: type[ReplyData]) -> dict[str, frozenset[str]]:
    """By list of the reply, the keys of its items that the schema does not show."""
    rows = {name: get_args(field.annotation) for name, field in model.model_fields.items()}
    kinds = {name: kind[0] for name, kind in rows.items() if kind and isinstance(kind[0], type)}
    found = {
        name: frozenset(kind.model_fields) - frozenset(_offered(kind))
        for name, kind in kinds.items()
        if issubclass(kind, ReplyData) and name in _offered(model)
    }
    return {name: hidden for name, hidden in found.items() if hidden}


@cache
def _key_patterns(model: type[ReplyData]) -> dict[str, re.Pattern[str]]:
    """For each key that the reply can hold, how it looks in text as a key, whatever its quotation marks."""
    return {name: re.compile(rf"\b{re.escape(name)}\b[\"'”]?\s*[:：]") for name in _field_names(model)}


@cache
def _quoted_keys(model: type[ReplyData]) -> tuple[re.Pattern[str], ...]:
    """The same, but between quotation marks: in what follows a reply, `reason:` is a word."""
    return tuple(re.compile(rf"[\"'“]{re.escape(name)}[\"'”]\s*[:：]") for name in _field_names(model))


@cache
def _field_names(model: type[ReplyData]) -> frozenset[str]:
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return frozenset(name for part in parts for name in part.get("properties", {}))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs) and any(held[key] != value for key, value in pairs):
        raise _Repeated("a key stands twice")
    return held


_DECODER = json.JSONDecoder(object_pairs_hook=_once, strict=False)
