"""OpenAI's chat completions, which most providers speak; differences are rows of `providers.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from steelyard.judges.dialects.base import (
    Answer,
    Dialect,
    Ending,
    Messages,
    as_json,
    as_json_once,
    joined,
    schema_name,
)
from steelyard.judges.logprobs import tokens_of
from steelyard.judges.payload import token_count
from steelyard.judges.providers import Mode
from steelyard.judges.schema import strict_schema
from steelyard.judges.terms import Terms
from steelyard.records import Ask, Usage


class ChatDialect(Dialect):
    """POST /chat/completions."""

    path = "/chat/completions"
    endings: ClassVar[Mapping[str, Ending]] = {
        "length": "cut_off",
        "model_length": "cut_off",
        "max_tokens": "cut_off",
        "model_context_window_exceeded": "cut_off",
        "content_filter": "refused",
        "sensitive": "refused",
        # DeepSeek, GLM and OpenRouter, where the server gave up in the middle.
        "insufficient_system_resource": "interrupted",
        "network_error": "interrupted",
        "error": "interrupted",
    }

    def parameters(self, terms: Terms) -> dict[str, Any]:
        kept = super().parameters(terms)
        if "max_tokens" in terms.without and "max_tokens" in self.endpoint.body:
            kept["max_completion_tokens"] = self.endpoint.body["max_tokens"]  # its newer name
        return kept

    def settings(self, ask: Ask, terms: Terms) -> dict[str, Any]:
        return {"model": self.endpoint.model, **super().settings(ask, terms)}

    def shape(self, mode: Mode, ask: Ask) -> dict[str, Any]:
        if mode == "json_object":
            return {"response_format": {"type": "json_object"}}
        schema = {"name": schema_name(ask), "strict": True, "schema": strict_schema(ask.reply)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def conversation(self, messages: Messages) -> bytes:
        return b'{"messages":' + joined(_message(role, text) for role, text in _turns(messages))

    def read(self, payload: Mapping[str, Any]) -> Answer:
        usage = _usage(payload.get("usage"))
        try:
            choice = payload["choices"][0]
            message, finish = choice["message"], choice.get("finish_reason")
            content, refusal = message.get("content"), message.get("refusal")
        except (LookupError, TypeError, AttributeError):
            return Answer("", usage, "absent", "a completion without choices[0].message")
        if refusal:
            return Answer("", usage, "refused", str(refusal))
        if isinstance(finish, list) and len(finish) == 1:
            (finish,) = finish
        tokens = tokens_of(choice) if self.endpoint.logprobs else ()
        return Answer(_text(content), usage, self.ending(finish), f"finish_reason is {finish}", tokens)


def _turns(messages: Messages) -> list[tuple[str, str]]:
    """Roles and texts; no role speaks twice in a row, which Hunyuan refuses."""
    turns: list[tuple[str, str]] = []
    for message in messages:
        role, text = message["role"], message["content"]
        if turns and turns[-1][0] == role:
            text = f"{turns.pop()[1]}\n\n{text}"
        turns.append((role, text))
    return turns


def _message(role: str, text: str) -> bytes:
    # What the judge is told once and for all is the larger part of most requests.
    said = as_json_once(text) if role == "system" else as_json(text)
    return b'{"role":' + as_json(role) + b',"content":' + said + b"}"


def _text(content: Any) -> str:
    if isinstance(content, list):  # a message in parts
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(reported: Any) -> Usage:
    """One call, with the tokens the server reports in whichever of the usual places."""
    if not isinstance(reported, dict):
        return Usage(calls=1)
    details = reported.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    prompt = token_count(reported.get("prompt_tokens"))
    # DeepSeek and Moonshot say it beside the other counts.
    read = cached or reported.get("prompt_cache_hit_tokens") or reported.get("cached_tokens")
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        completion_tokens=token_count(reported.get("completion_tokens")),
        cached_tokens=min(prompt, token_count(read)),
    )
