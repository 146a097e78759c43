"""How many HTTP calls may be in flight at once, and how many a minute."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

from pydantic import Field

from steelyard.records import Record

CHARS_PER_TOKEN = 4  # only to pace by; what a call really took is what the server reports
START, CEILING = 16, 256


class Stopped(Exception):
    """The run was stopped: calls that were not sent yet stay unsent and can be resumed."""


class Limits(Record):
    """The user's limits. Without `concurrency` the limiter adapts to the endpoint."""

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
    """`async with limiter.call(size):` around each HTTP call, retries included; pauses between retries stay outside.

    A call begins when it has a slot and its turn in the pace, at the same moment: calls that had their turn and then
    waited for slots would all leave when an endpoint that stood still goes on.

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
        self._next_turn: asyncio.TimerHandle | None = None
        self._leaving = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pausing: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def call(self, characters: int = 0) -> AsyncIterator[None]:
        """Around a call that sends so many characters."""
        await self.enter(characters)
        try:
            yield
        finally:
            self.leave()

    async def enter(self, characters: int = 0) -> None:
        """Wait for a slot and for the rate limit; each `enter` needs a `leave`."""
        if self._closed:
            raise Stopped
        if self._waiting or not self._is_open():
            await self._wait_for_place()
        else:
            self._enter()
        if self.pace:
            # Counted from now: since it was let in, the event loop may have stood still.
            self.pace.spend(characters, asyncio.get_running_loop().time())
            self._leaving = False
            self._admit()

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    async def _wait_for_place(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                if place.exception() is None:
                    self._leaving = False
                    self.leave()  # let in and cancelled in the same turn of the loop: pass the slot on
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def resize(self, limit: int) -> None:
        """A new limit. Calls in flight finish; a larger one lets the next in at once."""
        self.limit = max(1, limit)
        self._admit()

    def close(self) -> None:
        """Begin no further call: waiting calls are rejected, calls in flight finish."""
        self._closed = True
        for place in self._waiting:
            if not place.done():
                place.set_exception(Stopped())
        self._waiting.clear()
        for pause in self._pausing:
            pause.cancel()

    async def wait(self, pause: Coroutine[Any, Any, None]) -> None:
        """Await a pause before a call, unless the limiter closes meanwhile."""
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
        """A call succeeded; a fixed limit ignores that."""

    def overloaded(self, retry_after: float | None = None) -> None:
        """The endpoint is overloaded; a fixed limit ignores that, since each call waits for itself."""

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

    def _is_open(self) -> bool:
        if self.in_flight >= self.limit or self._held or self._leaving:
            return False
        if self.pace is None:
            return True
        loop = asyncio.get_running_loop()
        due = self.pace.due
        if due > loop.time() and self._waiting:
            if self._next_turn:
                self._next_turn.cancel()
            self._next_turn = loop.call_at(due, self._admit)
        return due <= loop.time()

    def _admit(self) -> None:
        while self._waiting and self._is_open():
            place = self._waiting.popleft()
            if not place.done():
                self._enter()
                # One at a time, where there is a pace: the next turn is counted from when this one really left.
                self._leaving = self.pace is not None
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
        if self.in_flight + 1 < self.limit:
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
    """At most so many requests and tokens in any minute, spread evenly: up to `seconds` that were not used are caught
    up. With R requests a second no second has more than R × (1 + `seconds`), rounded up."""

    def __init__(self, requests: float | None, tokens: float | None, seconds: float = 1.0) -> None:
        self._requests, self._tokens = _Schedule.of(requests, seconds), _Schedule.of(tokens, seconds)

    @property
    def limited(self) -> bool:
        return bool(self._requests or self._tokens)

    def change(self, requests: float | None, tokens: float | None) -> None:
        """Other rates from the next call on."""
        for schedule, rate in ((self._requests, requests), (self._tokens, tokens)):
            if schedule and rate:
                schedule.change(rate)

    @property
    def due(self) -> float:
        """From when on the next call may leave."""
        return max(schedule.due for schedule in (self._requests, self._tokens) if schedule)

    def spend(self, characters: int, now: float) -> None:
        """A call of so many characters leaves now."""
        if self._requests:
            self._requests.spend(1, now)
        if self._tokens:
            self._tokens.spend(characters / CHARS_PER_TOKEN, now)


class _Schedule:
    """When what was sent is paid for at an even rate; the next may leave up to `seconds` earlier."""

    def __init__(self, per_minute: float, seconds: float) -> None:
        self._seconds, self._paid_until = seconds, -math.inf
        self.change(per_minute)

    @classmethod
    def of(cls, per_minute: float | None, seconds: float) -> Self | None:
        return cls(per_minute, seconds) if per_minute else None

    def change(self, per_minute: float) -> None:
        # No minute has more than it may, with the first turn and with what is caught up.
        ahead = min(per_minute / 2, 1 + per_minute / 60 * self._seconds)
        self._each = 60 / (per_minute - ahead)

    @property
    def due(self) -> float:
        return self._paid_until - self._seconds

    def spend(self, amount: float, now: float) -> None:
        self._paid_until = max(now, self._paid_until) + amount * self._each
