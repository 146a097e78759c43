"""Providers on loopback, as their documentation describes them. A request that is not of the documented form is refused
and remembered in `violations`; a test that leaves any behind fails.

    with ProviderStub("anthropic", GOOD) as server:
        judge = JudgeFactory(server.settings()).judge(server.judge)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from aiohttp import web
from pydantic import SecretStr
from yarl import URL

from endpoint import Loopback, Request, Status
from steelyard.judges.providers import VARIABLE, providers
from steelyard.judges.sigv4 import Signer
from steelyard.settings import Settings

KEY = "sk-9f8e7d6c5b4a-secret"
AWS = {
    "AWS_ACCESS_KEY_ID": "AKIA9F8E7D6C5B4A",
    "AWS_SECRET_ACCESS_KEY": "wJalr/9f8e+7d6c-secret-key",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjE9f8e7d6c",
    "AWS_REGION": "eu-west-1",
}
PROMPT, CACHED, WRITTEN, COMPLETION = 100, 64, 20, 20
"""What each answer reports in tokens; `WRITTEN` only where the API says it."""


@dataclass(frozen=True)
class Told:
    """An answer with this text, ended by this word of the provider's."""

    text: str = ""
    ending: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Violation(AssertionError):
    """A request that the provider's documentation does not allow."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)


def only(given: Mapping[str, Any], *allowed: str) -> None:
    check(given.keys() <= set(allowed), f"unknown fields: {sorted(given.keys() - set(allowed))}")


OWN_FIELDS = {
    "qwen": "enable_thinking",
    "openrouter": "provider",
    "minimax": "reasoning_split",
    "hunyuan": "enable_enhancement",
}


class Form:
    """One wire form: what a request must look like, and how an answer does."""

    def __init__(self, provider: str, model: str, refused: str = "") -> None:
        self.provider, self.model, self.refused = provider, model, refused

    def target(self) -> str:
        raise NotImplementedError

    def examine(self, request: Request) -> None:
        """Raises `Violation`."""
        raise NotImplementedError

    def mode(self, body: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def first_turn(self, body: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def answer(self, told: Told, mode: str) -> dict[str, Any]:
        raise NotImplementedError


class ChatForm(Form):
    """OpenAI's chat completions, with what each provider documents beside."""

    def target(self) -> str:
        if self.provider == "azure":
            return f"/openai/deployments/{quote(self.model, safe='')}/chat/completions?api-version=2024-10-21"
        return "/chat/completions"

    def examine(self, request: Request) -> None:
        body = request.body
        only(body, "messages", "model", "temperature", "response_format", OWN_FIELDS.get(self.provider, "messages"))
        check(body["model"] == self.model, "model")
        check([message["role"] for message in body["messages"]][:2] == ["system", "user"], "roles")
        check(all(message.keys() == {"role", "content"} for message in body["messages"]), "messages")
        format = body.get("response_format")
        if format and format["type"] == "json_schema":
            only(format, "type", "json_schema")
            only(format["json_schema"], "name", "strict", "schema")
            check_strict(format["json_schema"]["schema"])
        elif format:
            check(format == {"type": "json_object"}, "response_format")
            # DeepSeek and Qwen refuse the mode where the word is missing.
            check("json" in json.dumps(body["messages"]).lower(), "the word JSON in the messages")
        if self.provider == "qwen" and not self.refused:
            check(body["enable_thinking"] is False, "enable_thinking must be set to false for non-streaming calls")
        if self.provider == "minimax":
            check(body["reasoning_split"] is True, "thoughts apart")
            check(0 < body["temperature"] <= 1, "temperature is out of range (0, 1]")
        if self.provider == "hunyuan":
            roles = [message["role"] for message in body["messages"][1:]]
            check(roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], "user 和 assistant 角色需交替出现")
            check(body["enable_enhancement"] is False, "a judge that searches the web")
        if self.provider == "openrouter":
            check(body["provider"] == {"require_parameters": True}, "provider")

    def mode(self, body: Mapping[str, Any]) -> str:
        return str(body.get("response_format", {}).get("type", "text"))

    def first_turn(self, body: Mapping[str, Any]) -> str:
        return next(str(message["content"]) for message in body["messages"] if message["role"] == "user")

    def answer(self, told: Told, mode: str) -> dict[str, Any]:
        usage: dict[str, Any] = {"prompt_tokens": PROMPT, "completion_tokens": COMPLETION}
        if self.provider == "deepseek":
            usage |= {"prompt_cache_hit_tokens": CACHED, "prompt_cache_miss_tokens": PROMPT - CACHED}
        elif self.provider == "moonshot":
            usage |= {"cached_tokens": CACHED}
        else:
            usage |= {"prompt_tokens_details": {"cached_tokens": CACHED}}
        content: Any = told.text
        if self.provider == "mistral":
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": "thinking about it"}]}
            content = [thought, {"type": "text", "text": told.text}]
        message = {"role": "assistant", "content": content, "reasoning_content": "thinking about it"}
        choice = {"index": 0, "message": message, "finish_reason": told.ending or "stop", **told.extra}
        own = {"base_resp": {"status_code": 0, "status_msg": ""}} if self.provider == "minimax" else {}
        return {"id": "1", "object": "chat.completion", "model": self.model, "choices": [choice], "usage": usage, **own}


