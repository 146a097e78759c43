"""Driving samples: in order, a bounded way ahead, within budget, and stopped without losing what was paid for."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from command import process_environment
from steelyard.engine.runner import Budget, Row, Runner, run_to_end
from steelyard.errors import InputError, JudgeError, StoreError
from steelyard.judges.limiter import Limiter, Stopped
from steelyard.protocols import get_protocol
from steelyard.records import Ask, RagSample, Reply, Rounds, Unjudged, Usage, Verdict
from steelyard.tasks import SplitData, SplitReply

ATOMIC = get_protocol("atomic")


def sample(number: int) -> RagSample:
    fact = f"Fact {number} holds."
    return RagSample(id=f"s{number}", question=f"Does fact {number} hold?", answer=fact, references=(fact,))


def number_of(ask: Ask) -> int:
    found = re.search(r"\d+", ask.data.question)  # type: ignore[attr-defined]
    assert found
    return int(found[0])


class Facts:
    """A judge that knows the facts; `delay` says how long it thinks about a sample, `trouble` what goes wrong."""

    name = "facts"

    def __init__(
        self,
        delay: Callable[[int], float] = lambda number: 0.0,
        trouble: Callable[[Ask], Exception | Unjudged | None] = lambda ask: None,
        limiter: Limiter | None = None,
    ) -> None:
        self.delay, self.trouble, self.limiter = delay, trouble, limiter
        self.begun: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if self.limiter:
            async with self.limiter.call():
                return await self._call(ask)
        return await self._call(ask)

    async def _call(self, ask: Ask) -> Reply | Unjudged:
        number = number_of(ask)
        self.begun.append((ask.task, number))
        await asyncio.sleep(self.delay(number))
        self.ended.append((ask.task, number))
        usage = Usage(calls=1, prompt_tokens=90, completion_tokens=10, cached_tokens=5, cost=0.01)
        found = self.trouble(ask)
        if isinstance(found, Exception):
            raise found
        if found is not None:
            return found.model_copy(update={"usage": usage})
        fact = f"Fact {number} holds."
        if ask.task == "atomic.split":
            data: Any = {"atoms": [{"id": 1, "text": fact}]}
        else:
            atom = {"id": 1, "reference": 0, "quote": fact, "label": "correct", "source": "reference", "level": 1}
            data = {"atoms": [atom], "fallback": False}
        return Reply(data=ask.reply.model_validate(data), usage=usage)

    async def aclose(self) -> None:
        """Nothing to give back."""


class Source:
    """Rows that say how far they were read."""

    def __init__(self, count: int) -> None:
        self.count, self.read = count, 0

    def __iter__(self) -> Iterator[Row]:
        while self.read < self.count:
            self.read += 1
            yield self.read - 1, sample(self.read - 1)

    async def was_read(self, count: int) -> None:
        """Wait until so many rows are read, however busy the machine, and then a little for more."""
        for _ in range(3000):
            if self.read >= count:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)


class Kept(list[tuple[int, Verdict]]):
    def __call__(self, seq: int, sample: object, verdict: Verdict) -> None:
        self.append((seq, verdict))

    @property
    def places(self) -> list[int]:
        return [seq for seq, _ in self]


def runner(judge: Any, **settings: Any) -> Runner:
    return Runner(ATOMIC, ATOMIC.parse_options({"date": "2026-03-02"}), judge, **settings)


# --- order and backpressure ---------------------------------------------------------------------------------


async def test_verdicts_come_in_order_however_slow_the_first() -> None:
    """The first sample holds the others' verdicts back, not their judging."""
    judge, kept = Facts(lambda number: 0.1 if number == 0 else 0.0), Kept()
    tally = await runner(judge, workers=4).run(Source(30), kept)
    assert kept.places == list(range(30))
    assert judge.ended.index(("atomic.split", 0)) > judge.ended.index(("atomic.judge", 20))
    assert (tally.done, tally.statuses["judged"], tally.stopped) == (30, 30, None)


