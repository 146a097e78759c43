"""An OpenAI-compatible endpoint on loopback, in a thread: what tests of anything that judges over HTTP talk to.

    with Loopback({"atoms": [], "fallback": False}) as server:          # always this reply
        judge = ChatJudge(server.endpoint(), prompts)
        server.script(Status(503), Say('{"atoms": …}'), Hang())         # in this order first
        server.reply_for = lambda request: {"atoms": label(request.user)}  # or computed from the request
        …
        assert server.requests[0].schema["type"] == "object"
        assert server.max_in_flight == 1

What to say is a `Say`, or as a short form its content: a string, or data that is sent as JSON and begins with the code
of the call, as a judge's own reply does. Anything else is a behaviour: `Status`, `Raw`, `Hang`, `Close`, `Wire`.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from steelyard.judges.endpoint import Endpoint

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 64}}


@dataclass(frozen=True)
class Say:
    """A chat completion with this content."""

    content: Any = ""
    finish_reason: str | None = "stop"
    refusal: str | None = None
    reasoning: str | None = None
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    latency: float = 0.0
    sure: tuple[float, ...] | None = None
    """The probabilities of the labels in the content, one after the other; sent where logprobs are asked for."""

    def completion(self, model: str, code: str = "", *, logprobs: bool = False) -> dict[str, Any]:
        content = self.content
        if not isinstance(content, str | None) and not _is_parts(content):
            coded = {"code": code, **content} if isinstance(content, dict) else content
            content = json.dumps(coded, ensure_ascii=False)
        message = {"role": "assistant", "content": content}
        if self.refusal is not None:
            message |= {"content": None, "refusal": self.refusal}
        if self.reasoning is not None:
            message |= {"reasoning_content": self.reasoning}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        if logprobs and self.sure is not None:
            choice["logprobs"] = {"content": spelled(str(content), self.sure), "refusal": None}
        completion = {"id": "chatcmpl-1", "object": "chat.completion", "model": model, "choices": [choice]}
        return completion if self.usage is None else completion | {"usage": dict(self.usage)}


LABEL = re.compile(rb'"(?:label|support|valid|complies)": "?([^",}]+)')


def spelled(content: str, sure: tuple[float, ...], width: int = 3) -> list[dict[str, Any]]:
    """The content as tokens of a few bytes each, as OpenAI documents `logprobs.content`: cut inside keys, labels and
    characters. The tokens of the nth label have its probability together; all others are unlikely ones."""
    said = content.encode()
    logprobs = [-0.7] * math.ceil(len(said) / width)
    for found, probability in zip(LABEL.finditer(said), sure, strict=True):
        first, last = found.start(1) // width, (found.end(1) - 1) // width
        logprobs[first : last + 1] = [math.log(probability) / (last - first + 1)] * (last - first + 1)
    return [
        {
            "token": said[at : at + width].decode("utf-8", "replace"),
            "logprob": logprobs[at // width],
            "bytes": list(said[at : at + width]),
            "top_logprobs": [],
        }
        for at in range(0, len(said), width)
    ]


@dataclass(frozen=True)
class Status:
    """An error status with OpenAI's error body, or with any other."""

    status: int
    message: str = "something is wrong"
    code: str | int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    latency: float = 0.0


@dataclass(frozen=True)
class Raw:
    """HTTP 200 with exactly these bytes."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True)
class Hang:
    """No answer for this long."""

    seconds: float = 30.0


@dataclass(frozen=True)
class Close:
    """The connection is closed, before the answer or in the middle of it."""

    midway: bool = False


@dataclass(frozen=True)
class Wire:
    """Exactly these bytes on the connection, HTTP or not; a number is a pause. Then it is closed, or reset."""

    parts: tuple[bytes | float, ...]
    reset: bool = False


Behaviour = Say | Status | Raw | Hang | Close | Wire


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    target: str = ""
    """Path and query as they were sent."""
    content: bytes = b""

    @property
    def messages(self) -> list[dict[str, str]]:
        return self.body["messages"]

    @property
    def system(self) -> str:
        return next((message["content"] for message in self.messages if message["role"] == "system"), "")

    @property
    def user(self) -> str:
        return next(message["content"] for message in reversed(self.messages) if message["role"] == "user")

    @property
    def code(self) -> str:
        """The code of the call: it stands in the first line that the user says."""
        asked = next((message["content"] for message in self.messages if message["role"] == "user"), "")
        found = re.search(r"\b[0-9a-f]{12}\b", asked.partition("\n")[0])
        return found[0] if found else ""

    @property
    def mode(self) -> str:
        return self.body.get("response_format", {}).get("type", "text")

    @property
    def schema(self) -> dict[str, Any] | None:
        return self.body.get("response_format", {}).get("json_schema", {}).get("schema")

    @property
    def task(self) -> str | None:
        """The task, as the schema's name tells it; null in the modes without a schema."""
        name = self.body.get("response_format", {}).get("json_schema", {}).get("name")
        return name.replace("_", ".", 1) if name else None


