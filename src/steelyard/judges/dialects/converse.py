"""Amazon Bedrock's Converse API: one form for the models of many vendors.

Documented in the Amazon Bedrock API reference (Converse, OutputConfig, ToolConfiguration) and user guide (Prompt
caching, Structured output, API error codes); read in November 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

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
from steelyard.records import Ask

# Others refuse a request with a cache point.
CACHING = re.compile(r"anthropic\.claude|amazon\.nova")
CACHE_POINT = b',{"cachePoint":{"type":"default"}}'
COUNTS = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")


class ConverseDialect(Dialect):
    """POST /model/MODEL/converse."""

    has_logprobs = False
    section = "inferenceConfig"
    spelling: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "topP",
        "max_tokens": "maxTokens",
        "stop": "stopSequences",
    }
    endings: ClassVar[Mapping[str, Ending]] = {
        "max_tokens": "cut_off",
        "model_context_window_exceeded": "cut_off",
        "guardrail_intervened": "refused",
        "content_filtered": "refused",
        "malformed_model_output": "interrupted",
        "malformed_tool_use": "interrupted",
    }

    @property
    def url(self) -> str:
        # A model may be an ARN, with colons and slashes.
        return self.endpoint.at(f"/model/{quote(self.endpoint.model, safe='')}/converse")

    def shape(self, mode: Mode, ask: Ask) -> dict[str, Any]:
        name, schema = schema_name(ask), strict_schema(ask.reply)
        if mode == "json_schema":
            # The schema is a text here.
            described = {"jsonSchema": {"name": name, "schema": json.dumps(schema, separators=(",", ":"))}}
            return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": described}}}
        tool = {"toolSpec": {"name": name, "inputSchema": {"json": schema}}}
        return {"toolConfig": {"tools": [tool], "toolChoice": {"tool": {"name": name}}}}

    def conversation(self, messages: Messages) -> bytes:
        system, turns = split_system(messages)
        cached = CACHE_POINT if CACHING.search(self.endpoint.model) else b""
        instructions = b'"system":[{"text":' + as_json_once(system) + b"}" + cached + b"]," if system else b""
        said = (as_json({"role": role, "content": [{"text": text}]}) for role, text in turns)
        return b"{" + instructions + b'"messages":' + joined(said)

    def read(self, payload: Mapping[str, Any]) -> Answer:
        usage, written = usage_beside_cache(payload.get("usage"), *COUNTS)
        reason = payload.get("stopReason")
        try:
            content = payload["output"]["message"]["content"]
            blocks = [block for block in content if isinstance(block, dict)]
        except (LookupError, TypeError):
            return Answer("", usage, "absent", "a response without output.message")
        used = [block["toolUse"].get("input") for block in blocks if isinstance(block.get("toolUse"), dict)]
        said = "".join(str(block["text"]) for block in blocks if "text" in block)
        text = json.dumps(used[0], ensure_ascii=False) if used and isinstance(used[0], dict) else said
        return Answer(text, usage, self.ending(reason), f"stopReason is {reason}", written=written)
