"""Connections to one endpoint: a request out, an answer in, over sockets that stay open.

A general HTTP client does more for each request than all the rest of a call takes: it builds header maps, looks for
cookies, redirects and authorisation, and follows each with several objects and timers. Here the head of a request is
written once for an endpoint, and an answer is read where it arrives. Anything that is not HTTP/1.1 as servers speak it
is `Garbled`.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

from yarl import URL

# Servers close what is idle for longer; a request on such a connection would be lost.
KEPT_SECONDS = 15.0
LONGEST_HEAD = 64 * 1024
LONGEST_LINE = 8 * 1024
NOT_HTTP = "what was sent is not HTTP"
BROKEN_OFF = "the answer breaks off, or is not what its headers say"
TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
HEAD_ENDS = b"\r\n\r\n"
LINE_ENDS = b"\r\n"
# Where the next address of a host is tried beside the first one.
EYEBALLS_SECONDS = 0.25


class Unconnected(Exception):
    """There is no connection: why, in words."""


class Untrusted(Exception):
    """The certificate is not trusted: why, in words."""


class Garbled(ValueError):
    """What was sent is not HTTP, or not what its headers say."""


Headers = dict[str, str]
"""By their names in small letters."""


class HttpAnswer(NamedTuple):
    """What came back; `content` is as it was packed, and not whole where it is longer than what is read."""

    status: int
    headers: Headers
    content: bytes
    is_whole: bool


class Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._answered: Callable[[], object] = bool
        self._status = 0
        self._headers: Headers = {}
        self._body: Iterator[bytes | None] | None = None
        self._has_body, self._keeps_open = True, False
        self.free_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        if self._transport is not None:
            with suppress(RuntimeError):  # its event loop has ended
                self._transport.close()

    async def exchange(
        self, request: bytes, seconds: float, answered: Callable[[], object] = bool, *, has_body: bool = True
    ) -> HttpAnswer:
        """Send a request and wait for its answer; `answered` is called when its head is there."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._answer, self._answered = loop.create_future(), answered
        self._status, self._body, self._has_body = 0, None, has_body
        late = loop.call_later(seconds, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            answer = await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            late.cancel()
            self._answer = None
        if self._keeps_open and not self._buffer:
            self.free_since = loop.time()
        else:
            self.close()
        return answer

    # --- what the event loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.close()  # nobody asked
            return
        self._buffer += data
        try:
            self._read()
        except Garbled as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answer is None or self._answer.done():
            return
        if self._status and exc is None and self._ends_with_connection:
            self._finish(bytes(self._buffer))
        elif self._status:
            self._fail(Garbled(BROKEN_OFF))
        else:
            self._fail(exc or ConnectionAbortedError("the connection was closed without an answer"))

    # --- reading an answer ---

    def _read(self) -> None:
        while not self._status:
            end = self._buffer.find(HEAD_ENDS)
            if end < 0:
                if len(self._buffer) > LONGEST_HEAD or not b"HTTP/1.".startswith(bytes(self._buffer[:7])):
                    raise Garbled(NOT_HTTP)
                return
            self._take_head(bytes(self._buffer[:end]))
            del self._buffer[: end + len(HEAD_ENDS)]
        if self._body is None:
            self._body = self._pieces()
        for whole in self._body:
            if whole is None:
                return
            self._finish(whole)
            return

    def _take_head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        status = rest[:3]
        if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit() and len(status) == 3):
            raise Garbled(NOT_HTTP)
        if status[0] == "1":
            return  # the answer comes after it
        headers: Headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not TOKEN.fullmatch(name) or len(line) > LONGEST_LINE or "\0" in line:
                raise Garbled(NOT_HTTP)
            name = name.lower()
            if name == "content-length" and name in headers:
                raise Garbled(NOT_HTTP)
            headers.setdefault(name, value.strip())
        self._status, self._headers = int(status), headers
        kept = headers.get("connection", "").lower()
        self._keeps_open = "close" not in kept and (version == "HTTP/1.1" or "keep-alive" in kept)
        self._answered()

    @property
    def _is_chunked(self) -> bool:
        return "chunked" in self._headers.get("transfer-encoding", "").lower()

    @property
    def _ends_with_connection(self) -> bool:
        return not self._is_chunked and "content-length" not in self._headers

    def _pieces(self) -> Iterator[bytes | None]:
        """The body once it is there, None as long as more must arrive."""
        buffer = self._buffer
        if self._status in (204, 304) or not self._has_body:
            yield b""
        elif self._is_chunked:
            yield from self._chunked()
        elif self._ends_with_connection:
            self._keeps_open = False
            while len(buffer) <= self._most:
                yield None
            yield bytes(buffer)
        else:
            length = self._headers["content-length"]
            if not (length.isascii() and length.isdigit() and len(length) < 16):
                raise Garbled(NOT_HTTP)
            wanted = min(int(length), self._most + 1)
            while len(buffer) < wanted:
                yield None
            content = bytes(buffer[:wanted])
            del buffer[:wanted]
            yield content

    def _chunked(self) -> Iterator[bytes | None]:
        buffer, content = self._buffer, bytearray()
        while len(content) <= self._most:
            while (end := buffer.find(LINE_ENDS)) < 0:
                if len(buffer) > LONGEST_HEAD:
                    raise Garbled(BROKEN_OFF)
                yield None
            digits = bytes(buffer[:end]).partition(b";")[0].strip()
            if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
                raise Garbled(BROKEN_OFF)
            size, start = int(digits, 16), end + len(LINE_ENDS)
            if not size:
                break
            while len(buffer) < start + size + len(LINE_ENDS) and len(buffer) - start <= self._most:
                yield None
            content += buffer[start : start + size]
            if len(content) <= self._most and not buffer.startswith(LINE_ENDS, start + size):
                raise Garbled(BROKEN_OFF)
            del buffer[: start + size + len(LINE_ENDS)]
        else:
            yield bytes(content)
            return
        # After the last chunk there may be headers; an empty line ends them.
        while not (buffer.startswith(LINE_ENDS, start) or HEAD_ENDS in buffer):
            yield None
        if buffer.startswith(LINE_ENDS, start):
            del buffer[: start + len(LINE_ENDS)]
        else:
            del buffer[: buffer.find(HEAD_ENDS) + len(HEAD_ENDS)]
        yield bytes(content)

    def _finish(self, content: bytes) -> None:
        if self._answer and not self._answer.done():
            is_whole = len(content) <= self._most
            self._keeps_open = self._keeps_open and is_whole
            self._answer.set_result(HttpAnswer(self._status, self._headers, content, is_whole))

    def _fail(self, error: Exception) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(error)


