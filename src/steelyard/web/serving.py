"""The viewer under uvicorn: on a port that is free, quiet, and saying when it is there."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import uvicorn

from steelyard.errors import ConfigError
from steelyard.web.app import create_app
from steelyard.web.viewer import Viewer

PORT = 8321
# Readers who follow a run keep a connection open; they are not waited for.
PATIENCE = 3


class Certificate(NamedTuple):
    """The files of a TLS certificate with its chain, and of its key."""

    certificate: Path
    key: Path


class Server(uvicorn.Server):
    """Serves one viewer; `on_ready` is called with the address once it can be opened."""

    def __init__(
        self,
        viewer: Viewer,
        listening: socket.socket,
        on_ready: Callable[[str], None],
        tls: Certificate | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(viewer),
                log_level="warning",
                access_log=False,
                ws="none",
                server_header=False,
                # Who is behind a proxy is read from its headers only where the proxy is trusted (accounts/proxies.py).
                proxy_headers=False,
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self.viewer, self.listening, self.on_ready = viewer, listening, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_ready(address_of(self.listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Runs at work finish what is in flight; whoever says so a second time does not wait for that."""
        jobs = self.viewer.jobs
        jobs.close()
        self.viewer.evaluations.close()
        if jobs.busy:
            print("finishing what is in flight; press Ctrl-C again to stop now", file=sys.stderr)
        while jobs.busy and not self.force_exit:  # noqa: ASYNC110 (both change in other threads)
            await asyncio.sleep(0.1)
        if jobs.busy:
            jobs.cancel()
        self.viewer.cache.close()
        await super().shutdown(sockets)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        super().run(sockets or [self.listening])


def listen(host: str, port: int | None = None) -> socket.socket:
    """A socket on this port; without one, on the usual port, or any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [port] if port is not None else [PORT, 0]
    for candidate in wanted:
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, candidate))
        except OSError as error:
            listening.close()
            if candidate == wanted[-1]:
                raise ConfigError(f"cannot listen on {host}, port {candidate}: {error.strerror}") from None
        else:
            listening.listen(128)
            return listening
    raise AssertionError


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