class MessagesForm(Form):
    """Anthropic's Messages API."""

    def target(self) -> str:
        return "/v1/messages"

    def examine(self, request: Request) -> None:
        body = request.body
        check(request.headers.get("anthropic-version") == "2023-06-01", "anthropic-version")
        only(
            body,
            *("model", "max_tokens", "system", "messages", "temperature"),
            *("output_config", "tools", "tool_choice"),
        )
        check(body["model"] == self.model, "model")
        check(isinstance(body["max_tokens"], int) and body["max_tokens"] > 0, "max_tokens: Field required")
        (system,) = body["system"]
        check(system.keys() == {"type", "text", "cache_control"}, "system")
        check(system["cache_control"] == {"type": "ephemeral"}, "cache_control")
        roles = [message["role"] for message in body["messages"]]
        check(roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2), f"roles {roles}")
        if "output_config" in body:
            format = body["output_config"]["format"]
            check(format.keys() == {"type", "schema"} and format["type"] == "json_schema", "output_config.format")
            check_strict(format["schema"])
        if "tools" in body:
            (tool,) = body["tools"]
            only(tool, "name", "description", "input_schema", "strict")
            choice = {"type": "tool", "name": tool["name"], "disable_parallel_tool_use": True}
            check(body["tool_choice"] == choice, "tool_choice")
            check(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]), "tool name")

    def mode(self, body: Mapping[str, Any]) -> str:
        return "json_schema" if "output_config" in body else "tool" if "tools" in body else "text"

    def first_turn(self, body: Mapping[str, Any]) -> str:
        return str(body["messages"][0]["content"])

    def answer(self, told: Told, mode: str) -> dict[str, Any]:
        said: dict[str, Any] = {"type": "text", "text": told.text}
        if mode == "tool":
            said = {"type": "tool_use", "id": "toolu_1", "name": "reply", "input": json.loads(told.text)}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, said],
            "stop_reason": told.ending or ("tool_use" if mode == "tool" else "end_turn"),
            "usage": {
                "input_tokens": PROMPT - CACHED - WRITTEN,
                "cache_read_input_tokens": CACHED,
                "cache_creation_input_tokens": WRITTEN,
                "output_tokens": COMPLETION,
            },
            **told.extra,
        }


