"""Judges that ask from several processes of this machine: one core renders, sends and parses only so much.

The process that started them keeps the run: it alone reads samples, journals replies and minds the budget. A process
that judges is forked, gets asks and sends replies over a socket, and ends with that socket, so also when the first
process is killed. What one that died was asking, another asks again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import socket
import struct
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from steelyard.errors import JudgeError
from steelyard.judges.base import Judge, Voice
from steelyard.judges.limiter import Limiter, Limits
from steelyard.records import Ask, Reply, Unjudged

HEADER = struct.Struct("!I")
# As in the runner: asks and replies hold no cycles.
BETWEEN_COLLECTIONS = 20_000, 20, 20
UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)


class _Asked(NamedTuple):
    """An ask that a process has, as it was sent, and who waits for the reply."""

    sent: bytes
    future: asyncio.Future[Reply | Unjudged]


class JudgePool:
    """Processes that answer for the voices of one judge. They are forked at once: make it outside any event loop."""

    def __init__(self, judge: Judge, processes: int, limits: Limits, limiter: Limiter) -> None:
        self._inner = [voice.judge for voice in judge.voices()]
        self._limits, self._limiter = limits, limiter
        self._numbers = count()
        self._connected: asyncio.Task[None] | None = None
        pairs = [socket.socketpair() for _ in range(min(processes, limits.concurrency or processes))]
        part = -(-limiter.limit // len(pairs))
        self._processes = [_Process(self, pid, ours, part) for pid, ours in self._forked(pairs)]
        places = count()
        self.judge = judge.exchanged(lambda voice: self._pooled(voice, next(places)))
        limiter.on_close = self._stop

    def _forked(self, pairs: Sequence[tuple[socket.socket, socket.socket]]) -> list[tuple[int, socket.socket]]:
        forked = []
        for place, (ours, theirs) in enumerate(pairs):
            pid = os.fork()
            if not pid:
                try:
                    # A copy of another's end would keep it open after the first process is gone.
                    for mine, other in pairs:
                        mine.close()
                        if other is not theirs:
                            other.close()
                    self._limits.divide(self._limiter, place, len(pairs))
                    _serve(theirs, self._inner, self._limits, self._limiter)
                finally:
                    os._exit(0)  # nothing that the first process holds is to be tidied up here
            forked.append((pid, ours))
        for _, theirs in pairs:
            theirs.close()
        return forked

    def _pooled(self, voice: Voice, place: int) -> Judge:
        # A judge on this machine has processes of its own.
        return voice.judge if voice.judge.offline else PooledJudge(voice.judge, place, self)

    async def answer(self, place: int, ask: Ask) -> Reply | Unjudged:
        loop = asyncio.get_running_loop()
        if self._connected is None:
            self._connected = loop.create_task(self._connect())
        if not self._connected.done():
            await asyncio.shield(self._connected)
        number = next(self._numbers)
        try:
            sent = pickle.dumps((number, place, ask), pickle.HIGHEST_PROTOCOL)
        except UNPICKLABLE:  # a reply of a shape that only this process knows
            return await self._inner[place].answer(ask)
        asked = _Asked(sent, loop.create_future())
        self._hand_out(number, asked)
        return await asked.future

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        for process in self._processes:
            await loop.create_connection(process.itself, sock=process.socket)

    def _hand_out(self, number: int, asked: _Asked) -> None:
        alive = [process for process in self._processes if process.is_alive]
        if not alive:
            asked.future.set_exception(JudgeError("every process that judged has ended; look for what killed them"))
            return
        least = min(alive, key=lambda process: len(process.asked))
        least.asked[number] = asked
        least.send(asked.sent)
        self.count()

    def count(self) -> None:
        """Calls in flight, as the budget and the progress line see them: never fewer than there are."""
        alive = [process for process in self._processes if process.is_alive]
        self._limiter.limit = sum(process.limit for process in alive) or self._limiter.limit
        self._limiter.in_flight = min(sum(len(process.asked) for process in alive), self._limiter.limit)

    def lost(self, process: _Process) -> None:
        """Hand out what a process that died was asking, and its share of the limits."""
        os.waitpid(process.pid, 0)
        alive = [one for one in self._processes if one.is_alive]
        for place, one in enumerate(alive):
            one.send(pickle.dumps((place, len(alive))))
        open_, process.asked = process.asked, {}
        for number, asked in open_.items():
            if not asked.future.done():
                self._hand_out(number, asked)

    def _stop(self) -> None:
        for process in self._processes:
            if process.is_alive:
                process.send(pickle.dumps(None))

    async def aclose(self) -> None:
        if self._connected:
            await self._connected
        for process in self._processes:
            process.leave()


class _Process(asyncio.Protocol):
    """One process, as the first one sees it."""

    def __init__(self, pool: JudgePool, pid: int, end: socket.socket, limit: int) -> None:
        self._pool, self.pid, self.socket, self.limit = pool, pid, end, limit
        self.asked: dict[int, _Asked] = {}
        self.is_alive = True
        self._is_leaving = False
        self._frames = _Frames()
        self._transport: asyncio.Transport | None = None

    def itself(self) -> _Process:
        return self

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, message: bytes) -> None:
        if self._transport:
            self._transport.write(HEADER.pack(len(message)) + message)

    def data_received(self, data: bytes) -> None:
        for message in self._frames.of(data):
            number, self.limit, outcome = pickle.loads(message)
            future = self.asked.pop(number).future
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
                future.exception()  # whoever asked may have left by now
            else:
                future.set_result(outcome)
        self._pool.count()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_alive = False
        if not self._is_leaving:
            self._pool.lost(self)

    def leave(self) -> None:
        if not self.is_alive:
            return
        self._is_leaving, self.is_alive = True, False
        if self._transport:
            self._transport.abort()
        else:
            self.socket.close()
        # It ends with the socket's other end; until that is closed, by its own hand.
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class PooledJudge(Judge):
    """A judge whose calls are made by the processes of a pool."""

    def __init__(self, judge: Judge, place: int, pool: JudgePool) -> None:
        self._judge, self._place, self._pool = judge, place, pool
        self.name, self.follows_prompts = judge.name, judge.follows_prompts

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        return await self._pool.answer(self._place, ask)

    async def aclose(self) -> None:
        await self._pool.aclose()
        await self._judge.aclose()

    def describe(self) -> dict[str, Any]:
        return self._judge.describe()

    def fingerprint(self, ask: Ask) -> str:
        return self._judge.fingerprint(ask)

    @property
    def caution(self) -> str:
        return self._judge.caution

    @property
    def model(self) -> str:
        return self._judge.model

    @property
    def price(self) -> Any:
        return self._judge.price

    @property
    def structured(self) -> str | None:
        return self._judge.structured


class _Frames:
    """Messages in a stream of bytes: a length, then so many bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def of(self, data: bytes) -> list[bytes]:
        self._buffer += data
        found, at = [], 0
        while len(self._buffer) - at >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer, at)
            end = at + HEADER.size + length
            if end > len(self._buffer):
                break
            found.append(bytes(self._buffer[at + HEADER.size : end]))
            at = end
        del self._buffer[:at]
        return found


