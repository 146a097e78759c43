"""Judged text that a judge copied into its reply without escaping it.

Such text can close the string it was put in and go on with keys of its own, and the reply is still intact JSON: the
judge's own label ends up in an object that nobody reads. No shape tells this apart, but the words do: from the end of
the string up to the first value that counts, the reply and the judged text are the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Any

from pydantic import BaseModel

from steelyard.records import ReplyData

TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
COLON = re.compile(r"\s*+:\s*+")
# What a key's value begins with, as far as it can be told apart from others.
VALUE = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\w.+-]++', re.DOTALL)
# So many characters before the end of a string must be the judged text's as well: `","label":"wrong"` alone would
# let any text that holds it spoil an honest reply.
TAIL = 4
# A judge writes spaces, backslashes and quotation marks in its own way.
LOOSE = str.maketrans("“”：，", '"":,', "\\ \t\r\n\u3000")
KEY_LIKE = re.compile(r"""["']\s*[:：]|\\u00""")


class Copies:
    """The texts that a judge was shown, to find copies of them in its reply."""

    def __init__(self, texts: Iterable[str], model: type[ReplyData]) -> None:
        self._texts = texts
        self._counting, self._chosen = _kinds(model)

    @cached_property
    def _judged(self) -> tuple[str, ...]:
        return tuple(self._texts)

    @cached_property
    def _loose(self) -> tuple[str, ...]:
        # Without a quotation mark and a colon no text can give a key.
        loose = (text.translate(LOOSE) for text in self._judged if ":" in text or "：" in text)
        return tuple(text for text in loose if '":' in text)

    def hold_keys(self, patterns: Iterable[re.Pattern[str]]) -> bool:
        """Whether a judged text holds anything that a repair could take for a key."""
        looks = (KEY_LIKE, *patterns)
        return any(look.search(text) for text in self._judged for look in looks)

    def run_out_of(self, raw: str) -> bool:
        """Whether one of the strings of this JSON is left with words of a judged text."""
        return bool(self._loose) and any(
            text.startswith(stretch) if stretch.startswith('"') else stretch in text
            for stretch in self._stretches(raw)
            for text in self._loose
        )

    def _stretches(self, raw: str) -> Iterator[str]:
        """From the last characters of each free text to the first value after it that counts."""
        ends: list[int] = []
        key = ""
        for token in TOKEN.finditer(raw):
            colon = COLON.match(raw, token.end())
            if colon is None:
                if key not in self._chosen:
                    ends.append(max(token.start() + 1, token.end() - 1 - TAIL))
                key = ""
                continue
            key = _text(token[0])
            if key in self._counting:
                value = VALUE.match(raw, colon.end())
                until = value.end() if value else colon.end()
                yield from (raw[end:until].translate(LOOSE) for end in ends)
                ends = []


def _text(token: str) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]


@cache
def _kinds(model: type[ReplyData]) -> tuple[frozenset[str], frozenset[str]]:
    """The keys of a reply whose values count, which is all but free text; and those whose value is one of a few."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    fields = [field for part in parts for field in part.get("properties", {}).items()]
    free = {name for name, field in fields if _is_free(field)}
    chosen = {name for name, field in fields if "enum" in json.dumps(field) or "const" in json.dumps(field)}
    return frozenset(name for name, _ in fields if name not in free), frozenset(chosen - free)


def _is_free(field: dict[str, Any]) -> bool:
    options = [option for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    return any(option.get("type") == "string" and not {"enum", "const"} & option.keys() for option in options)


def shown_texts(*parts: Any) -> Iterator[str]:
    """Every text in what a judge was shown."""
    texts: list[str] = []
    _gather(parts, texts)
    yield from texts


def _gather(parts: Iterable[Any], texts: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, list | tuple):
            _gather(part, texts)
        elif isinstance(part, BaseModel):
            _gather((value for _, value in part), texts)
        elif isinstance(part, dict):
            _gather(part.values(), texts)