class GenerateForm(Form):
    """Gemini's generateContent."""

    schema_fields = ("type", "nullable", "enum", "items", "properties", "required", "propertyOrdering", "anyOf")

    def target(self) -> str:
        return f"/v1beta/models/{self.model}:generateContent"

    def examine(self, request: Request) -> None:
        body = request.body
        only(body, "contents", "systemInstruction", "generationConfig")
        check(body["systemInstruction"].keys() == {"parts"}, "systemInstruction")
        check({content["role"] for content in body["contents"]} <= {"user", "model"}, "role")
        check(all(set(part) == {"text"} for content in body["contents"] for part in content["parts"]), "parts")
        config = body["generationConfig"]
        only(config, "temperature", "maxOutputTokens", "responseMimeType", "responseSchema", "responseLogprobs")
        for schema in subschemas(config.get("responseSchema", {})):
            only(schema, *self.schema_fields)
            check(isinstance(schema.get("type", "any"), str), "type is one name")
            check(all(isinstance(value, str) for value in schema.get("enum", ())), "enum: strings only")

    def mode(self, body: Mapping[str, Any]) -> str:
        config = body["generationConfig"]
        return (
            "json_schema" if "responseSchema" in config else "json_object" if "responseMimeType" in config else "text"
        )

    def first_turn(self, body: Mapping[str, Any]) -> str:
        return str(body["contents"][0]["parts"][0]["text"])

    def answer(self, told: Told, mode: str) -> dict[str, Any]:
        parts = [{"text": "hm", "thought": True}, {"text": told.text}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": told.ending or "STOP", "index": 0}
        usage = {
            "promptTokenCount": PROMPT,
            "candidatesTokenCount": COMPLETION - 5,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": CACHED,
        }
        return {"candidates": [candidate | dict(told.extra)], "usageMetadata": usage, "modelVersion": self.model}


class ConverseForm(Form):
    """Amazon Bedrock's Converse."""

    def target(self) -> str:
        return f"/model/{quote(self.model, safe='')}/converse"

    def examine(self, request: Request) -> None:
        body = request.body
        only(body, "system", "messages", "inferenceConfig", "outputConfig", "toolConfig")
        only(body["inferenceConfig"], "maxTokens", "temperature", "topP", "stopSequences")
        told, point = body["system"]
        check(set(told) == {"text"} and point == {"cachePoint": {"type": "default"}}, "system")
        roles = [message["role"] for message in body["messages"]]
        check(roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2), f"roles {roles}")
        check(all(set(block) == {"text"} for one in body["messages"] for block in one["content"]), "content")
        if "outputConfig" in body:
            format = body["outputConfig"]["textFormat"]
            check(format.keys() == {"type", "structure"} and format["type"] == "json_schema", "textFormat")
            (definition,) = format["structure"].values()
            only(definition, "name", "description", "schema")
            check_strict(json.loads(definition["schema"]))
        if "toolConfig" in body:
            (tool,) = body["toolConfig"]["tools"]
            check(tool["toolSpec"]["inputSchema"].keys() == {"json"}, "inputSchema")
            check(body["toolConfig"]["toolChoice"] == {"tool": {"name": tool["toolSpec"]["name"]}}, "toolChoice")

    def mode(self, body: Mapping[str, Any]) -> str:
        return "json_schema" if "outputConfig" in body else "tool" if "toolConfig" in body else "text"

    def first_turn(self, body: Mapping[str, Any]) -> str:
        return str(body["messages"][0]["content"][0]["text"])

    def answer(self, told: Told, mode: str) -> dict[str, Any]:
        said: dict[str, Any] = {"text": told.text}
        if mode == "tool":
            said = {"toolUse": {"toolUseId": "1", "name": "reply", "input": json.loads(told.text)}}
        thought = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
        return {
            "output": {"message": {"role": "assistant", "content": [thought, said]}},
            "stopReason": told.ending or ("tool_use" if mode == "tool" else "end_turn"),
            "usage": {
                "inputTokens": PROMPT - CACHED - WRITTEN,
                "cacheReadInputTokens": CACHED,
                "cacheWriteInputTokens": WRITTEN,
                "outputTokens": COMPLETION,
                "totalTokens": PROMPT + COMPLETION,
            },
            "metrics": {"latencyMs": 1},
        }


class OllamaForm(Form):
    """Ollama's own chat API."""

    def target(self) -> str:
        return "/api/chat"

    def examine(self, request: Request) -> None:
        body = request.body
        only(body, "model", "messages", "stream", "format", "options", "truncate", "shift", "logprobs")
        check(body["model"] == self.model, "model")
        check(body["stream"] is False and body["truncate"] is False, "stream, truncate")
        check(body["options"]["num_ctx"] >= 8192, "num_ctx")
        check(all(message.keys() == {"role", "content"} for message in body["messages"]), "messages")
        if isinstance(body.get("format"), dict):
            check_strict(body["format"])

    def mode(self, body: Mapping[str, Any]) -> str:
        format = body.get("format")
        return "json_schema" if isinstance(format, dict) else "json_object" if format else "text"

    def first_turn(self, body: Mapping[str, Any]) -> str:
        return next(str(message["content"]) for message in body["messages"] if message["role"] == "user")

    def answer(self, told: Told, mode: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "message": {"role": "assistant", "content": told.text, "thinking": "hm"},
            "done": True,
            "done_reason": told.ending or "stop",
            "prompt_eval_count": PROMPT,
            "prompt_eval_cached_count": CACHED,
            "eval_count": COMPLETION,
            **told.extra,
        }


FORMS: Mapping[str, type[Form]] = {
    "chat": ChatForm,
    "messages": MessagesForm,
    "generate": GenerateForm,
    "converse": ConverseForm,
    "ollama": OllamaForm,
}


