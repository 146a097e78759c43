"""When calls reach an endpoint: a proxy on loopback that has the time of each from the kernel."""

from __future__ import annotations

import socket
import struct
import threading
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

# The option's number in Linux, which Python has no name for.
SO_TIMESTAMPNS = 35


class Arrivals:
    """`with Arrivals(server.url) as arrivals:` and connect to `arrivals.url`. What a call is counted by is when the
    kernel received it: on a busy machine a process gets to reading it much later, and then finds many at once."""

    def __init__(self, url: str) -> None:
        port = urlsplit(url).port
        assert port
        self._server = "127.0.0.1", port
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        # Connections inherit it: what arrives before `accept` has its time, too.
        self._listening.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.url = url.replace(f":{port}", f":{self._listening.getsockname()[1]}", 1)
        self._times: list[float] = []
        self._sockets = [self._listening]

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def times(self) -> list[float]:
        return sorted(self._times)

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                answered = threading.Event()
                answered.set()
                for target, source, to in ((self._ask, client, server), (self._answer, server, client)):
                    threading.Thread(target=target, args=(source, to, answered), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, answered: threading.Event) -> None:
        with suppress(OSError):
            while True:
                content, [*stamps], _, _ = client.recvmsg(65_536, socket.CMSG_SPACE(16))
                if not content:
                    break
                # A call may come in pieces; the next call on a connection comes after the answer.
                if answered.is_set():
                    answered.clear()
                    seconds, nanoseconds = struct.unpack("qq", stamps[0][2])
                    self._times.append(seconds + nanoseconds / 1e9)
                server.sendall(content)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket, answered: threading.Event) -> None:
        with suppress(OSError):
            while content := server.recv(65_536):
                answered.set()
                client.sendall(content)
            client.shutdown(socket.SHUT_WR)


def most_in_a_second(times: Sequence[float]) -> int:
    """How many of these moments, in order, at most lie within one second."""
    return max(bisect_left(times, begin + 1) - place for place, begin in enumerate(times))
