"""Ollama's own chat API. In OpenAI's form the context cannot be set, and a prompt that is longer is cut without a word.

Documented at docs.ollama.com (Chat, Structured outputs) and in the server's request types (`truncate`); read in
November 2026. Older servers ignore what they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from steelyard.judges.dialects.base import Answer, Dialect, Ending, Messages, as_json, joined
from steelyard.judges.logprobs import tokens_of
from steelyard.judges.payload import token_count
from steelyard.judges.providers import Mode
from steelyard.judges.schema import strict_schema
from steelyard.judges.terms import Terms
from steelyard.records import Ask, Usage

# The server's own default is as little as 4,096 tokens, less than many passages have.
CONTEXT = 16_384
# An error instead of a judgement of half a prompt.
WHOLE = {"stream": False, "truncate": False, "shift": False}


class OllamaDialect(Dialect):
    """POST /api/chat."""

    path = "/api/chat"
    section = "options"
    spelling: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "seed": "seed",
        "max_tokens": "num_predict",
        "stop": "stop",
        "num_ctx": "num_ctx",
    }
    defaults: ClassVar[Mapping[str, Any]] = {"temperature": 0, "num_ctx": CONTEXT}
    endings: ClassVar[Mapping[str, Ending]] = {"length": "cut_off"}

    @property
    def url(self) -> str:
        # Some give the address of its OpenAI form.
        return self.endpoint.at(self.path).replace("/v1/api/", "/api/", 1)

    def settings(self, ask: Ask, terms: Terms) -> dict[str, Any]:
        return {"model": self.endpoint.model, **WHOLE, **super().settings(ask, terms)}

    def shape(self, mode: Mode, ask: Ask) -> dict[str, Any]:
        return {"format": strict_schema(ask.reply) if mode == "json_schema" else "json"}

    def conversation(self, messages: Messages) -> bytes:
        return b'{"messages":' + joined(as_json(dict(message)) for message in messages)

    def read(self, payload: Mapping[str, Any]) -> Answer:
        prompt = token_count(payload.get("prompt_eval_count"))
        usage = Usage(
            calls=1,
            prompt_tokens=prompt,
            completion_tokens=token_count(payload.get("eval_count")),
            cached_tokens=min(prompt, token_count(payload.get("prompt_eval_cached_count"))),
        )
        message, reason = payload.get("message"), payload.get("done_reason")
        if not isinstance(message, dict):
            return Answer("", usage, "absent", "a response without message")
        content = message.get("content")
        text = content if isinstance(content, str) else ""
        tokens = tokens_of({"logprobs": {"content": payload.get("logprobs")}}) if self.endpoint.logprobs else ()
        return Answer(text, usage, self.ending(reason), f"done_reason is {reason}", tokens)
