"""An OpenAI-compatible endpoint on loopback for measuring clients: set latency, set faults, counters.

    python bench/stub.py --port 8400 --latency-ms 200

POST /v1/chat/completions answers after the latency with JSON that satisfies the request (answers.py).
GET /stats gives counters since the last reset. POST /control sets knobs:

    {"reset": true, "latency_ms": 20, "p429": 0.1, "p500": 0.05, "p_broken": 0.05, "hang_at": 50, "hang_s": 60}
    {"record": "calls.jsonl"}    writes down each body, with its sample and its round
    {"killed": true}             from now on counts what is asked again though it was answered before

429, 500 and broken JSON are drawn from what is asked and how often it came, not from the order of arrival,
so that every client meets the same ones. The `hang_at`-th request hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import signal
import struct
import time
from collections import Counter
from typing import Any, NamedTuple, TextIO

from answers import UNIT, answer_to, text_of
from responses import as_chat, as_response

KNOBS = {"latency_ms": 200.0, "p429": 0.0, "p500": 0.0, "p_broken": 0.0, "hang_at": 0, "hang_s": 60.0}
# An answer this fresh may not have been read yet by the client that is killed.
UNREAD_S = 0.1
VECTOR = [0.125] * 64
# Providers cache the beginning of a prompt in blocks of 128 tokens.
CACHED_BLOCK = 4 * 128


class Planned(NamedTuple):
    """What will be sent, and when."""

    seconds: float
    status: int
    reply: dict[str, Any]
    headers: str = ""
    key: bytes = b""
    unit: str = ""


class State:
    """Knobs and counters, shared by all connections."""

    def __init__(self) -> None:
        self.knobs: dict[str, Any] = dict(KNOBS)
        self.recording: TextIO | None = None
        self.reset()

    def reset(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tries: Counter[bytes] = Counter()
        self.answered: dict[bytes, float] = {}
        self.settled: frozenset[bytes] = frozenset()
        self.rounds: Counter[str] = Counter()
        self.open_calls: Counter[str] = Counter()
        self.beginnings: set[bytes] = set()
        self.in_flight = self.peak = 0

    def control(self, change: dict[str, Any]) -> dict[str, Any]:
        if change.pop("reset", False):
            self.knobs = dict(KNOBS) | {"latency_ms": self.knobs["latency_ms"]}
            self.reset()
        if change.pop("killed", False):
            settled_at = time.monotonic() - UNREAD_S
            self.settled = frozenset(key for key, at in self.answered.items() if at < settled_at)
        if "record" in change:
            if self.recording:
                self.recording.close()
            path = change.pop("record")
            self.recording = open(path, "w", encoding="utf-8") if path else None  # noqa: SIM115
        self.knobs |= change
        return self.knobs

    def stats(self) -> dict[str, Any]:
        repeated = sum(self.tries.values()) - len(self.tries)
        return {**self.counts, "peak_in_flight": self.peak, "distinct": len(self.tries), "repeated": repeated}

    def response(self, body: bytes) -> Planned:
        plan = self.completion(json.dumps(as_chat(json.loads(body))).encode())
        return plan._replace(reply=as_response(plan.reply))

    def completion(self, body: bytes) -> Planned:
        request = json.loads(body)
        text = text_of(request)
        form = [part for part in (request.get("response_format"), request.get("tools")) if part]
        schema = json.dumps(form) if form else ""
        key = hashlib.blake2b(f"{text}\0{schema}".encode(), digest_size=8).digest()
        self.tries[key] += 1
        self.counts["requests"] += 1
        self.counts["prompt_chars"] += len(text) + len(schema)
        self.counts["uncached_chars"] += self._uncached(schema + text)
        self.counts["settled_asked_again"] += key in self.settled
        unit = self._record(body, text) if self.recording else ""
        seconds = self.knobs["latency_ms"] / 1000
        if self.counts["requests"] == self.knobs["hang_at"]:
            self.counts["hung"] += 1
            return Planned(self.knobs["hang_s"], 200, self._said(request, text), "", key, unit)
        match self.fault(key):
            case "429":
                error = {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}
                return Planned(seconds, 429, {"error": error}, "Retry-After: 1\r\n", unit=unit)
            case "500":
                error = {"message": "stub failure", "type": "server_error"}
                return Planned(seconds, 500, {"error": error}, unit=unit)
            case "broken":
                return Planned(seconds, 200, self._said(request, text, broken=True), unit=unit)
        return Planned(seconds, 200, self._said(request, text), "", key, unit)

    def _uncached(self, prompt: str) -> int:
        """How many characters come after the longest beginning, in whole blocks, that an earlier call had too."""
        cached, so_far = 0, hashlib.blake2b(digest_size=8)
        for end in range(CACHED_BLOCK, len(prompt) + 1, CACHED_BLOCK):
            so_far.update(prompt[end - CACHED_BLOCK : end].encode())
            if so_far.digest() in self.beginnings:
                cached = end
            self.beginnings.add(so_far.digest())
        return len(prompt) - cached

    def fault(self, key: bytes) -> str | None:
        """What befalls this try of this call; counted."""
        if not (self.knobs["p429"] or self.knobs["p500"] or self.knobs["p_broken"]):
            return None
        drawn = hashlib.blake2b(key + str(self.tries[key]).encode(), digest_size=4).digest()
        share = int.from_bytes(drawn) / 2**32
        for name, knob in (("429", "p429"), ("500", "p500"), ("broken", "p_broken")):
            if share < self.knobs[knob]:
                self.counts[f"sent_{name}"] += 1
                return name
            share -= self.knobs[knob]
        return None

    def begin(self, plan: Planned) -> None:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self.open_calls[plan.unit] += 1

    def end(self, plan: Planned) -> None:
        self.in_flight -= 1
        self.open_calls[plan.unit] -= 1
        if plan.key:
            self.answered[plan.key] = time.monotonic()

    def _record(self, body: bytes, text: str) -> str:
        """A round of a sample begins when none of its calls is in flight."""
        unit = UNIT.findall(text)[-1]
        self.rounds[unit] += not self.open_calls[unit]
        print(json.dumps([unit, self.rounds[unit], body.decode()]), file=self.recording, flush=True)
        return unit

    def _said(self, request: dict[str, Any], text: str, *, broken: bool = False) -> dict[str, Any]:
        content, tool = answer_to(request, text)
        if broken:
            content = content[: len(content) // 2]
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if tool:
            call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": content}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop", "logprobs": None}
        tokens = {"prompt_tokens": len(text) // 4, "completion_tokens": len(content) // 4}
        return {
            "id": "chatcmpl-stub",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model", "stub"),
            "choices": [choice] * (request.get("n") or 1),
            "usage": tokens | {"total_tokens": sum(tokens.values())},
        }

    def embeddings(self, body: bytes) -> Planned:
        self.counts["embedding_requests"] += 1
        request = json.loads(body)
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        vector: Any = VECTOR
        if request.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{len(VECTOR)}f", *VECTOR)).decode()
        data = [{"object": "embedding", "index": index, "embedding": vector} for index in range(len(texts))]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        reply = {"object": "list", "data": data, "model": request.get("model"), "usage": usage}
        return Planned(self.knobs["latency_ms"] / 1000, 200, reply)


class Connection(asyncio.Protocol):
    """One keep-alive connection, parsed by hand: a web framework would cost more than the client under test."""

    def __init__(self, state: State) -> None:
        self.state, self.buffer = state, bytearray()
        self.timer: asyncio.TimerHandle | None = None
        self.plan: Planned | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer and self.plan:
            self.timer.cancel()
            self.state.end(self.plan._replace(key=b""))
            self.state.counts["client_gave_up"] += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while not self.timer and (head_end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:head_end]).lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            end = head_end + 4 + length
            if len(self.buffer) < end:
                if b"100-continue" in head:
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            body = bytes(self.buffer[head_end + 4 : end])
            path = bytes(self.buffer[:head_end]).split(b" ", 2)[1]
            del self.buffer[:end]
            self.serve(path, body)

    def serve(self, path: bytes, body: bytes) -> None:
        if path.endswith(b"/chat/completions"):
            self.answer_later(self.state.completion(body))
        elif path.endswith(b"/responses"):
            self.answer_later(self.state.response(body))
        elif path.endswith(b"/embeddings"):
            self.answer_later(self.state.embeddings(body))
        elif path == b"/stats":
            self.send(200, self.state.stats())
        elif path == b"/control":
            self.send(200, self.state.control(json.loads(body)))
        elif path.endswith(b"/models"):
            self.send(200, {"object": "list", "data": []})
        else:
            self.send(404, {"error": {"message": f"no such path: {path.decode()}"}})

    def answer_later(self, plan: Planned) -> None:
        self.plan = plan
        self.state.begin(plan)
        self.timer = asyncio.get_running_loop().call_later(plan.seconds, self.finish, plan)

    def finish(self, plan: Planned) -> None:
        self.timer = None
        self.state.end(plan)
        self.send(plan.status, plan.reply, plan.headers)
        self.data_received(b"")

    def send(self, status: int, reply: dict[str, Any], headers: str = "") -> None:
        body = json.dumps(reply).encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def main(port: int, latency_ms: float) -> None:
    state = State()
    state.knobs["latency_ms"] = latency_ms
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", port, backlog=1024)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    print(f"stub on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await stopped.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8400, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=200)
    given = parser.parse_args()
    asyncio.run(main(given.port, given.latency_ms))
