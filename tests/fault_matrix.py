"""What an endpoint can do wrong, as data: status × body × headers × timing, and what must come of it.

`expect` is what a sample becomes while the fault lasts: `judged`, a reason for `unjudged` (or several, joined by |), or
`stopped` where the whole run stops instead, because no sample is at fault. In bodies and headers, SECRETS stands for
all that the request gave away: a server may quote it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from endpoint import Wire

SECRETS = b"@@SECRETS@@"
MB = 2**20

Completion = dict[str, Any]
Body = bytes | Callable[[Completion], bytes]


@dataclass(frozen=True)
class Fault:
    """One way to go wrong. `wire` says how the whole message gets onto the connection, where not simply at once."""

    name: str
    expect: str
    status: str = "200 OK"
    body: Body = b""
    headers: Mapping[bytes, bytes] | None = None
    length: int | None = None
    timeout: float = 20.0
    wire: Callable[[bytes], Wire] | None = None

    def behaviour(self, completion: Completion, secrets: bytes) -> Wire:
        body = self.body(completion) if callable(self.body) else self.body
        body = body.replace(SECRETS, secrets)
        headers = {
            b"Content-Type": b"application/json",
            b"Content-Length": str(len(body) if self.length is None else self.length).encode(),
            b"Connection": b"close",
            **(self.headers or {}),
        }
        head = b"HTTP/1.1 %s\r\n" % self.status.encode("latin-1")
        head += b"".join(b"%s: %s\r\n" % (name, value) for name, value in headers.items() if value)
        head = head.replace(SECRETS, secrets)
        if self.wire:
            return self.wire(head + b"\r\n" + body)
        return Wire((head + b"\r\n", body))


def error(message: str = "something is wrong", **more: Any) -> bytes:
    """OpenAI's shape of an error, quoting what was sent."""
    return json.dumps({"error": {"message": f"{message} {SECRETS.decode()}", **more}}).encode()


def sent(**changes: Any) -> Callable[[Completion], bytes]:
    """The right completion with these changes."""
    return lambda completion: json.dumps(completion | changes).encode()


def said(**changes: Any) -> Callable[[Completion], bytes]:
    """The right completion with these changes to its message."""

    def body(completion: Completion) -> bytes:
        choice = completion["choices"][0]
        message = choice["message"] | changes
        return json.dumps(completion | {"choices": [choice | {"message": message}]}).encode()

    return body


def chosen(**changes: Any) -> Callable[[Completion], bytes]:
    """The right completion with these changes to its only choice."""
    return lambda completion: json.dumps(completion | {"choices": [completion["choices"][0] | changes]}).encode()


def packed(pack: Callable[[bytes], bytes]) -> Callable[[Completion], bytes]:
    return lambda completion: pack(json.dumps(completion).encode())


def raw(text: str) -> Callable[[Completion], bytes]:
    """The right completion with this JSON, as text, for its usage."""
    return lambda completion: json.dumps(completion | {"usage": "@@"}).replace('"@@"', text).encode()


def quoting(completion: Completion) -> bytes:
    """The right reply, which quotes the secrets in a field that nobody reads."""
    content = json.loads(completion["choices"][0]["message"]["content"])
    text = json.dumps(content | {"seen": SECRETS.decode()})
    return said(content=text)(completion)


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def chunked(body: bytes, end: bytes = b"0\r\n\r\n") -> Callable[[Completion], bytes]:
    return lambda _: b"%x\r\n%s\r\n%s" % (len(body), body, end)


def by_drops(message: bytes) -> Wire:
    """A byte at a time, slower than anybody waits."""
    return Wire(tuple(part for byte in message[:30] for part in (bytes([byte]), 0.1)))


HTML = b"<html><head><style>p {color: red}</style></head><body><h1>Bad gateway</h1>" + SECRETS + b"</body></html>"
PAGES = {b"Content-Type": b"text/html"}
CHUNKED: Mapping[bytes, bytes] = {b"Content-Length": b"", b"Transfer-Encoding": b"chunked"}
GZIP = {b"Content-Encoding": b"gzip"}