async def test_verdicts_can_be_had_as_they_come() -> None:
    """Without `in_order`, whoever is ready is handed over, and nothing waits for the slow one."""
    judge, kept = Facts(lambda number: 0.1 if number == 0 else 0.0), Kept()
    await runner(judge, workers=4, in_order=False, window=2).run(Source(30), kept)
    assert kept.places == [*range(1, 30), 0]


async def test_the_source_is_read_a_window_ahead_at_most() -> None:
    """While the first sample is unsettled, memory holds `window` samples and no more, however long the file."""
    source, blocked = Source(10_000), asyncio.Event()

    class Blocked(Facts):
        async def answer(self, ask: Ask) -> Reply | Unjudged:
            if number_of(ask) == 0:
                await blocked.wait()
            return await super().answer(ask)

    kept = Kept()
    running = asyncio.ensure_future(runner(Blocked(), workers=8, window=50).run(source, kept))
    await source.was_read(50)
    assert (source.read, len(kept)) == (50, 0)
    source.count = 120
    blocked.set()
    await running
    assert kept.places == list(range(120))


async def test_no_more_samples_are_begun_than_there_are_workers() -> None:
    """The source is not drained into tasks."""
    source = Source(1000)
    running = asyncio.ensure_future(runner(Facts(lambda number: 60.0), workers=8).run(source, Kept()))
    await source.was_read(8)
    assert source.read == 8
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_bad_rows_are_counted_and_passed_over() -> None:
    """A row that cannot be read neither stops nor delays the others."""
    bad = InputError("is empty", file="a.jsonl", line=2)
    seen: list[InputError] = []
    kept = Kept()
    tally = await runner(Facts()).run([(0, sample(0)), (1, bad), (2, sample(2))], kept, seen.append)
    assert (kept.places, seen, tally.bad_rows, tally.done) == ([0, 2], [bad], 1, 2)


# --- what it cost -----------------------------------------------------------------------------------------------


async def test_usage_is_summed_by_sample_and_by_run() -> None:
    """Calls, tokens, cached tokens and cost of every ask, also of those that failed."""
    judge = Facts(trouble=lambda ask: Unjudged(reason="timeout") if number_of(ask) == 1 else None)
    kept = Kept()
    tally = await runner(judge).run(Source(3), kept)
    whole = sum((verdict.usage for _, verdict in kept), start=Usage())
    assert kept[0][1].usage == Usage(
        calls=2, prompt_tokens=180, completion_tokens=20, cached_tokens=10, cost=0.01 + 0.01
    )
    assert (whole.calls, tally.usage.calls) == (len(judge.ended), len(judge.ended))
    assert tally.usage.cost == pytest.approx(whole.cost)
    assert tally.errors["timeout"] >= 1
    assert kept[1][1].status == "failed"


