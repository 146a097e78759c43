"""Anthropic's Messages API: the system prompt is cached, and a reply's shape asked for as output format or tool.

Documented at platform.claude.com (Messages, Structured outputs, Prompt caching, Errors); read in November 2026.
"""

from __future__ import annotations

import json
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
    split_system,
    usage_beside_cache,
)
from steelyard.judges.providers import Mode
from steelyard.judges.schema import strict_schema
from steelyard.judges.terms import Terms
from steelyard.records import Ask

# The API wants a limit; models of today write more, and think within it.
MOST_TOKENS = 16_384
# Cached for five minutes after each use: within a run, all calls of a task but the first ones read it.
CACHED = b',"cache_control":{"type":"ephemeral"}}'
COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class MessagesDialect(Dialect):
    """POST /v1/messages."""

    path = "/v1/messages"
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
    defaults: ClassVar[Mapping[str, Any]] = {"temperature": 0, "max_tokens": MOST_TOKENS}
    spelling: ClassVar[Mapping[str, str]] = {"stop": "stop_sequences"}
    has_logprobs = False
    required = frozenset({"max_tokens"})
    endings: ClassVar[Mapping[str, Ending]] = {
        "max_tokens": "cut_off",
        "model_context_window_exceeded": "cut_off",
        "refusal": "refused",
    }

    @property
    def url(self) -> str:
        # Some write the address with the version.
        return self.endpoint.at(self.path).replace("/v1/v1/", "/v1/", 1)

    def settings(self, ask: Ask, terms: Terms) -> dict[str, Any]:
        return {"model": self.endpoint.model, **super().settings(ask, terms)}

    def shape(self, mode: Mode, ask: Ask) -> dict[str, Any]:
        schema = strict_schema(ask.reply)
        if mode == "json_schema":
            return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        name = schema_name(ask)
        choice = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
        return {"tools": [{"name": name, "input_schema": schema}], "tool_choice": choice}

    def conversation(self, messages: Messages) -> bytes:
        system, turns = split_system(messages)
        instructions = b'"system":[{"type":"text","text":' + as_json_once(system) + CACHED + b"]," if system else b""
        said = (as_json({"role": role, "content": text}) for role, text in turns)
        return b"{" + instructions + b'"messages":' + joined(said)

    def read(self, payload: Mapping[str, Any]) -> Answer:
        usage, written = usage_beside_cache(payload.get("usage"), *COUNTS)
        content, reason = payload.get("content"), payload.get("stop_reason")
        if not isinstance(content, list):
            return Answer("", usage, "absent", "a message without content")
        blocks = [block for block in content if isinstance(block, dict)]
        # Thinking comes in blocks of its own, which are not read.
        called = [json.dumps(one["input"], ensure_ascii=False) for one in blocks if isinstance(one.get("input"), dict)]
        said = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
        text = called[0] if called else said
        return Answer(text, usage, self.ending(reason), f"stop_reason is {reason}", written=written)