# Every status that is met in practice, each with the three bodies that are.
STATUSES = {
    "201 Created": "server_error",
    "202 Accepted": "server_error",
    "206 Partial Content": "server_error",
    "300 Multiple Choices": "stopped",
    "302 Found": "stopped",
    "307 Temporary Redirect": "stopped",
    "400 Bad Request": "rejected",
    "401 Unauthorized": "stopped",
    "402 Payment Required": "stopped",
    "403 Forbidden": "stopped",
    "404 Not Found": "stopped",
    "405 Method Not Allowed": "stopped",
    "407 Proxy Authentication Required": "rejected",
    "408 Request Timeout": "timeout",
    "409 Conflict": "server_error",
    "413 Payload Too Large": "rejected",
    "418 I'm a teapot": "rejected",
    "422 Unprocessable": "rejected",
    "425 Too Early": "server_error",
    "429 Too Many Requests": "rate_limited",
    "451 Unavailable": "rejected",
    "500 Internal Server Error": "server_error",
    "501 Not Implemented": "rejected",
    "502 Bad Gateway": "server_error",
    "503 Service Unavailable": "server_error",
    "504 Gateway Timeout": "timeout",
    "522 Connection Timed Out": "server_error",
    "529 Overloaded": "server_error",
}
BODIES = {"html": HTML, "json": error(), "empty": b""}

BY_STATUS = [
    Fault(f"{status[:3]}-{kind}", expect, status=status, body=body, headers=PAGES if kind == "html" else None)
    for status, expect in STATUSES.items()
    for kind, body in BODIES.items()
]

BY_HEADER = [
    Fault("204", "server_error", status="204 No Content", headers={b"Content-Length": b""}),
    Fault("304", "stopped", status="304 Not Modified", headers={b"Content-Length": b""}),
    Fault("location-quotes-key", "stopped", status="301 Moved", headers={b"Location": b"https://x/?k=" + SECRETS}),
    Fault("location-not-utf8", "stopped", status="302 Found", headers={b"Location": b"https://x/\xff\xfe\x80"}),
    Fault("reason-phrase-not-utf8", "server_error", status="500 \xff\xfe\x80\xe9", body=error()),
    Fault("header-bytes-over-127", "judged", headers={b"X-Odd": bytes(range(0x80, 0x100))}, body=sent()),
    Fault("header-of-9000-bytes", "server_error", headers={b"X-Long": b"x" * 9000}, body=sent()),
    Fault("header-name-empty", "server_error", headers={b"": b"value"}, body=sent()),
    Fault("header-with-nul", "server_error", headers={b"X-Nul": b"a\x00b"}, body=sent()),
    Fault("content-type-lies", "judged", headers={b"Content-Type": b"text/html; charset=\xff"}, body=sent()),
    *(
        Fault(f"retry-after-{name}", expect, status="429 Slow", headers={b"Retry-After": value}, body=error())
        for name, value, expect in (
            ("nan", b"nan", "rate_limited"),
            ("inf", b"inf", "rate_limited"),
            ("minus-one", b"-1", "rate_limited"),
            ("1e400", b"1e400", "rate_limited"),
            ("words", b"in a while", "rate_limited"),
            ("not-utf8", b"\xff\xfe", "rate_limited"),
            ("zero", b"0", "rate_limited"),
            ("half-a-second", b"0.5", "rate_limited"),
            ("past-date", b"Thu, 01 Jan 1970 00:00:00 GMT", "rate_limited"),
            ("bad-date", b"Thu, 99 Foo 99999 99:99:99 GMT", "rate_limited"),
            ("two-hours", b"7200", "stopped"),
            ("year-9999", b"Fri, 31 Dec 9999 23:59:59 GMT", "stopped"),
            ("digits", b"9" * 300, "stopped"),
        )
    ),
    Fault("ratelimit-reset-huge", "judged", headers={b"x-ratelimit-reset-requests": b"9" * 400 + b"h"}, body=sent()),
]