@pytest.mark.parametrize(
    ("budget", "said", "calls"),
    [
        (Budget(max_cost=0.05), "--max-cost 0.05 reached", 5),
        (Budget(max_tokens=700), "--max-tokens 700 reached", 7),
        (Budget(max_cost=0.0), "--max-cost 0 reached", 0),
    ],
)
async def test_budgets_stop_cleanly(budget: Budget, said: str, calls: int) -> None:
    """One call at a time ends exactly there; what is unfinished has no verdict."""
    judge, kept = Facts(), Kept()
    tally = await runner(judge, workers=1, budget=budget).run(Source(20), kept)
    assert (tally.stopped, len(judge.begun), len(judge.ended)) == (said, calls, calls)
    assert kept.places == list(range(calls // 2))
    assert all(verdict.status == "judged" for _, verdict in kept)


@pytest.mark.parametrize("limit", ["max_cost", "max_tokens"])
def test_a_budget_that_cannot_be_kept_is_not_pretended(limit: str) -> None:
    """A server that reports no tokens would make every limit endless; the run stops and says why."""
    budget = Budget(**{limit: 5})
    assert budget.exceeded(Usage(), 0.0) is None
    assert f"--{limit.replace('_', '-')} is blind" in (budget.exceeded(Usage(calls=1), 0.0) or "")
    assert budget.exceeded(Usage(calls=1, prompt_tokens=1, cost=0.0), 0.0) is None
    assert Budget(max_seconds=9).exceeded(Usage(calls=1), 0.0) is None


async def test_calls_in_flight_are_part_of_the_budget() -> None:
    """With many calls at once the limit is met about as exactly as with one: they are counted before they end."""
    limiter = Limiter(16)
    judge = Facts(lambda number: 0.01, limiter=limiter)
    tally = await runner(judge, workers=64, limiter=limiter, budget=Budget(max_cost=1.0)).run(Source(1000), Kept())
    assert tally.stopped == "--max-cost 1 reached"
    assert len(judge.begun) == len(judge.ended)
    assert 84 <= len(judge.begun) <= 101


async def test_a_time_limit_does_not_wait_for_the_next_ask() -> None:
    """When all who are at work wait at the limiter, the limit still ends them; the call in flight finishes."""
    limiter = Limiter(1)
    judge, kept = Facts(lambda number: 0.3, limiter=limiter), Kept()
    loop = asyncio.get_running_loop()
    began = loop.time()
    tally = await runner(judge, workers=8, limiter=limiter, budget=Budget(max_seconds=0.1)).run(Source(8), kept)
    assert tally.stopped == "--max-time 0.1s reached"
    assert (len(judge.begun), len(judge.ended)) == (1, 1)
    assert loop.time() - began < 0.6


async def test_a_limit_that_comes_too_late_stops_nothing() -> None:
    """A run that was told to stop when all was in flight, and finished, is complete."""
    kept = Kept()
    driver = runner(Facts(lambda number: 0.01, lambda ask: driver.stop("late") if ask.task == "atomic.judge" else None))
    tally = await driver.run(Source(4), kept)
    assert (tally.stopped, tally.done) == (None, 4)


# --- stopping -----------------------------------------------------------------------------------------------------


async def test_a_polite_stop_finishes_what_is_in_flight_and_no_more() -> None:
    """Asks that wait at the limiter are not sent any more, though they were let go before."""
    limiter = Limiter(2)
    judge, kept = Facts(lambda number: 0.05, limiter=limiter), Kept()
    driver = runner(judge, workers=50, limiter=limiter)
    asyncio.get_running_loop().call_later(0.02, driver.stop, "interrupted")
    tally = await driver.run(Source(100), kept)
    assert tally.stopped == "interrupted"
    assert len(judge.begun) == len(judge.ended) == 2
    assert kept == []


async def test_a_stop_ends_pauses_before_calls() -> None:
    """Nobody waits out a Retry-After or a turn in the pace for a call that will not be made."""
    limiter = Limiter(1)
    waiting = asyncio.ensure_future(limiter.wait(asyncio.sleep(60)))
    await asyncio.sleep(0)
    limiter.close()
    with pytest.raises(Stopped):
        await asyncio.wait_for(waiting, 1)
    with pytest.raises(Stopped):
        await limiter.wait(asyncio.sleep(60))
    with pytest.raises(Stopped):
        async with limiter.call():
            pass


async def test_a_pause_that_is_cancelled_is_cancelled() -> None:
    """A second Ctrl-C is no polite stop, closed limiter or not."""
    limiter = Limiter(1)
    waiting = asyncio.ensure_future(limiter.wait(asyncio.sleep(60)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_unusable_judge_stops_the_run_and_keeps_what_was_in_flight() -> None:
    """The error is raised when the others have been answered; nothing new is asked."""
    judge = Facts(
        lambda number: 0.0 if number == 3 else 0.05,
        trouble=lambda ask: JudgeError("bad key") if number_of(ask) == 3 else None,
    )
    kept = Kept()
    driver = runner(judge, workers=4)
    with pytest.raises(JudgeError, match="bad key"):
        await driver.run(Source(100), kept)
    assert len(judge.begun) == len(judge.ended) == 4
    assert (driver.tally.stopped, kept) == ("bad key", [])


async def test_an_unexpected_failure_is_raised_as_itself_after_the_others() -> None:
    """A slip in one sample's judging is not hidden in a group, and does not throw away the others' answers."""
    judge = Facts(
        lambda number: 0.0 if number == 3 else 0.05,
        trouble=lambda ask: ZeroDivisionError("slip") if number_of(ask) == 3 else None,
    )
    with pytest.raises(ZeroDivisionError, match="slip"):
        await runner(judge, workers=4).run(Source(100), Kept())
    assert len(judge.begun) == len(judge.ended) == 4


async def test_a_failing_store_ends_the_run_at_once() -> None:
    """What cannot be kept is not waited for."""
    judge = Facts(
        lambda number: 0.0 if number == 3 else 30.0,
        trouble=lambda ask: StoreError("disk full") if number_of(ask) == 3 else None,
    )
    with pytest.raises(StoreError, match="disk full"):
        await asyncio.wait_for(runner(judge, workers=4).run(Source(100), Kept()), 5)


async def test_a_source_that_breaks_off() -> None:
    """A file that fails in the middle is an error, after what was begun has been judged."""

    def rows() -> Iterator[Row]:
        yield from Source(3)
        raise InputError("is cut off", file="a.jsonl.gz")

    kept = Kept()
    with pytest.raises(InputError, match="cut off"):
        await runner(Facts(lambda number: 0.02), workers=8).run(rows(), kept)
    assert kept.places == []
    kept.clear()
    with pytest.raises(InputError, match="cut off"):
        await runner(Facts(), workers=1).run(rows(), kept)
    assert kept.places == [0, 1, 2]


# --- memory ---------------------------------------------------------------------------------------------------------


class OneAsk:
    """A protocol as small as can be, so that the runner is what is measured."""

    def rounds(self, sample: RagSample, options: object) -> Rounds:
        data = SplitData(question=sample.question, answer=sample.answer)
        yield [Ask(task="atomic.split", language="en", data=data, reply=SplitReply)]
        return Verdict(id=sample.id, protocol="one", status="judged", scores={})


MEASURE = """
import asyncio, resource, sys
from collections import deque
sys.path.insert(0, "tests")
from test_runner import Facts, OneAsk, Runner, Source
slow_now_and_then = Facts(lambda number: 0.01 if number % 1000 == 0 else 0.0)
slow_now_and_then.begun = slow_now_and_then.ended = deque(maxlen=1)
driver = Runner(OneAsk(), None, slow_now_and_then, workers=32)
tally = asyncio.run(driver.run(Source(int(sys.argv[1])), lambda *_: None))
assert tally.done == int(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_is_the_same_for_thirty_times_the_samples() -> None:
    """30,000 samples need no more than 1.3 times the memory of 1,000."""

    def peak(count: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", MEASURE, str(count)]
        root = process_environment()["PYTHONPATH"].removesuffix("src")
        return subprocess.Popen(command, cwd=root, env=process_environment(), stdout=subprocess.PIPE, text=True)

    small, large = (int(process.communicate(timeout=120)[0]) for process in [peak(1000), peak(30_000)])
    assert large <= 1.3 * small


def test_the_collector_is_left_as_it_was() -> None:
    """A run looks for garbage less often; afterwards, also after a failure, everything is as before."""
    before = gc.get_threshold()

    async def at_work() -> int:
        return gc.get_threshold()[0]

    async def failing() -> None:
        raise JudgeError("no")

    assert run_to_end(at_work()) > before[0]
    assert gc.get_threshold() == before
    with pytest.raises(JudgeError):
        run_to_end(failing())
    assert gc.get_threshold() == before