class Connections:
    """Those to one endpoint, as many as are needed at once. `most` is how many bytes of an answer are read."""

    def __init__(self, url: URL, headers: Mapping[str, str], proxy: str | None, seconds: float, most: int) -> None:
        self._url, self._seconds, self._most = url, seconds, most
        self._proxy = URL(proxy) if proxy else None
        self._free: list[Connection] = []
        self._all: set[Connection] = set()
        self._trust: ssl.SSLContext | None = None
        # A proxy of a plain endpoint is asked in its place, one of an encrypted endpoint only connects.
        is_asked = self._proxy and not self._is_encrypted
        target = str(url.with_fragment(None)) if is_asked else url.raw_path_qs
        told = {"Host": url.host_port_subcomponent or "", **(self._proxy_key if is_asked else {}), **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        self._head = f"POST {target} HTTP/1.1\r\n{lines}".encode()

    def request(self, body: bytes, extra: Mapping[str, str] | None = None) -> bytes:
        more = "".join(f"{name}: {value}\r\n" for name, value in extra.items()) if extra else ""
        return b"%bContent-Length: %d\r\n%b\r\n%b" % (self._head, len(body), more.encode(), body)

    async def post(self, request: bytes, seconds: float, answered: Callable[[], object]) -> HttpAnswer:
        """The answer to a request, within so many seconds."""
        connection = self._kept()
        if connection is None:
            began = asyncio.get_running_loop().time()
            connection = await self._connected()
            seconds -= asyncio.get_running_loop().time() - began
        try:
            return await connection.exchange(request, max(0.0, seconds), answered)
        finally:
            if connection.is_open:
                self._free.append(connection)
            else:
                self._all.discard(connection)

    async def aclose(self) -> None:
        """Close all of them; those of an event loop that has ended are closed already."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._free.clear()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop

    def _kept(self) -> Connection | None:
        """An open connection, the latest used first."""
        oldest = asyncio.get_running_loop().time() - KEPT_SECONDS
        while self._free:
            connection = self._free.pop()
            if connection.is_open and connection.free_since >= oldest:
                return connection
            connection.close()
            self._all.discard(connection)
        return None

    @property
    def _is_encrypted(self) -> bool:
        return self._url.scheme == "https"

    @property
    def _proxy_key(self) -> dict[str, str]:
        if not self._proxy or self._proxy.raw_user is None:
            return {}
        said = f"{unquote(self._proxy.raw_user)}:{unquote(self._proxy.raw_password or '')}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(said.encode()).decode()}"}

    def _context(self) -> ssl.SSLContext:
        if self._trust is None:
            self._trust = ssl.create_default_context()
        return self._trust

    async def _connected(self) -> Connection:
        try:
            async with asyncio.timeout(self._seconds):
                connection = await self._opened()
        except TimeoutError:
            raise Unconnected(f"no connection within {self._seconds:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(error.verify_message or type(error).__name__) from None
        except socket.gaierror:
            raise Unconnected(f"{'the proxy' if self._proxy else 'the host'}'s name is not known") from None
        except (OSError, ValueError, Garbled) as error:
            raise Unconnected(f"no connection{' to the proxy' * bool(self._proxy)} ({cause_of(error)})") from None
        self._all.add(connection)
        return connection

    async def _opened(self) -> Connection:
        loop, towards = asyncio.get_running_loop(), self._proxy or self._url
        transport, connection = await loop.create_connection(
            lambda: Connection(self._most),
            towards.host or "",
            towards.port or 0,
            ssl=self._context() if towards.scheme == "https" else None,
            happy_eyeballs_delay=EYEBALLS_SECONDS,
        )
        if not (self._proxy and self._is_encrypted):
            return connection
        try:
            await self._tunnel(connection)
            inner = Connection(self._most)
            encrypted = await loop.start_tls(transport, inner, self._context(), server_hostname=self._url.host)
        except BaseException:
            transport.close()
            raise
        assert encrypted is not None
        inner.connection_made(encrypted)
        return inner

    async def _tunnel(self, connection: Connection) -> None:
        """Have the proxy connect."""
        target = f"{self._url.host_subcomponent}:{self._url.port}"
        lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": target, **self._proxy_key}.items())
        request = f"CONNECT {target} HTTP/1.1\r\n{lines}\r\n"
        answer = await connection.exchange(request.encode(), self._seconds, has_body=False)
        if answer.status != 200:
            raise Unconnected(f"the proxy answered HTTP {answer.status}")


def cause_of(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if isinstance(number, int) and number > 0 else type(error).__name__