BY_CONTENT = [
    # Bodies that are no JSON, or not the JSON that was asked for.
    Fault("not-json", "server_error", body=b"hello " + SECRETS),
    Fault("json-cut", "server_error", body=b'{"choices": [{"mess'),
    Fault("json-list", "server_error", body=b"[]"),
    Fault("json-null", "server_error", body=b"null"),
    Fault("nested-10000", "server_error", body=b"[" * 10_000 + b"]" * 10_000),
    Fault("nested-objects", "server_error", body=b'{"choices": ' + b'{"a":' * 9_000 + b"1" + b"}" * 9_001),
    Fault("nested-500-beside", "judged", body=sent(extra=json.loads("[" * 500 + "]" * 500))),
    Fault("sse", "server_error", headers={b"Content-Type": b"text/event-stream"}, body=b'data: {"choices": []}\n\n'),
    Fault("binary", "server_error", body=bytes(range(256)) * 20),
    Fault("error-in-200", "server_error", body=error("upstream", code=503)),
    Fault("error-in-200-key", "stopped", body=error("Incorrect API key", code=401)),
    Fault("error-is-text", "server_error", body=json.dumps({"error": SECRETS.decode()}).encode()),
    Fault("error-code-huge", "server_error", body=error(code=10**300)),
    Fault("no-choices", "server_error", body=b"{}"),
    Fault("choices-object", "server_error", body=sent(choices={})),
    Fault("choices-empty", "server_error", body=sent(choices=[])),
    Fault("choices-null", "server_error", body=sent(choices=None)),
    Fault("choices-of-text", "server_error", body=sent(choices=["text"])),
    Fault("message-list", "server_error", body=chosen(message=["text"])),
    Fault("content-null", "invalid_reply", body=said(content=None)),
    Fault("content-number", "invalid_reply", body=said(content=7)),
    Fault("content-object", "invalid_reply", body=said(content={"a": 1})),
    Fault("content-prose", "invalid_reply", body=said(content=f"I would rather not. {SECRETS.decode()}")),
    Fault("content-deep", "invalid_reply", body=said(content='{"atoms":' + "[" * 5_000 + "]" * 5_000 + "}")),
    Fault("content-3mb", "invalid_reply", body=said(content="x" * 3 * MB)),
    Fault("tool-calls", "invalid_reply", body=said(content=None, tool_calls=[{"function": {"arguments": "\ud800"}}])),
    # Texts that cannot be written anywhere as they are.
    Fault("surrogate-in-error", "rejected", status="413 Large", body=error("half \ud800 of a pair")),
    Fault("surrogate-in-error-name", "rejected", status="413 Large", body=b'{"\\udfff": "\\ud800"}'),
    Fault("surrogate-in-refusal", "refused", body=said(refusal="no \ud800" + SECRETS.decode())),
    Fault("surrogate-in-content", "invalid_reply", body=said(content="\ud83d")),
    Fault("surrogate-in-model", "judged", body=sent(model="\udcff", id="\ud800")),
    Fault("control-in-error", "rejected", status="413 Large", body=error("\x1b[2J\x07\x00 wiped")),
    Fault("refusal-list", "refused", body=said(refusal=["no", {"a": "\ud800"}])),
    Fault("refusal-quotes-key", "refused", body=said(refusal=f"not with {SECRETS.decode()}")),
    Fault("reply-quotes-key", "judged", body=quoting),
    Fault("filter", "refused", body=chosen(finish_reason="content_filter")),
    Fault("finish-list", "truncated", body=chosen(finish_reason=["length"])),
    Fault("finish-object", "judged", body=chosen(finish_reason={"type": "stop"})),
    Fault("finish-number", "judged", body=chosen(finish_reason=10**30)),
    Fault("finish-length", "truncated", body=chosen(finish_reason="length")),
    # Counts that are none.
    Fault("usage-10^400", "judged", body=raw('{"prompt_tokens": 1%s, "completion_tokens": 3}' % ("0" * 400))),
    Fault("usage-5000-digits", "judged", body=raw('{"prompt_tokens": %s}' % ("9" * 5000))),
    Fault("usage-10^18", "judged", body=raw('{"prompt_tokens": 1%s, "completion_tokens": 1e300}' % ("0" * 18))),
    Fault("usage-negative", "judged", body=raw('{"prompt_tokens": -5, "completion_tokens": -1}')),
    Fault("usage-nan", "judged", body=raw('{"prompt_tokens": NaN, "completion_tokens": Infinity}')),
    Fault("usage-float", "judged", body=raw('{"prompt_tokens": 1.5, "completion_tokens": 1e400}')),
    Fault("usage-text", "judged", body=raw('{"prompt_tokens": "many", "completion_tokens": true}')),
    Fault("usage-nested", "judged", body=raw('{"prompt_tokens": {"a": [1]}, "prompt_tokens_details": [{}]}')),
    Fault("usage-list", "judged", body=raw("[1, 2, 3]")),
    # The right answer in an odd wrapping.
    Fault("bom", "judged", body=packed(lambda data: b"\xef\xbb\xbf" + data)),
    Fault("utf-16", "judged", body=packed(lambda data: data.decode().encode("utf-16"))),
    Fault("utf-32", "judged", body=packed(lambda data: data.decode().encode("utf-32-be"))),
    Fault("latin-1-beside", "judged", body=packed(lambda data: data.replace(b"chatcmpl", b"caf\xe9"))),
    Fault("gzip", "judged", headers=GZIP, body=packed(gzip.compress)),
    Fault("deflate", "judged", headers={b"Content-Encoding": b"deflate"}, body=packed(zlib.compress)),
    Fault("raw-deflate", "judged", headers={b"Content-Encoding": b"deflate"}, body=packed(deflate)),
    Fault("gzip-that-is-none", "server_error", headers=GZIP, body=sent()),
    Fault("gzip-cut", "server_error", headers=GZIP, body=packed(lambda data: gzip.compress(data)[:-20])),
    Fault("gzip-empty", "server_error", headers=GZIP),
    Fault("gzip-bomb", "rejected", headers=GZIP, body=gzip.compress(bytes(33 * MB))),
    Fault("gzip-bomb-in-500", "server_error", status="500 X", headers=GZIP, body=gzip.compress(bytes(33 * MB))),
    Fault("brotli", "server_error", headers={b"Content-Encoding": b"br"}, body=b"\x0b\x02\x80hello\x03"),
    Fault("encoding-unknown", "server_error", headers={b"Content-Encoding": b"\xff" + SECRETS}, body=sent()),
    Fault("body-of-33mb", "rejected", body=b" " * (33 * MB)),
]

