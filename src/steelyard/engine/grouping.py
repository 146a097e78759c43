"""Group commit: statements that arrive while one group is being written make up the next.

A transaction for each reply costs forty times as much as one for a hundred of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from steelyard.errors import StoreError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Grouped(Generic[Item, Outcome]):
    """`await grouped(item)` is its outcome, once the group that it went with is done.

    `work` does a whole group, in this thread or in another (`in_thread`), where a server that is away for a while does
    not hold up calls to the judge. An item that fails does not take along those that came in the same moment.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Outcome]], *, in_thread: bool) -> None:
        self._work, self._in_thread = work, in_thread
        self._waiting: list[tuple[Item, asyncio.Future[Outcome]]] = []
        self._under_way: asyncio.Task[None] | None = None

    def __call__(self, item: Item) -> asyncio.Future[Outcome]:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            # Not at once: more may arrive in this turn of the loop.
            loop.call_soon(self._begin)
        future = loop.create_future()
        self._waiting.append((item, future))
        return future

    def _begin(self) -> None:
        if not self._in_thread:
            self._settle(*self._done(self._taken()))
        elif self._under_way is None:
            self._under_way = asyncio.get_running_loop().create_task(self._until_empty())

    async def _until_empty(self) -> None:
        try:
            while self._waiting:
                self._settle(*await asyncio.to_thread(self._done, self._taken()))
        finally:
            self._under_way = None

    def _taken(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        taken, self._waiting = self._waiting, []
        return taken

    def _done(
        self, group: list[tuple[Item, asyncio.Future[Outcome]]]
    ) -> tuple[list[asyncio.Future[Outcome]], list[Outcome | BaseException]]:
        items, futures = [item for item, _ in group], [future for _, future in group]
        try:
            return futures, list(self._work(items))
        except StoreError as error:
            return futures, [error] * len(items)
        except BaseException:
            return futures, [self._alone(item) for item in items]

    def _alone(self, item: Item) -> Outcome | BaseException:
        try:
            return self._work([item])[0]
        except BaseException as error:
            return error

    def _settle(self, futures: list[asyncio.Future[Outcome]], outcomes: list[Outcome | BaseException]) -> None:
        for future, outcome in zip(futures, outcomes, strict=True):
            if future.cancelled():
                continue  # nobody waits any more, but what was paid for is kept
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
                future.exception()  # whoever asked may have left by now
            else:
                future.set_result(outcome)
