"""Gemini's generateContent: parameters in `generationConfig`, the reply's shape as a subset of OpenAPI's schemas.

Documented at ai.google.dev (generateContent, Structured output, Troubleshooting); read in November 2026. Prompts are
cached by the provider without being asked (`cachedContentTokenCount`).
"""

from __future__ import annotations

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
    split_system,
)
from steelyard.judges.logprobs import tokens_of
from steelyard.judges.payload import token_count
from steelyard.judges.providers import Mode
from steelyard.judges.schema import strict_schema
from steelyard.records import Ask, Usage

ROLES = {"assistant": "model"}
NULL = {"type": "null"}


class GenerateDialect(Dialect):
    """POST /models/MODEL:generateContent."""

    section = "generationConfig"
    spelling: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "topP",
        "top_k": "topK",
        "seed": "seed",
        "max_tokens": "maxOutputTokens",
        "stop": "stopSequences",
        "logprobs": "responseLogprobs",
    }
    endings: ClassVar[Mapping[str, Ending]] = {
        "MAX_TOKENS": "cut_off",
        **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "refused"),
        "OTHER": "interrupted",
        "MALFORMED_FUNCTION_CALL": "interrupted",
    }

    @property
    def url(self) -> str:
        model = self.endpoint.model.removeprefix("models/")
        return self.endpoint.at(f"/models/{quote(model, safe='')}:generateContent")

    def shape(self, mode: Mode, ask: Ask) -> dict[str, Any]:
        shape: dict[str, Any] = {"responseMimeType": "application/json"}
        if mode == "json_schema":
            shape["responseSchema"] = openapi_schema(strict_schema(ask.reply))
        return {self.section: shape}

    def conversation(self, messages: Messages) -> bytes:
        system, turns = split_system(messages)
        instructions = b'"systemInstruction":{"parts":[{"text":' + as_json_once(system) + b"}]}," if system else b""
        said = (as_json({"role": ROLES.get(role, role), "parts": [{"text": text}]}) for role, text in turns)
        return b"{" + instructions + b'"contents":' + joined(said)

    def read(self, payload: Mapping[str, Any]) -> Answer:
        usage = _usage(payload.get("usageMetadata"))
        blocked = payload.get("promptFeedback")
        if isinstance(blocked, dict) and blocked.get("blockReason"):
            return Answer("", usage, "refused", f"blockReason is {blocked['blockReason']}")
        candidates = payload.get("candidates")
        if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
            return Answer("", usage, "absent", "a response without candidates")
        candidate = candidates[0]
        content, reason = candidate.get("content"), candidate.get("finishReason")
        parts = content.get("parts") if isinstance(content, dict) else None
        said = [part for part in parts or () if isinstance(part, dict) and not part.get("thought")]
        text = "".join(str(part.get("text") or "") for part in said)
        tokens = _tokens(candidate) if self.endpoint.logprobs else ()
        return Answer(text, usage, self.ending(reason), f"finishReason is {reason}", tokens)


def openapi_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same shape without what this API does not know: null as a type, other properties, enums of numbers."""
    options = schema.get("anyOf")
    if options:
        others = [openapi_schema(option) for option in options if option != NULL]
        nullable = {"nullable": True} if len(others) < len(options) else {}
        return {**others[0], **nullable} if len(others) == 1 else {"anyOf": others, **nullable}
    kind = schema.get("type")
    kinds = [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]
    listed = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    values = [value for value in listed if value is not None]
    kept: dict[str, Any] = {"type": kinds[0] or "string"}
    if isinstance(kind, list) and len(kinds) < len(kind):
        kept["nullable"] = True
    if values and all(isinstance(value, str) for value in values):
        kept["enum"] = values
    if "items" in schema:
        kept["items"] = openapi_schema(schema["items"])
    if "properties" in schema:
        kept["properties"] = {name: openapi_schema(part) for name, part in schema["properties"].items()}
        kept["required"] = list(schema["required"])
        # Older models write properties by the alphabet without it, and the reason should come before the label.
        kept["propertyOrdering"] = list(schema["properties"])
    return kept


def _tokens(candidate: Mapping[str, Any]) -> Any:
    given = candidate.get("logprobsResult")
    chosen = given.get("chosenCandidates") if isinstance(given, dict) else None
    entries = [entry for entry in chosen or () if isinstance(entry, dict)]
    spelled = [{"token": entry.get("token"), "logprob": entry.get("logProbability")} for entry in entries]
    return tokens_of({"logprobs": {"content": spelled}})


def _usage(reported: Any) -> Usage:
    """Thoughts are paid for as output, and counted apart from it."""
    if not isinstance(reported, dict):
        return Usage(calls=1)
    prompt = token_count(reported.get("promptTokenCount"))
    said, thought = (token_count(reported.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    cached = min(prompt, token_count(reported.get("cachedContentTokenCount")))
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=said + thought, cached_tokens=cached)
