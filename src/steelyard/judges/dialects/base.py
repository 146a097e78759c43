"""How one kind of API is spoken: the body of a request, and where an answer says what.

A `Dialect` knows no HTTP beyond a path; retries, limits, masking and reading the reply are the same for all.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

from steelyard.judges.endpoint import Endpoint
from steelyard.judges.logprobs import SpelledToken
from steelyard.judges.payload import token_count
from steelyard.judges.providers import Mode
from steelyard.judges.terms import Terms
from steelyard.records import Ask, TextReply, Usage

Messages = Sequence[Mapping[str, str]]
Ending = Literal["complete", "cut_off", "refused", "interrupted", "absent"]
"""How an answer ended: `interrupted` is the server's doing, `absent` means that there is no message at all."""

UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Answer(NamedTuple):
    """An endpoint's answer in any dialect. `written` are prompt tokens that went into the provider's cache."""

    text: str
    usage: Usage
    ending: Ending = "complete"
    detail: str = ""
    tokens: Sequence[SpelledToken] = ()
    written: int = 0


class Dialect(ABC):
    """A form of requests and answers, for one endpoint."""

    path: ClassVar[str]
    """Where asks are posted, below the endpoint's address."""
    headers: ClassVar[Mapping[str, str]] = {}
    section: ClassVar[str] = ""
    """The part of the body that holds sampling parameters, and how they are spelled there."""
    spelling: ClassVar[Mapping[str, str]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {"temperature": 0}
    has_logprobs: ClassVar[bool] = True
    required: ClassVar[frozenset[str]] = frozenset()
    """Parameters that cannot be left out, whatever a refusal says."""
    endings: ClassVar[Mapping[str, Ending]] = {}
    """What this API's words for the end of an answer mean; all others are complete."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @property
    def url(self) -> str:
        return self.endpoint.at(self.path)

    @property
    def names(self) -> Mapping[str, str]:
        """Parameters that this API or this provider spells otherwise than OpenAI."""
        return {**self.spelling, **self.endpoint.row.spelling}

    def parameters(self, terms: Terms) -> dict[str, Any]:
        """Parameters by OpenAI's names: temperature 0 and the provider's defaults, unless the user says otherwise."""
        body = merged({**self.defaults, **self.endpoint.row.body}, self.endpoint.body)
        if self.endpoint.logprobs and self.has_logprobs:
            body["logprobs"] = True
        return {name: value for name, value in body.items() if name not in terms.without}

    def settings(self, ask: Ask, terms: Terms) -> dict[str, Any]:
        """Everything of a request but its conversation; the same for all asks of a task."""
        body: dict[str, Any] = {}
        names = self.names
        for name, value in self.parameters(terms).items():
            placed = {names.get(name, name): value}
            body = merged(body, {self.section: placed} if self.section and name in names else placed)
        if terms.mode != "text" and not issubclass(ask.reply, TextReply):
            body = merged(body, self.shape(terms.mode, ask))
        return body

    @abstractmethod
    def shape(self, mode: Mode, ask: Ask) -> dict[str, Any]:
        """What asks for a reply of this shape."""

    @abstractmethod
    def conversation(self, messages: Messages) -> bytes:
        """The conversation, as the beginning of a JSON object: without its closing brace."""

    @abstractmethod
    def read(self, payload: Mapping[str, Any]) -> Answer:
        """What an answer says; `absent` where it is none."""

    def tail(self, ask: Ask, terms: Terms) -> bytes:
        """The settings, to be put behind a conversation."""
        return b"," + as_json(self.settings(ask, terms))[1:]

    def ending(self, word: Any) -> Ending:
        return self.endings.get(word, "complete") if isinstance(word, str) else "complete"


def schema_name(ask: Ask) -> str:
    return UNNAMEABLE.sub("_", ask.task)[:64]


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both, objects inside them too; where both say something, the second."""
    both = dict(one)
    for name, value in other.items():
        mine = both.get(name)
        both[name] = merged(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return both


def split_system(messages: Messages) -> tuple[str, list[tuple[str, str]]]:
    """The system's text, and the turns of the others as (role, text): one role never speaks twice in a row, which some
    APIs refuse."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    turns: list[tuple[str, str]] = []
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "system":
            continue
        if turns and turns[-1][0] == role:
            text = f"{turns.pop()[1]}\n\n{text}"
        turns.append((role, text))
    return system, turns


def usage_beside_cache(reported: Any, fresh: str, read: str, written: str, said: str) -> tuple[Usage, int]:
    """One call of an API whose count of input tokens leaves out what was read from the cache or written to it; and how
    many were written. The names are those of its counts."""
    if not isinstance(reported, Mapping):
        return Usage(calls=1), 0
    counts = {name: token_count(reported.get(name)) for name in (fresh, read, written, said)}
    prompt = counts[fresh] + counts[read] + counts[written]
    usage = Usage(calls=1, prompt_tokens=prompt, completion_tokens=counts[said], cached_tokens=counts[read])
    return usage, counts[written]


def joined(values: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(values) + b"]"


def as_json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "replace")


@lru_cache(maxsize=64)
def as_json_once(text: str) -> bytes:
    """The JSON of a text that comes again and again: what the judge is told once and for all."""
    return as_json(text)
