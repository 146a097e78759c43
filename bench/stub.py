"""An OpenAI-compatible endpoint on loopback for measuring clients: set latency, set faults, counters.

    python bench/stub.py --port 8400 --latency-ms 200

POST /v1/chat/completions answers after the latency with JSON that satisfies the request (answers.py).
GET /stats gives counters since the last reset; POST /control sets latency and faults:

    {"reset": true, "latency_ms": 20, "p429": 0.1, "p500": 0.05, "p_broken": 0.05, "hang_at": 50, "hang_s": 60}

Faults are drawn from the request's content and how often it came, not from arrival order, so that every
client meets the same ones.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import signal
from collections import Counter
from typing import Any

from answers import answer_to, text_of

KNOBS = {"latency_ms": 200.0, "p429": 0.0, "p500": 0.0, "p_broken": 0.0, "hang_at": 0, "hang_s": 60.0}


class State:
    """Knobs and counters, shared by all connections."""

    def __init__(self) -> None:
        self.knobs = dict(KNOBS)
        self.reset()

    def reset(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tries: Counter[bytes] = Counter()
        self.in_flight = self.peak = 0

    def control(self, change: dict[str, Any]) -> dict[str, Any]:
        if change.pop("reset", False):
            self.knobs = dict(KNOBS) | {"latency_ms": self.knobs["latency_ms"]}
            self.reset()
        self.knobs |= change
        return self.knobs

    def stats(self) -> dict[str, Any]:
        repeated = sum(n - 1 for n in self.tries.values())
        return {**self.counts, "peak_in_flight": self.peak, "distinct": len(self.tries), "repeated": repeated}

    def completion(self, body: bytes) -> tuple[float, int, dict[str, Any], str]:
        """(seconds to wait, status, reply, extra headers) for one request."""
        request = json.loads(body)
        text = text_of(request)
        schema = json.dumps([request.get("response_format"), request.get("tools")])
        key = hashlib.blake2b(f"{text}\0{schema}".encode(), digest_size=8).digest()
        self.tries[key] += 1
        self.counts["requests"] += 1
        self.counts["prompt_chars"] += len(text) + (len(schema) if len(schema) > 12 else 0)
        seconds = self.knobs["latency_ms"] / 1000
        if self.counts["requests"] == self.knobs["hang_at"]:
            self.counts["hung"] += 1
            return self.knobs["hang_s"], 200, self._said(request, text), ""
        draw = int.from_bytes(hashlib.blake2b(key, salt=str(self.tries[key]).encode()[:16], digest_size=4).digest())
        share = draw / 2**32
        if share < self.knobs["p429"]:
            self.counts["sent_429"] += 1
            error = {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}
            return seconds, 429, {"error": error}, "Retry-After: 1\r\n"
        share -= self.knobs["p429"]
        if 0 <= share < self.knobs["p500"]:
            self.counts["sent_500"] += 1
            return seconds, 500, {"error": {"message": "stub failure", "type": "server_error"}}, ""
        share -= self.knobs["p500"]
        return seconds, 200, self._said(request, text, broken=0 <= share < self.knobs["p_broken"]), ""

    def _said(self, request: dict[str, Any], text: str, *, broken: bool = False) -> dict[str, Any]:
        content, tool = answer_to(request, text)
        if broken:
            self.counts["sent_broken"] += 1
            content = content[: len(content) // 2]
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if tool:
            call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": content}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        finish = "tool_calls" if tool else "stop"
        tokens = {"prompt_tokens": len(text) // 4, "completion_tokens": len(content) // 4}
        return {
            "id": "chatcmpl-stub",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model", "stub"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": tokens | {"total_tokens": sum(tokens.values())},
        }


class Connection(asyncio.Protocol):
    """One keep-alive connection, parsed by hand: a web framework would cost more than the client under test."""

    def __init__(self, state: State) -> None:
        self.state, self.buffer, self.timer = state, bytearray(), None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()
            self.state.in_flight -= 1
            self.state.counts["client_gave_up"] += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while not self.timer and (head_end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:head_end])
            lower = head.lower()
            at = lower.find(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < head_end + 4 + length:
                if b"100-continue" in lower:
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            body = bytes(self.buffer[head_end + 4 : head_end + 4 + length])
            del self.buffer[: head_end + 4 + length]
            self.serve(head.split(b" ", 2)[1], body)

    def serve(self, path: bytes, body: bytes) -> None:
        if path == b"/stats":
            self.send(200, self.state.stats())
        elif path == b"/control":
            self.send(200, self.state.control(json.loads(body)))
        elif path.endswith(b"/models"):
            self.send(200, {"object": "list", "data": []})
        elif path.endswith(b"/embeddings"):
            inputs = json.loads(body).get("input", [])
            rows = [inputs] if isinstance(inputs, str) else inputs
            data = [{"object": "embedding", "index": i, "embedding": [0.125] * 64} for i in range(len(rows))]
            self.send(200, {"object": "list", "data": data, "model": "stub", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        elif path.endswith(b"/chat/completions"):
            seconds, status, reply, headers = self.state.completion(body)
            self.state.in_flight += 1
            self.state.peak = max(self.state.peak, self.state.in_flight)
            self.timer = asyncio.get_running_loop().call_later(seconds, self.finish, status, reply, headers)
        else:
            self.send(404, {"error": {"message": f"no such path: {path.decode()}"}})

    def finish(self, status: int, reply: dict[str, Any], headers: str) -> None:
        self.timer = None
        self.state.in_flight -= 1
        self.send(status, reply, headers)
        self.data_received(b"")

    def send(self, status: int, reply: dict[str, Any], headers: str = "") -> None:
        body = json.dumps(reply).encode()
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
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
    parser.add_argument("--port", type=int, default=8400)
    parser.add_argument("--latency-ms", type=float, default=200)
    given = parser.parse_args()
    asyncio.run(main(given.port, given.latency_ms))