class ProviderStub(Loopback):
    """A provider by its name. `accepts` are the modes of structured output it knows, `refuses` is a parameter that it
    does not; with `signed`, Bedrock wants AWS's signature instead of a key."""

    def __init__(
        self,
        name: str,
        reply: Any = None,
        *,
        accepts: tuple[str, ...] = (),
        refuses: str = "",
        model: str = "",
        signed: bool = False,
    ) -> None:
        super().__init__(reply)
        self.provider, self.signed = providers()[name], signed
        self.model = model or self.provider.example
        self.form = FORMS[self.provider.wire](name, self.model, refuses)
        self.accepts = accepts or self.provider.structured
        self.violations: list[str] = []

    @property
    def judge(self) -> str:
        return f"{self.provider.name}:{self.model}"

    @property
    def environment(self) -> dict[str, str]:
        """What a user sets: where the provider is, and the key."""
        where = VARIABLE.findall(self.provider.url[0])[0]
        credentials = AWS if self.signed else {self.provider.key[0]: KEY}
        return {where: f"http://127.0.0.1:{self.port}", **credentials}

    def settings(self, **more: str) -> Settings:
        return Settings.load(environment={**self.environment, **more})

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        super().__exit__(*ended)
        assert self.violations == [] or ended[0] is not None, self.violations

    def _behaviour(self, request: Request) -> Any:
        try:
            self._examine(request)
        except (Violation, LookupError, TypeError, ValueError) as violation:
            self.violations.append(f"{type(violation).__name__}: {violation}")
            return Status(418, f"not as documented: {violation}")
        if self._script:
            return self._script.popleft()
        if self.form.refused and self.form.refused in request.body:
            return Status(400, f"parameter.{self.form.refused} is not supported by this model")
        mode = self.form.mode(request.body)
        if mode not in self.accepts:
            return Status(400, "structured output of this kind (schema or tool) is not supported by the model")
        return self.reply_for(self.plain(request))

    def plain(self, request: Request) -> Request:
        """The request as those who reply know it, whatever its form: what the user said first."""
        said = {"role": "user", "content": self.form.first_turn(request.body)}
        return Request(request.path, request.headers, {"messages": [said]}, request.target, request.content)

    def _examine(self, request: Request) -> None:
        check(request.target == self.form.target(), f"target {request.target}, not {self.form.target()}")
        check(request.headers["Content-Type"] == "application/json", "Content-Type")
        self._examine_key(request)
        self.form.examine(request)

    def _examine_key(self, request: Request) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        name = self.provider.key_header.lower()
        if not self.signed:
            check(headers.get(name) == (f"Bearer {KEY}" if name == "authorization" else KEY), f"{name} is no key")
            others = {"authorization", "api-key", "x-api-key", "x-goog-api-key"} - {name}
            check(others.isdisjoint(headers), "the key in another header")
            check(KEY not in request.target, "the key in the address")
            return
        signer = Signer(
            AWS["AWS_ACCESS_KEY_ID"],
            SecretStr(AWS["AWS_SECRET_ACCESS_KEY"]),
            AWS["AWS_REGION"],
            "bedrock",
            SecretStr(AWS["AWS_SESSION_TOKEN"]),
        )
        moment = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
        url = URL(f"http://{headers['host']}{request.target}", encoded=True)
        expected = signer.headers(url, request.content, moment)
        check(headers["authorization"] == expected["Authorization"], "the signature does not match")
        check(headers["x-amz-security-token"] == AWS["AWS_SESSION_TOKEN"], "x-amz-security-token")

    async def _behave(self, behaviour: Any, request: Request, raw: web.Request) -> web.StreamResponse:
        if isinstance(behaviour, Told):
            return web.json_response(self.form.answer(behaviour, self.form.mode(request.body)))
        if isinstance(behaviour, dict):
            text = json.dumps({"code": self.code(request), **behaviour}, ensure_ascii=False)
            return await self._behave(Told(text), request, raw)
        return await super()._behave(behaviour, request, raw)

    def code(self, request: Request) -> str:
        found = re.search(r"\b[0-9a-f]{12}\b", self.form.first_turn(request.body).partition("\n")[0])
        return found[0] if found else ""


def subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and all inside it."""
    if not isinstance(schema, Mapping) or not schema:
        return
    yield schema
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")]
    for part in parts:
        yield from subschemas(part)


def check_strict(schema: Mapping[str, Any]) -> None:
    """What structured output wants of every object: no other properties, all required, nothing fancy."""
    for part in subschemas(schema):
        only(part, *("type", "enum", "const", "anyOf", "items", "properties", "required", "additionalProperties"))
        if part.get("type") == "object":
            check(part["additionalProperties"] is False, "additionalProperties")
            check(part["required"] == list(part["properties"]), "required")
