"""Drives protocols: many samples at once, each asking its own rounds; verdicts come out in the input's order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from steelyard.errors import InputError, JudgeError
from steelyard.judges.base import Judge
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.records import Ask, Reply, Sample, Unjudged, Usage, Verdict

Row = tuple[int, Sample | InputError]
"""The place in the input, and what stood there."""


class Stopped(Exception):
    """The run was told to stop: what is not answered yet stays unasked, and can be resumed."""


@dataclass
class Tally:
    """What a run has done so far; a progress line reads it."""

    total: int | None = None
    done: int = 0
    skipped: int = 0
    bad_rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    stopped: str | None = None

    def count(self, verdict: Verdict) -> None:
        self.done += 1
        self.statuses[verdict.status] += 1


@dataclass(frozen=True)
class Budget:
    """When to stop by itself. Checked before each ask; what is in flight finishes and is kept."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None

    def exceeded(self, usage: Usage, seconds: float) -> str | None:
        if self.max_cost is not None and (usage.cost or 0) >= self.max_cost:
            return f"--max-cost {self.max_cost:g} reached"
        if self.max_tokens is not None and usage.prompt_tokens + usage.completion_tokens >= self.max_tokens:
            return f"--max-tokens {self.max_tokens} reached"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return f"--max-time {self.max_seconds:g}s reached"
        return None


class Runner:
    """One run over one judge. `tally` is live; `stop(reason)` ends it politely from any callback or signal."""

    def __init__(
        self,
        protocol: Protocol,
        options: Options,
        judge: Judge,
        *,
        workers: int = 32,
        budget: Budget | None = None,
        window: int = 2000,
        spent: Callable[[], Usage] | None = None,
    ) -> None:
        self.protocol, self.options, self.judge = protocol, options, judge
        self.workers, self.budget, self.window = workers, budget or Budget(), window
        self.tally = Tally()
        self._spent = spent or (lambda: self.tally.usage)

    def stop(self, reason: str) -> None:
        self.tally.stopped = self.tally.stopped or reason

    async def run(
        self,
        rows: Iterable[Row],
        on_verdict: Callable[[int, Sample, Verdict], None],
        on_bad_row: Callable[[InputError], None] = lambda bad: None,
    ) -> Tally:
        """Judge all rows. Verdicts are handed over as soon as every earlier row is settled.

        Raises `JudgeError` (after what was in flight is kept) when no ask can succeed any more.
        """
        self._started = asyncio.get_running_loop().time()
        source = iter(rows)
        queue = _InOrder(on_verdict, self.window)
        failures: list[JudgeError] = []

        async def work() -> None:
            while True:
                await queue.room()
                row = None if self.tally.stopped else next(source, None)
                if row is None:
                    return
                place, (seq, sample) = queue.take(), row
                if isinstance(sample, InputError):
                    self.tally.bad_rows += 1
                    on_bad_row(sample)
                    queue.settle(place, None)
                    continue
                try:
                    verdict = await self._judge(sample)
                except Stopped:
                    queue.settle(place, None)
                    continue
                except JudgeError as error:
                    failures.append(error)
                    self.stop(str(error))
                    queue.settle(place, None)
                    continue
                self.tally.count(verdict)
                queue.settle(place, (seq, sample, verdict))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.workers):
                    group.create_task(work())
        except BaseExceptionGroup as several:
            # One worker's failure ends the others; a user is told what happened, not how many were at work.
            raise several.exceptions[0] from None
        if failures:
            raise failures[0]
        return self.tally

    async def _judge(self, sample: Sample) -> Verdict:
        """One sample, round by round."""
        rounds = self.protocol.rounds(sample, self.options)
        usage = Usage()
        try:
            asks = next(rounds)
            while True:
                if len(asks) == 1:
                    replies = [await self._answer(asks[0])]
                else:
                    replies = await _all(self._answer(ask) for ask in asks)
                for reply in replies:
                    usage += reply.usage
                asks = rounds.send(replies)
        except StopIteration as finished:
            verdict: Verdict = finished.value
            return verdict.model_copy(update={"judge": self.judge.name, "usage": usage})

    async def _answer(self, ask: Ask) -> Reply | Unjudged:
        if not self.tally.stopped:
            elapsed = asyncio.get_running_loop().time() - self._started
            if reason := self.budget.exceeded(self._spent(), elapsed):
                self.stop(reason)
        if self.tally.stopped:
            raise Stopped
        reply = await self.judge.answer(ask)
        self.tally.usage += reply.usage
        if isinstance(reply, Unjudged):
            self.tally.errors[reply.reason] += 1
        return reply


async def _all(answers: Iterable[asyncio.Future[Reply | Unjudged] | object]) -> list[Reply | Unjudged]:
    """All answers in order. When one says stop, the others are still awaited, so that what they paid for is kept."""
    results = await asyncio.gather(*answers, return_exceptions=True)  # type: ignore[arg-type]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


class _InOrder:
    """Hands results over in the order of their places and keeps only a window of early ones."""

    def __init__(self, hand_over: Callable[[int, Sample, Verdict], None], window: int) -> None:
        self._hand_over, self._window = hand_over, window
        self._early: dict[int, tuple[int, Sample, Verdict] | None] = {}
        self._taken = self._next = 0
        self._moved = asyncio.Event()

    async def room(self) -> None:
        """Wait until the next place is not too far ahead of the oldest unsettled one."""
        while self._taken - self._next >= self._window:
            self._moved.clear()
            await self._moved.wait()

    def take(self) -> int:
        """The next place; take it together with its row, or the order is lost."""
        self._taken += 1
        return self._taken - 1

    def settle(self, place: int, result: tuple[int, Sample, Verdict] | None) -> None:
        self._early[place] = result
        while self._next in self._early:
            done = self._early.pop(self._next)
            self._next += 1
            if done:
                self._hand_over(*done)
        self._moved.set()