def _serve(end: socket.socket, judges: Sequence[Judge], limits: Limits, limiter: Limiter) -> None:
    """What a process does: answer until the socket is closed."""
    # Who presses Ctrl-C means the run, which finishes what is in flight.
    signal.set_wakeup_fd(-1)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(*BETWEEN_COLLECTIONS)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        await loop.create_connection(lambda: _Server(judges, limits, limiter, over), sock=end)
        await over

    asyncio.run(serve())


class _Server(asyncio.Protocol):
    """The first process, as one that judges sees it."""

    def __init__(self, judges: Sequence[Judge], limits: Limits, limiter: Limiter, over: asyncio.Future[None]) -> None:
        self._judges, self._limits, self._limiter, self._over = judges, limits, limiter, over
        self._frames = _Frames()
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport

    def data_received(self, data: bytes) -> None:
        for message in self._frames.of(data):
            match pickle.loads(message):
                case None:
                    self._limiter.close()
                case (place, processes):
                    self._limits.divide(self._limiter, place, processes)
                case (number, place, ask):
                    task = asyncio.get_running_loop().create_task(self._answer(number, self._judges[place], ask))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, judge: Judge, ask: Ask) -> None:
        outcome: Reply | Unjudged | Exception
        try:
            outcome = await judge.answer(ask)
        except Exception as error:
            outcome = error
        message = pickle.dumps((number, self._limiter.limit, outcome), pickle.HIGHEST_PROTOCOL)
        self._transport.write(HEADER.pack(len(message)) + message)

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(0)  # nobody is left to keep what is still in flight