BY_TIMING = [
    Fault("hang", "timeout", timeout=1.0, wire=lambda message: Wire((5.0,))),
    Fault("hang-after-headers", "timeout", timeout=1.0, length=1000, wire=lambda message: Wire((message, 5.0))),
    Fault("drip", "timeout", timeout=1.0, body=sent(), wire=by_drops),
    Fault("close-at-once", "unreachable", wire=lambda message: Wire(())),
    Fault("reset-at-once", "unreachable", wire=lambda message: Wire((), reset=True)),
    Fault("close-in-status-line", "unreachable", wire=lambda message: Wire((message[:10],))),
    Fault("close-in-headers", "unreachable", wire=lambda message: Wire((message[:40],))),
    Fault("close-midway", "server_error", length=100_000, body=sent()),
    Fault("reset-midway", "server_error", length=9_000, wire=lambda message: Wire((message, 0.05), reset=True)),
    Fault("length-too-short", "server_error", length=5, body=sent()),
    Fault("length-negative", "server_error", length=-5, body=sent()),
    Fault("two-lengths", "server_error", headers={b"Content-length": b"7"}, body=sent()),
    Fault("late", "judged", body=sent(), wire=lambda message: Wire((0.2, message))),
    Fault("in-two-parts", "judged", body=sent(), wire=lambda message: Wire((message[:200], 0.1, message[200:]))),
    Fault("chunked-cut", "server_error", headers=CHUNKED, body=chunked(b'{"choices": [', end=b"")),
    # Whether the client notices before it gives up waiting depends on how the bytes arrive.
    Fault("chunked-garbage", "server_error|timeout", headers=CHUNKED, body=b"zz\r\nhello\r\n"),
    Fault("not-http", "server_error", wire=lambda message: Wire((b"220 mail.example ESMTP\r\n",))),
    Fault("tls-garbage", "server_error", wire=lambda message: Wire((b"\x15\x03\x01\x00\x02\x02\x28" + SECRETS,))),
    Fault("http-0.9", "server_error", wire=lambda message: Wire((b"<html>hello</html>\r\n\r\n",))),
    Fault("100-then-close", "unreachable", wire=lambda message: Wire((b"HTTP/1.1 100 Continue\r\n\r\n",))),
    Fault(
        "103-then-hang", "timeout", timeout=1.0, wire=lambda message: Wire((b"HTTP/1.1 103 Early Hints\r\n\r\n", 5.0))
    ),
    Fault(
        "100-then-answer", "judged", body=sent(), wire=lambda message: Wire((b"HTTP/1.1 100 Continue\r\n\r\n", message))
    ),
]

FAULTS = [*BY_STATUS, *BY_HEADER, *BY_CONTENT, *BY_TIMING]
