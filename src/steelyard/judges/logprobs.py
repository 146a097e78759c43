"""A language model's confidence in its labels: the probability of the tokens that spell them in its reply.

A token may hold a quotation mark and half a label, or half a character, so tokens are laid side by side as bytes and
each label is looked up by its place in the text. Where tokens and text do not match, nothing is said.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from steelyard.judges.parsing import CODE
from steelyard.judges.voting import leading
from steelyard.records import ReplyData

Data = TypeVar("Data", bound=ReplyData)
# A string, a number or a word, or one character of structure. Possessive, so that a broken string is passed over once.
PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL | re.ASCII)
# As in parsing: a text full of braces is not worth more.
MOST_TRIES = 100
Spans = dict[str, tuple[int, int]]
"""Where the values of one item of a reply stand: field → begin and end in bytes, without quotation marks."""


class SpelledToken(NamedTuple):
    """A token's text in the reply, and its log probability."""

    said: bytes
    logprob: float


def tokens_of(choice: Mapping[str, Any]) -> list[SpelledToken]:
    """The tokens of a completion's choice; empty where it has none that can be used."""
    given = choice.get("logprobs")
    content = given.get("content") if isinstance(given, dict) else None
    found: list[SpelledToken] = []
    for entry in content if isinstance(content, list) else ():
        token = _token(entry)
        if token is None:
            return []
        found.append(token)
    return found


def _token(entry: Any) -> SpelledToken | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return None
    logprob = entry.get("logprob")
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or math.isnan(logprob):
        return None
    said = entry.get("bytes")
    # A token of half a character cannot be written as text; its bytes can.
    if isinstance(said, list) and all(type(byte) is int and 0 <= byte < 256 for byte in said):
        return SpelledToken(bytes(said), min(0.0, logprob))
    return SpelledToken(entry["token"].encode("utf-8", "replace"), min(0.0, logprob))


def with_confidence(data: Data, text: str, tokens: Sequence[SpelledToken], code: str) -> Data:
    """The reply with the probability of each item's leading label; unchanged where it cannot be told."""
    said = text.encode("utf-8", "replace")
    # Some servers strip the text, or leave out the thoughts before it.
    shift = b"".join(token.said for token in tokens).rfind(said) if said and tokens else -1
    if shift < 0:
        return data
    odds = _Odds(tokens, shift)
    changed: dict[str, list[Any]] = {}
    for name, rows in _lists(text, said, code).items():
        items = getattr(data, name, None)
        if not isinstance(items, list) or len(items) != len(rows) or not _takes_confidence(items):
            continue
        least: dict[int, float | None] = {}
        for item, spans in zip(items, rows, strict=True):
            sure, before = odds.of(spans, item), least.get(item.id)
            # An item that is named twice stays one item: the lesser counts for both.
            least[item.id] = sure if before is None or sure is None else min(sure, before)
        changed[name] = [item.model_copy(update={"confidence": least[item.id]}) for item in items]
    return data.model_copy(update=changed) if changed else data


def _takes_confidence(items: Sequence[Any]) -> bool:
    return (
        bool(items) and isinstance(items[0], ReplyData) and {"id", "confidence"} <= type(items[0]).model_fields.keys()
    )


class _Odds:
    """The tokens by the bytes at which they end; the reply begins `shift` bytes after the first."""

    def __init__(self, tokens: Sequence[SpelledToken], shift: int) -> None:
        self._tokens, self._shift = tokens, shift
        self._ends = list(accumulate(len(token.said) for token in tokens))

    def of(self, spans: Spans, item: ReplyData) -> float | None:
        """The probability of all tokens that have a part in the item's leading label."""
        # A criterion that nothing called for was decided by that.
        field = "triggered" if getattr(item, "triggered", None) is False else leading(type(item))
        if field not in spans:
            return None
        begin, end = spans[field]
        first = bisect_right(self._ends, self._shift + begin)
        last = bisect_right(self._ends, self._shift + max(begin, end - 1))
        return round(math.exp(sum(token.logprob for token in self._tokens[first : last + 1])), 6)


def _lists(text: str, said: bytes, code: str) -> dict[str, list[Spans]]:
    """The lists of objects in the reply that carries the code, each with the places of its values."""
    at, decoder = text.rfind(f'"{code}"'), json.JSONDecoder(strict=False)
    for _ in range(MOST_TRIES):
        at = text.rfind("{", 0, max(at, 0))
        if at < 0:
            break
        try:
            value, _end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get(CODE) == code:
            # Read as Latin-1, each byte is one character, and places in the text are places in bytes.
            return _read(PART.finditer(said.decode("latin-1"), len(text[:at].encode("utf-8", "replace"))))
    return {}


def _read(parts: Iterator[re.Match[str]]) -> dict[str, list[Spans]]:
    """The lists of the first object among these parts, which is known to be intact."""
    found: dict[str, list[Spans]] = {}
    inside: list[str] = []
    key = name = ""
    expects_key = False
    for part in parts:
        said = part[0]
        match said:
            case "{" | "[":
                inside.append(said)
                expects_key = said == "{"
                if inside == ["{", "["]:
                    name = key
                elif inside == ["{", "[", "{"]:
                    found.setdefault(name, []).append({})
            case "}" | "]":
                inside.pop()
                if not inside:
                    break
            case ",":
                expects_key = inside[-1] == "{"
            case ":":
                expects_key = False
            case _ if expects_key:
                key = json.loads(said.encode("latin-1"), strict=False)
            case _ if inside == ["{", "[", "{"]:
                quoted = said.startswith('"')
                found[name][-1][key] = (part.start() + quoted, part.end() - quoted)
    return found
