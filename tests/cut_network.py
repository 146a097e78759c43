"""A network that can be cut: a proxy on loopback between programs and a server."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class CutNetwork:
    """`with CutNetwork(port) as network:` and connect to `network.port`. After `cut()` nothing passes in either
    direction and nobody hears of it; `mend()` lets new connections through, those from before are lost. The server
    keeps its ends of them open, as it would."""

    def __init__(self, server_port: int) -> None:
        self._server_port, self.port = server_port, 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._passing: set[asyncio.Task[None]] = set()
        self._clients: list[asyncio.StreamWriter] = []
        self._deaf: list[asyncio.StreamWriter] = []
        self.is_cut = False

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def through(self, url: str) -> str:
        """The URL of the server, through this network."""
        return url.replace(f":{urlsplit(url).port}", f":{self.port}", 1)

    def cut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    def mend(self) -> None:
        asyncio.run_coroutine_threadsafe(self._mend(), self._loop).result()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _cut(self) -> None:
        self.is_cut = True
        for task in list(self._passing):
            task.cancel()

    async def _mend(self) -> None:
        self.is_cut = False
        for client in self._clients:
            client.transport.abort()
        self._clients.clear()

    async def _close(self) -> None:
        self._listening.close()
        await self._cut()
        for writer in (*self._clients, *self._deaf):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.append(writer)
        if self.is_cut:
            return
        to_read, to_write = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._deaf.append(to_write)
        for source, target in ((reader, to_write), (to_read, writer)):
            task = asyncio.create_task(self._pass(source, target))
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()
