"""How many HTTP calls may be in flight at once."""

from __future__ import annotations

import asyncio
from collections import deque


class Gate:
    """`async with gate:` around each HTTP call, retries included; pauses between retries stay outside.

    Not an `asyncio.Semaphore`: that one belongs to the first event loop it waited in, while a judge may be
    used in several runs; and its limit cannot change while calls are in flight.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("a gate lets at least one call through")
        self.limit = limit
        self.in_flight = 0
        self.peak = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.in_flight < self.limit and not self._waiting:
            self._enter()
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
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

    def _enter(self) -> None:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)

    def _leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self._enter()
                place.set_result(None)