ReplyFor = Callable[[Request], Any]


class Loopback:
    """The server. Configure it before or between requests; it takes effect at once.

    `accepts` are the modes of structured output it knows; any other gets a 400 with `format_error`.
    `refuses_parameters` get a 400 that names them. With a `key`, others get 401; with `models`, others get 404.
    """

    def __init__(
        self,
        reply: Any = None,
        *,
        reply_for: ReplyFor | None = None,
        latency: float = 0.0,
        accepts: tuple[str, ...] = ("json_schema", "json_object", "text"),
        format_error: str = "response_format of this type is not supported",
        format_status: int = 400,
        refuses_parameters: tuple[str, ...] = (),
        key: str | None = None,
        models: tuple[str, ...] | None = None,
        port: int = 0,
    ) -> None:
        self.reply_for: ReplyFor = reply_for or (lambda request: {} if reply is None else reply)
        self.latency = latency
        self.accepts, self.format_error, self.format_status = accepts, format_error, format_status
        self.refuses_parameters, self.key, self.models = refuses_parameters, key, models
        self.requests: list[Request] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.closing = False
        self._script: deque[Any] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self.port = port

    def script(self, *behaviours: Any) -> Self:
        """What happens to the next requests, in order; afterwards `reply_for` answers again."""
        self._script.extend(behaviours)
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def endpoint(self, **changes: Any) -> Endpoint:
        """An endpoint value that points here, impatient enough for tests."""
        settings = {"base_url": self.url, "model": "test-model", "timeout": 5.0, "retries": 2, "backoff": 0.01}
        return Endpoint(**(settings | changes))

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(60):
            raise RuntimeError("the loopback endpoint did not start")
        return self

    def stop_listening(self) -> None:
        """Accept no connection any more, and close each after the answer that is under way."""
        self.closing = True
        assert self._site._server is not None
        self._site._server.close()

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._site = site = web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, raw: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            content = await raw.read()
            body = json.loads(content) if content else {}
            request = Request(raw.path, dict(raw.headers), body, str(raw.rel_url), content)
            self.requests.append(request)
            return await self._behave(self._behaviour(request), request, raw)
        finally:
            self.in_flight -= 1

    def _behaviour(self, request: Request) -> Any:
        if self._script:
            return self._script.popleft()
        if not request.path.endswith("/v1/chat/completions"):
            return Status(404, "no such path")
        given = request.headers.get("Authorization")
        if self.key is not None and given != f"Bearer {self.key}":
            return Status(401, f"Incorrect API key provided: {(given or '').removeprefix('Bearer ')}")
        if self.models is not None and request.body["model"] not in self.models:
            return Status(404, f"the model {request.body['model']} does not exist", "model_not_found")
        for name in self.refuses_parameters:
            if name in request.body:
                return Status(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        if request.mode not in self.accepts:
            return Status(self.format_status, self.format_error)
        return self.reply_for(request)

    async def _behave(self, behaviour: Any, request: Request, raw: web.Request) -> web.StreamResponse:
        match behaviour:
            case Hang(seconds):
                await asyncio.sleep(seconds)
                return web.Response(status=504)
            case Close(midway):
                return await _close(raw, midway)
            case Wire():
                return await _write(raw, behaviour)
            case Raw(body, content_type):
                return web.Response(body=body, content_type=content_type)
            case Status():
                await asyncio.sleep(behaviour.latency)
                error = {"error": {"message": behaviour.message, "code": behaviour.code}}
                text = json.dumps(error) if behaviour.body is None else behaviour.body
                return web.Response(status=behaviour.status, text=text, headers=behaviour.headers)
            case Say():
                await asyncio.sleep(behaviour.latency or self.latency)
                wanted = bool(request.body.get("logprobs"))
                completion = behaviour.completion(request.body.get("model", ""), request.code, logprobs=wanted)
                response = web.json_response(completion)
                if self.closing:
                    response.force_close()
                return response
            case content:
                return await self._behave(Say(content), request, raw)


async def _close(raw: web.Request, midway: bool) -> web.StreamResponse:
    response = web.StreamResponse()
    if midway:
        response.content_length = 1000
        await response.prepare(raw)
        await response.write(b'{"choices": [')
    assert raw.transport is not None
    raw.transport.close()
    return response


async def _write(raw: web.Request, wire: Wire) -> web.StreamResponse:
    transport = raw.transport
    assert transport is not None
    for part in wire.parts:
        if isinstance(part, float):
            await asyncio.sleep(part)
        elif not transport.is_closing():
            transport.write(part)
            await asyncio.sleep(0)
    if wire.reset:
        # Without lingering, closing sends RST instead of FIN.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    transport.close()
    return web.StreamResponse()


def _is_parts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)
