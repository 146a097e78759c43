"""Connections to an endpoint: answers however they arrive, sockets that stay open, encryption, proxies."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from steelyard.judges.connections import (
    KEPT_SECONDS,
    Connection,
    Connections,
    Garbled,
    HttpAnswer,
    Unconnected,
    Untrusted,
)

MOST = 10_000
BODY = b'{"a": "' + bytes(range(32, 127)) * 3 + b'"}'
WHOLE = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY),
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
    + b"".join(b"%x;odd=1\r\n%b\r\n" % (len(BODY[at : at + 50]), BODY[at : at + 50]) for at in range(0, len(BODY), 50))
    + b"0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n",
    "to the end": b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    "after a 100": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY),
}


class Socket(asyncio.Transport):
    """Takes what is written, and is closed when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closing = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True


async def told(pieces: list[bytes], *, most: int = MOST) -> tuple[HttpAnswer, Socket]:
    connection, socket = Connection(most), Socket()
    connection.connection_made(socket)
    asked = asyncio.ensure_future(connection.exchange(b"POST", 5.0))
    await asyncio.sleep(0)
    for piece in pieces:
        connection.data_received(piece)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if not asked.done():
        connection.connection_lost(None)
    return await asked, socket


@pytest.mark.parametrize("form", WHOLE)
@given(cuts=st.lists(st.integers(0, 700), max_size=6))
def test_an_answer_may_be_cut_anywhere(form: str, cuts: list[int]) -> None:
    """Sockets hand over what they have, not lines, chunks or bodies."""
    sent = WHOLE[form]
    edges = sorted({0, len(sent), *(min(cut, len(sent)) for cut in cuts)})
    answer, socket = asyncio.run(told([sent[a:b] for a, b in pairwise(edges)]))
    assert (answer.status, answer.content, answer.is_whole) == (200, BODY, True)
    assert not socket.closing


@pytest.mark.parametrize("form", WHOLE)
async def test_no_more_is_read_than_the_limit(form: str) -> None:
    """What is longer is told as not whole, and its connection is closed: the rest is still on its way."""
    answer, socket = await told([WHOLE[form]], most=100)
    assert not answer.is_whole
    assert socket.closing


@pytest.mark.parametrize(
    "sent",
    [
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: value\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
async def test_what_is_not_http_is_told(sent: bytes) -> None:
    """Neither guessed at nor waited for."""
    with pytest.raises(Garbled):
        await told([sent])


# --- with real sockets ------------------------------------------------------------------------------------------

Serving = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serving, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(one, "127.0.0.1", 0, ssl=context)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def request_of(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next((line.partition(":")[2] for line in head.split("\r\n") if line.startswith("Content-Length")), "0")
    return head, await reader.readexactly(int(length))


def answer_with(body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in (*headers, f"Content-Length: {len(body)}"))
    return f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + body


async def asked(connections: Connections, body: bytes = b"{}") -> HttpAnswer:
    return await connections.post(connections.request(body), 5.0, lambda: None)


def connections_to(url: str, proxy: str | None = None, seconds: float = 5.0) -> Connections:
    return Connections(URL(url, encoded=True), {"X-Key": "k"}, proxy, seconds, MOST)


async def test_a_connection_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the server keeps it open, and not after it was idle for long."""
    seen: list[int] = []
    last = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(0)
        while True:
            head, body = await request_of(reader)
            assert head.startswith("POST /v1/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:")
            seen[-1] += 1
            writer.write(answer_with(body, *(["Connection: close"] if last else [])))

    async with server(serve) as port:
        connections = connections_to(f"http://127.0.0.1:{port}/v1/x?y=1")
        assert [(await asked(connections, text)).content for text in (b"1", b"2", b"3")] == [b"1", b"2", b"3"]
        assert seen == [3]
        await asyncio.gather(asked(connections), asked(connections))
        assert sorted(seen) == [1, 4]
        monkeypatch.setattr("steelyard.judges.connections.KEPT_SECONDS", -1.0)
        await asked(connections)
        assert len(seen) == 3
        monkeypatch.setattr("steelyard.judges.connections.KEPT_SECONDS", KEPT_SECONDS)
        last = True
        await asked(connections)
        await asked(connections)
        assert len(seen) == 4
        await connections.aclose()


async def test_a_call_that_is_given_up_leaves_no_answer_for_the_next() -> None:
    """Its connection is closed: what arrives late belongs to nobody."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await request_of(reader)
            await asyncio.sleep(0.2 if body == b"slow" else 0)
            writer.write(answer_with(body))

    async with server(serve) as port:
        connections = connections_to(f"http://127.0.0.1:{port}/")
        with pytest.raises(TimeoutError):
            await connections.post(connections.request(b"slow"), 0.05, lambda: None)
        given_up = asyncio.ensure_future(asked(connections, b"slow"))
        await asyncio.sleep(0.05)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert (await asked(connections, b"quick")).content == b"quick"
        await connections.aclose()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:judge.example"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        _, body = await request_of(reader)
        writer.write(answer_with(body))


async def test_an_encrypted_endpoint(certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its certificate must be trusted: by the system, or by SSL_CERT_FILE."""
    async with server(echo, certificate[1]) as port:
        connections = connections_to(f"https://localhost:{port}/")
        with pytest.raises(Untrusted, match="self-signed certificate"):
            await asked(connections)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        connections = connections_to(f"https://localhost:{port}/")
        assert [(await asked(connections, text)).content for text in (b"1", b"2")] == [b"1", b"2"]
        await connections.aclose()


async def test_through_a_proxy_to_an_encrypted_endpoint(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy is told the endpoint and its own password, and then sees nothing more."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    heads: list[str] = []
    passed: list[bytes] = []

    async with server(echo, certificate[1]) as endpoint:

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if "Proxy-Authorization: Basic bWVpOnAvdw==" not in heads[-1]:
                writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
                return
            inner, outer = await asyncio.open_connection("127.0.0.1", endpoint)
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

            async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                while data := await source.read(4096):
                    passed.append(data)
                    target.write(data)

            try:
                await asyncio.gather(pump(reader, outer), pump(inner, writer))
            finally:
                outer.close()

        async with server(tunnel) as port:
            connections = connections_to("https://judge.example/v1", f"http://mei:p%2Fw@127.0.0.1:{port}")
            assert [(await asked(connections, text)).content for text in (b"secret", b"2")] == [b"secret", b"2"]
            assert heads[0].startswith("CONNECT judge.example:443 HTTP/1.1\r\nHost: judge.example:443\r\n")
            assert len(heads) == 1
            assert b"secret" not in b"".join(passed)
            await connections.aclose()
            with pytest.raises(Unconnected, match="the proxy answered HTTP 407"):
                await asked(connections_to("https://judge.example/v1", f"http://127.0.0.1:{port}"))


async def test_where_nobody_listens() -> None:
    """Told as what it is; a name that is not known is told as such."""
    with pytest.raises(Unconnected, match="Connection refused"):
        await asked(connections_to("http://127.0.0.1:9/"))
    with pytest.raises(Unconnected, match="the host's name is not known"):
        await asked(connections_to("http://nowhere.invalid/"))
    with pytest.raises(Unconnected, match=r"no connection to the proxy \(Connection refused\)"):
        await asked(connections_to("http://judge.example/", "http://127.0.0.1:9"))
