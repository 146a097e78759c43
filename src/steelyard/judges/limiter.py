"""How many HTTP calls may be in flight at once, and how many a minute."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Coroutine
from typing import Any, Self

from pydantic import Field

from steelyard.records import Record

CHARS_PER_TOKEN = 4  # only to pace by; what a call really took is what the server reports
START, CEILING = 16, 256


class Stopped(Exception):
    """The run was told to stop: what has not been sent yet stays unsent, and can be resumed."""


class Limits(Record):
    """What the user allows. Without `concurrency` the limiter finds out by itself what the endpoint bears."""

    concurrency: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)

    @property
    def samples_at_once(self) -> int:
        """Twice as many as calls: while one sample pauses or is scored, another's call takes the slot."""
        return 2 * (self.concurrency or CEILING)

    def limiter(self) -> Limiter:
        pace = Pace(self.requests_per_minute, self.tokens_per_minute)
        made = Limiter(self.concurrency) if self.concurrency else AdaptiveLimiter()
        made.pace = pace if pace.limited else None
        return made


class Limiter:
    """`async with limiter:` around each HTTP call, retries included; pauses between retries stay outside.

    Not an `asyncio.Semaphore`: that one belongs to the first event loop it waited in, while a judge may be
    used in several runs; and its limit cannot change while calls are in flight.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("a limiter lets at least one call through")
        self.limit = limit
        self.in_flight = 0
        self.peak = 0
        self.pace: Pace | None = None
        self._closed = False
        self._held: asyncio.TimerHandle | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pausing: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> None:
        if self._closed:
            raise Stopped
        if self.in_flight < self.limit and not self._waiting and not self._held:
            self._enter()
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                if place.exception() is None:
                    self._leave()  # let in and cancelled in the same turn of the loop: pass the slot on
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def resize(self, limit: int) -> None:
        """A new limit. Calls in flight finish; a larger one lets the next in at once."""
        self.limit = max(1, limit)
        self._admit()

    def close(self) -> None:
        """Let no further call begin, ever: who waits here or pauses is turned away; calls in flight finish."""
        self._closed = True
        for place in self._waiting:
            if not place.done():
                place.set_exception(Stopped())
        self._waiting.clear()
        for pause in self._pausing:
            pause.cancel()

    async def wait(self, pause: Coroutine[Any, Any, None]) -> None:
        """Await what comes before a call, a pause or its turn in the pace, unless the limiter closes meanwhile."""
        task = asyncio.ensure_future(pause)
        self._pausing.add(task)
        if self._closed:
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if self._closed and not (own and own.cancelling()):
                raise Stopped from None
            raise
        finally:
            self._pausing.discard(task)

    def eased(self) -> None:
        """A call went well. A fixed limit does not care."""

    def overloaded(self, retry_after: float | None = None) -> None:
        """The endpoint said that it is too much. A fixed limit does not care: each call waits for itself."""

    def hold(self, seconds: float) -> None:
        """Let no further call in for so long: the endpoint said when there is room again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._held is None or until > self._held.when():
            if self._held:
                self._held.cancel()
            self._held = loop.call_at(until, self._open)

    def _open(self) -> None:
        self._held = None
        self._admit()

    def _enter(self) -> None:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)

    def _leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.in_flight < self.limit and not self._held:
            place = self._waiting.popleft()
            if not place.done():
                self._enter()
                place.set_result(None)


class AdaptiveLimiter(Limiter):
    """Grows while the endpoint keeps up, halves when it does not, as TCP does.

    Until the first overload it doubles with every limit's worth of successes, afterwards it adds one. One
    overload is one cut: calls that were already in flight at the cut say nothing new about the new limit.
    """

    def __init__(self, start: int = START, ceiling: int = CEILING) -> None:
        super().__init__(start)
        self.ceiling = ceiling
        self._steady = False
        self._successes = 0
        self._stale = 0

    def eased(self) -> None:
        if self._stale:
            self._stale -= 1
            return
        # Room that is not used proves nothing.
        if self.in_flight + 1 < self.limit and not self._waiting:
            return
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            self.resize(min(self.ceiling, self.limit + 1 if self._steady else self.limit * 2))

    def overloaded(self, retry_after: float | None = None) -> None:
        if retry_after:
            self.hold(retry_after)
        if self._stale:
            self._stale -= 1
            return
        self._steady, self._successes, self._stale = True, 0, self.in_flight
        self.resize(self.limit // 2)


class Pace:
    """At most so many requests and tokens in any minute, spread evenly: what was not used for `seconds` is lost."""

    def __init__(self, requests: float | None, tokens: float | None, seconds: float = 1.0) -> None:
        self._requests, self._tokens = _Turns.of(requests, seconds), _Turns.of(tokens, seconds)

    @property
    def limited(self) -> bool:
        return bool(self._requests or self._tokens)

    def change(self, requests: float | None, tokens: float | None) -> None:
        """Other rates from now on, for those who wait already, too."""
        for turns, rate in ((self._requests, requests), (self._tokens, tokens)):
            if turns and rate:
                turns.change(rate)

    async def wait(self, characters: int) -> None:
        if self._requests:
            await self._requests.take(1)
        if self._tokens:
            await self._tokens.take(characters / CHARS_PER_TOKEN)


class _Turns:
    """Turns at an even pace, in the order they are asked for; up to `seconds` that were not used are caught up."""

    def __init__(self, per_minute: float, seconds: float) -> None:
        self._seconds, self._paid_until = seconds, -math.inf
        self._loop: asyncio.AbstractEventLoop | None = None
        self.change(per_minute)

    @classmethod
    def of(cls, per_minute: float | None, seconds: float) -> Self | None:
        return cls(per_minute, seconds) if per_minute else None

    def change(self, per_minute: float) -> None:
        # No minute has more than it may, with the first turn and with what is caught up.
        ahead = min(per_minute / 2, 1 + per_minute / 60 * self._seconds)
        self._each = 60 / (per_minute - ahead)

    async def take(self, amount: float) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # A lock belongs to one loop, while a judge may be used in several runs.
            self._loop, self._first, self._paid_until = loop, asyncio.Lock(), -math.inf
        async with self._first:
            now = loop.time()
            paid_until = max(now, self._paid_until) + amount * self._each
            await asyncio.sleep(max(0.0, paid_until - now - self._seconds - self._each))
            self._paid_until = paid_until
