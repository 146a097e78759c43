"""Protocols at work: one sample (`replay`), or many at once until all are judged or the budget is spent (`Runner`)."""

from __future__ import annotations

import asyncio
import gc
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from steelyard.errors import InputError, StoreError, Surface
from steelyard.judges.base import JudgeLike
from steelyard.judges.composed import all_of
from steelyard.judges.limiter import Limiter, Stopped
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.records import Ask, Reply, Sample, Unjudged, Usage, Verdict
from steelyard.reports.families import judges_itself

Row = tuple[int, Sample | InputError]
"""The place in the input, and what stood there."""

Answering = Callable[[list[Ask]], Awaitable[list[Reply | Unjudged]]]
"""What answers one round of a protocol: a reply, or why there is none, to each ask in its order."""

T = TypeVar("T")


class Allowance(ABC):
    """A budget that is granted in parts: when it is used up, the runner waits for more instead of stopping."""

    @abstractmethod
    def is_spent(self, usage: Usage, asking: int) -> bool:
        """Whether the granted part is used up, counting this many asks in flight."""

    @abstractmethod
    async def more(self) -> None:
        """Wait until more may have been handed out."""


RECORDS_BETWEEN_COLLECTIONS = 20_000, 20, 20
# While the first calls are on their way, the next samples are read and put into words.
STARTED_TOGETHER = 8


async def replay(protocol: Protocol, sample: Sample, answer: Answering, options: Options, judge: str = "") -> Verdict:
    """The verdict on one sample, whoever answers: a judge, the journal, a batch file, stored replies.

    Protocols are pure: the same answers lead to the same asks and the same verdict. What `answer` raises ends it.
    `judge` signs the verdict, which is flagged where that is one of the answer's own kind.
    """
    rounds = protocol.rounds(sample, options)
    usage = Usage()
    try:
        asks = next(rounds)
        while True:
            replies = await answer(asks)
            for reply in replies:
                usage += reply.usage
            asks = rounds.send(replies)
    except StopIteration as finished:
        verdict: Verdict = finished.value
        writers = (sample.model, getattr(sample, "other_model", None))
        own = any(judges_itself(judge, model) for model in writers)
        flags = (*verdict.flags, "self_judged") if own else verdict.flags
        return verdict.model_copy(update={"judge": judge, "usage": usage, "flags": flags})


def run_to_end(main: Coroutine[Any, Any, T], loop: asyncio.Runner | None = None) -> T:
    """`asyncio.run` with less frequent garbage collection; in the given loop, if there is one."""
    with _with_rare_garbage_collection():
        return loop.run(main) if loop else asyncio.run(main)


