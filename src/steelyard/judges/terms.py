"""What an endpoint turns out to accept. Found out by the first calls, remembered for the judge's lifetime."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from steelyard.judges.diagnosis import is_about_key_or_model
from steelyard.judges.endpoint import Endpoint, Mode
from steelyard.judges.schema import strict_schema
from steelyard.judges.wire import Declined
from steelyard.records import Ask, TextReply

LESS: dict[Mode, Mode] = {"json_schema": "json_object", "json_object": "text"}
# Sampling parameters that a judge can do without; reasoning models refuse them.
OPTIONAL = ("temperature", "top_p", "seed", "max_tokens", "logprobs")
UNPROCESSABLE = frozenset({400, 422, 501})
FORMAT = re.compile(r"response_format|json|schema|structured|grammar|guided|constrained", re.IGNORECASE)
NOT_FORMAT = re.compile(r"context|too long|too large|length|tokens|filter|inspection|sensitive|risk", re.IGNORECASE)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
UNNAMEABLE = re.compile(r"[^A-Za-z0-9_-]")


class Terms(NamedTuple):
    """How to ask: the mode of structured output, and the parameters the endpoint does not take."""

    mode: Mode
    without: frozenset[str] = frozenset()


def opening_terms(endpoint: Endpoint) -> Terms:
    """The most that can be asked for."""
    return Terms("json_schema" if endpoint.structured == "auto" else endpoint.structured)


def other_terms(terms: Terms, refusal: Declined, endpoint: Endpoint, *, proven: bool) -> Terms | None:
    """Terms that avoid this refusal, or null if it is about something else.

    Until a call has succeeded (`proven`), a refusal that does not say what it is about may be about the
    format: many local servers just answer 400.
    """
    if refusal.status not in UNPROCESSABLE:
        return None
    sent = parameters(endpoint, terms)
    for name in OPTIONAL:
        if name in sent and re.search(rf"(?<![A-Za-z_]){name}(?![A-Za-z_])", refusal.message):
            return terms._replace(without=terms.without | {name})
    unexplained = not (proven or FORMAT.search(refusal.message) or _is_about_something_else(refusal))
    if unexplained and "logprobs" in sent:
        return terms._replace(without=terms.without | {"logprobs"})
    if endpoint.structured != "auto" or terms.mode == "text":
        return None
    if FORMAT.search(refusal.message) or unexplained:
        return terms._replace(mode=LESS[terms.mode])
    return None


def _is_about_something_else(refusal: Declined) -> bool:
    return bool(NOT_FORMAT.search(refusal.message)) or is_about_key_or_model(refusal)


def parameters(endpoint: Endpoint, terms: Terms) -> dict[str, Any]:
    """Body parameters under these terms: temperature 0 unless the user says otherwise."""
    body = {"temperature": 0, **endpoint.body}
    if endpoint.logprobs:
        body["logprobs"] = True
    kept = {name: value for name, value in body.items() if name not in terms.without}
    if "max_tokens" in terms.without and "max_tokens" in body:
        kept["max_completion_tokens"] = body["max_tokens"]  # its newer name
    return kept


def settings(endpoint: Endpoint, terms: Terms, ask: Ask) -> bytes:
    """Everything of a request but its messages, as the tail of a JSON object; the same for all asks of a task."""
    body = {"model": endpoint.model, **parameters(endpoint, terms)}
    if terms.mode != "text" and not issubclass(ask.reply, TextReply):
        body["response_format"] = _response_format(terms.mode, ask)
    return b"," + _json(body)[1:]


def request_body(messages: list[dict[str, str]], tail: bytes) -> bytes:
    """A complete request: the messages and the settings that belong to their task."""
    return b'{"messages":[' + b",".join(map(_message, messages)) + b"]" + tail


def _message(message: dict[str, str]) -> bytes:
    content = message["content"]
    # What the judge is told once and for all is the larger part of most requests.
    said = _json_once(content) if message["role"] == "system" else _json(content)
    return b'{"role":' + _json(message["role"]) + b',"content":' + said + b"}"


def _response_format(mode: Mode, ask: Ask) -> dict[str, Any]:
    if mode == "json_object":
        return {"type": "json_object"}
    name = UNNAMEABLE.sub("_", ask.task)[:64]
    schema = {"name": name, "strict": True, "schema": strict_schema(ask.reply)}
    return {"type": "json_schema", "json_schema": schema}


@lru_cache(maxsize=64)
def _json_once(text: str) -> bytes:
    return _json(text)


def _json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "replace")