@contextmanager
def _with_rare_garbage_collection() -> Iterator[None]:
    """Asks and verdicts hold no reference cycles; collecting after every 700 objects took a sixth of all the time."""
    before = gc.get_threshold()
    gc.set_threshold(*RECORDS_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass
class Tally:
    """Live counters of a run, for progress output."""

    total: int | None = None
    done: int = 0
    skipped: int = 0
    bad_rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    self_judged: int = 0
    stopped: str | None = None

    def count(self, verdict: Verdict) -> None:
        self.done += 1
        self.statuses[verdict.status] += 1
        self.self_judged += "self_judged" in verdict.flags


@dataclass(frozen=True)
class Budget:
    """When to stop by itself. Checked around each ask; what is in flight finishes and is kept, and is therefore
    counted beforehand, as if each call in flight took what the calls so far took on average."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    surface: Surface = Surface.flags
    used: Usage = field(default_factory=Usage)
    """What was spent before, by runs that share this budget, and for how long they were at work."""
    passed: float = 0.0

    def after(self, usage: Usage, seconds: float) -> Budget:
        """The same budget for the next of several runs."""
        return replace(self, used=self.used + usage, passed=self.passed + seconds)

    @property
    def is_unlimited(self) -> bool:
        return self.max_cost is None and self.max_tokens is None and self.max_seconds is None

    def exceeded(self, usage: Usage, seconds: float, in_flight: int = 0, silent: str = "") -> str | None:
        """Why to stop now, or None. `silent` names a judge that was called but reports no tokens."""
        usage, seconds = self.used + usage, self.passed + seconds
        ahead = 1 + in_flight / usage.calls if usage.calls else 1.0
        if self.max_cost is not None and (usage.cost or 0) * ahead >= self.max_cost:
            return f"{self.surface.setting('max_cost', f'{self.max_cost:g}')} reached"
        tokens = usage.prompt_tokens + usage.completion_tokens
        if (silent or (usage.calls and not tokens)) and (self.max_cost or self.max_tokens):
            # Some servers leave the count out; going on would mean to spend without any limit.
            limit = self.surface.setting("max_cost" if self.max_cost else "max_tokens").rstrip("=")
            return f"{limit} is blind: {silent or 'this judge'} reports no tokens"
        if self.max_tokens is not None and tokens * ahead >= self.max_tokens:
            return f"{self.surface.setting('max_tokens', self.max_tokens)} reached"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return f"{self.surface.setting('max_time', f'{self.max_seconds:g}s')} reached"
        return None


class Runner:
    """One run over one judge. `tally` is live; `stop(reason)` ends it politely from any callback or signal.

    `limiter` is the one that the judge's calls go through: closed by `stop`, it turns away asks that wait there.
    Without `in_order`, verdicts are handed over as they come, and a slow sample holds nothing up.
    """

    def __init__(
        self,
        protocol: Protocol,
        options: Options,
        judge: JudgeLike,
        *,
        workers: int = 32,
        budget: Budget | None = None,
        window: int = 2000,
        spent: Callable[[], Usage] | None = None,
        silent: Callable[[], str] = lambda: "",
        limiter: Limiter | None = None,
        in_order: bool = True,
        allowance: Allowance | None = None,
    ) -> None:
        self.allowance = allowance
        self.protocol, self.options, self.judge = protocol, options, judge
        self.workers, self.window = workers, window
        self.budget = budget or Budget()
        self.limiter, self.in_order = limiter, in_order
        self.tally = Tally()
        self._spent, self._silent = spent or (lambda: self.tally.usage), silent
        self._asking = self._cut_short = 0

    def stop(self, reason: str) -> None:
        self.tally.stopped = self.tally.stopped or reason
        if self.limiter:
            self.limiter.close()

    async def run(
        self,
        rows: Iterable[Row] | AsyncIterator[Row],
        on_verdict: Callable[[int, Sample, Verdict], None],
        on_bad_row: Callable[[InputError], None] = lambda bad: None,
    ) -> Tally:
        """Judge all rows. Verdicts are handed over as soon as every earlier row is settled.

        Whatever fails (`JudgeError`, when no ask can succeed any more; a slip in a protocol) is raised after what
        was in flight is kept. Only a failing store ends the run at once: nothing could be kept any more.
        """
        self._started = asyncio.get_running_loop().time()
        source = rows if isinstance(rows, AsyncIterator) else iter(rows)
        queue = _Ordered(on_verdict, self.window) if self.in_order else _Unordered(on_verdict)
        failures: list[Exception] = []

        def fail(error: Exception) -> None:
            failures.append(error)
            self.stop(str(error) or type(error).__name__)

        async def work() -> None:
            while True:
                await queue.room()
                try:
                    row = None if self.tally.stopped else await _next(source)
                except Exception as error:
                    fail(error)
                    return
                if row is None:
                    return
                place, (seq, sample) = queue.take(), row
                if isinstance(sample, InputError):
                    self.tally.bad_rows += 1
                    on_bad_row(sample)
                    queue.settle(place, None)
                    continue
                try:
                    began = asyncio.get_running_loop().time()
                    verdict = await replay(self.protocol, sample, self._answers, self.options, self.judge.name)
                    if verdict.usage.calls:
                        seconds = round(asyncio.get_running_loop().time() - began, 3)
                        verdict = verdict.model_copy(update={"notes": {**verdict.notes, "seconds": seconds}})
                    self.tally.count(verdict)
                    queue.settle(place, (seq, sample, verdict))
                except Stopped:
                    self._cut_short += 1
                    queue.settle(place, None)
                except StoreError:
                    raise
                except Exception as error:
                    fail(error)
                    queue.settle(place, None)

        # Not only before an ask: when every call hangs, there is no next ask for a long time.
        alarm = self._stop_at_deadline()
        try:
            async with asyncio.TaskGroup() as group:
                for started in range(1, self.workers + 1):
                    group.create_task(work())
                    if started % STARTED_TOGETHER == 0:
                        await asyncio.sleep(0)
        except BaseExceptionGroup as several:
            # One worker's failure ends the others; a user is told what happened, not how many were at work.
            raise several.exceptions[0] from None
        finally:
            if alarm:
                alarm.cancel()
        if failures:
            raise failures[0]
        if self.tally.stopped and not self._cut_short and isinstance(source, Iterator) and next(source, None) is None:
            self.tally.stopped = None  # it came too late to leave anything out
        return self.tally

    async def _answers(self, asks: list[Ask]) -> list[Reply | Unjudged]:
        if len(asks) == 1:
            return [await self._answer(asks[0])]
        return await all_of(map(self._answer, asks))

    async def _answer(self, ask: Ask) -> Reply | Unjudged:
        self._check_budget()
        while self.allowance and not self.tally.stopped and self.allowance.is_spent(self._spent(), self._asking):
            await self.allowance.more()
        if self.tally.stopped:
            raise Stopped
        self._asking += 1
        try:
            reply = await self.judge.answer(ask)
        finally:
            self._asking -= 1
        self.tally.usage += reply.usage
        if isinstance(reply, Unjudged):
            self.tally.errors[reply.reason] += 1
            self.tally.details.setdefault(reply.reason, reply.detail)
        else:
            self.tally.answered += 1
        if self.limiter and self._asking > self.limiter.in_flight:
            # Those who wait at the limiter were let go when there was money left; there may be none by now.
            self._check_budget()
        return reply

    def _check_budget(self) -> None:
        if not (self.budget.is_unlimited or self.tally.stopped):
            elapsed = asyncio.get_running_loop().time() - self._started
            in_flight = self.limiter.in_flight if self.limiter else self._asking
            if reason := self.budget.exceeded(self._spent(), elapsed, in_flight, self._silent()):
                self.stop(reason)

    def _stop_at_deadline(self) -> asyncio.TimerHandle | None:
        seconds = self.budget.max_seconds
        if seconds is None:
            return None
        reason = self.budget.exceeded(Usage(), seconds) or ""
        return asyncio.get_running_loop().call_later(max(0.0, seconds - self.budget.passed), self.stop, reason)


async def _next(source: Iterator[Row] | AsyncIterator[Row]) -> Row | None:
    return next(source, None) if isinstance(source, Iterator) else await anext(source, None)


class _Unordered:
    """Passes results on as they complete."""

    def __init__(self, hand_over: Callable[[int, Sample, Verdict], None]) -> None:
        self._hand_over = hand_over

    async def room(self) -> None:
        """Never waits: nothing is buffered."""

    def take(self) -> int:
        return 0

    def settle(self, place: int, result: tuple[int, Sample, Verdict] | None) -> None:
        if result:
            self._hand_over(*result)


class _Ordered:
    """Passes results on in input order, buffering a bounded window of early ones."""

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
