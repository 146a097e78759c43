"""The limiter that finds its own limit, and the pace."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from arrivals import most_in_a_second
from endpoint import Loopback, Say, Status
from steelyard.engine.workers import BURST_SECONDS
from steelyard.judges.chat import ChatJudge
from steelyard.judges.limiter import AdaptiveLimiter, Limiter, Limits, Pace
from steelyard.prompts import Prompts
from steelyard.records import Ask
from steelyard.tasks import SplitData, SplitReply

NOTHING = {"atoms": []}


def ask(number: int = 0) -> Ask:
    return Ask(
        task="atomic.split", language="en", data=SplitData(question=f"{number}?", answer="Yes."), reply=SplitReply
    )


async def use(limiter: Limiter, calls: int, then: str) -> None:
    """So many calls through the limiter, each as slow as one turn of the loop, all ending the same way."""

    async def call() -> None:
        async with limiter.call():
            await asyncio.sleep(0)
        getattr(limiter, then)()

    await asyncio.gather(*(call() for _ in range(calls)))


async def test_it_doubles_until_the_first_overload() -> None:
    """While nothing is refused, every limit's worth of answers doubles the limit, up to the ceiling."""
    limiter = AdaptiveLimiter(start=4, ceiling=32)
    await use(limiter, 400, "eased")
    assert limiter.limit == 32
    assert limiter.peak <= 32


async def test_an_overload_halves_it_once() -> None:
    """Calls that were in flight at the cut do not cut again."""
    limiter = AdaptiveLimiter(start=16)
    for _ in range(16):
        await limiter.enter()
    for _ in range(16):
        limiter.overloaded()
        limiter.leave()
    assert limiter.limit == 8


async def test_it_grows_slowly_after_an_overload() -> None:
    """Once the endpoint has complained, the limit creeps up by one."""
    limiter = AdaptiveLimiter(start=16)
    limiter.overloaded()
    assert limiter.limit == 8
    await use(limiter, 40, "eased")
    assert 9 <= limiter.limit <= 12


async def test_unused_room_proves_nothing() -> None:
    """One call at a time never raises the limit: nobody has tried more."""
    limiter = AdaptiveLimiter(start=4)
    for _ in range(50):
        await use(limiter, 1, "eased")
    assert limiter.limit == 4


async def test_a_held_gate_lets_nobody_in_until_its_time() -> None:
    """The endpoint said when there is room again; until then all calls wait."""
    limiter = Limiter(4)
    loop = asyncio.get_running_loop()
    began = loop.time()
    limiter.hold(0.1)
    async with limiter.call():
        assert loop.time() - began >= 0.09


async def test_a_fixed_gate_stays_what_the_user_said() -> None:
    """With --concurrency the limit neither grows nor shrinks."""
    limiter = Limiter(5)
    await use(limiter, 100, "eased")
    limiter.overloaded()
    assert limiter.limit == 5


async def test_the_endpoints_complaint_reaches_the_gate() -> None:
    """A 429 from a real server halves the adaptive limit, and the call is answered in the end."""
    limiter = AdaptiveLimiter(start=8)
    with Loopback(NOTHING) as server:
        server.script(Status(429, headers={"Retry-After": "0"}), Say(NOTHING))
        judge = ChatJudge(server.endpoint(backoff=0.01), Prompts.shipped(), limiter=limiter)
        reply = await judge.answer(ask())
        await judge.aclose()
    assert reply.data.atoms == []
    assert limiter.limit == 4


async def test_rate_limit_headers_hold_the_gate() -> None:
    """`remaining: 0` with a reset time stops further calls before the server has to refuse them."""
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "150ms"}
    limiter = Limiter(8)
    with Loopback(NOTHING) as server:
        server.script(Status(500, headers=headers), Say(NOTHING))
        judge = ChatJudge(server.endpoint(backoff=0.0), Prompts.shipped(), limiter=limiter)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await judge.answer(ask())
        await judge.aclose()
    assert loop.time() - began >= 0.14


async def test_requests_are_paced() -> None:
    """600 requests a minute are ten a second: fifteen calls cannot leave at once."""
    limiter = Limits(concurrency=20, requests_per_minute=600).limiter()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(limiter.enter() for _ in range(15)))
    assert 0.4 <= loop.time() - began <= 2.0


async def test_tokens_are_paced_even_when_one_call_exceeds_the_bucket() -> None:
    """6,000 tokens a minute are a hundred a second; after a call of 150 the next waits until they are paid for."""
    limiter = Limits(concurrency=20, tokens_per_minute=6000).limiter()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await limiter.enter(600)
    await limiter.enter(600)
    assert 0.4 <= loop.time() - began <= 2.0


class StallingLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own: time passes only where it waits, and where it stands still for a while, as on a
    machine that is busy with something else."""

    def __init__(self, chance: random.Random, stalls: float) -> None:
        super().__init__()
        self._now, self._chance, self._stalls = 0.0, chance, stalls
        select = self._selector.select

        def pass_time(timeout: float | None = None) -> object:
            self._now += (timeout or 0.0) + (chance.random() * stalls if chance.random() < 0.02 else 0.0)
            return select(0)

        self._selector.select = pass_time

    def time(self) -> float:
        return self._now


def departures(seed: int, stalls: float, rate: float = 25.0, calls: int = 1500) -> list[float]:
    """When calls leave one worker whose loop stands still now and then, before an endpoint that does so, too."""
    chance, times = random.Random(seed), list[float]()
    loop = StallingLoop(chance, stalls)
    limiter = AdaptiveLimiter()
    limiter.pace = Pace(60 * rate, None, BURST_SECONDS)

    async def call() -> None:
        async with limiter.call():
            times.append(loop.time())
            # For ten seconds of each minute nothing is answered.
            silent = 10 - loop.time() % 60
            await asyncio.sleep(0.15 + max(0.0, silent))
        limiter.eased()

    async def scenario() -> None:
        await asyncio.gather(*(call() for _ in range(calls)))

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
    return times


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.5, 3.0]))
@example(1, 3.0)
@settings(max_examples=20, deadline=None)
def test_no_second_has_more_calls_than_its_share(seed: int, stalls: float) -> None:
    """Whoever stands still, the worker or the endpoint: what was missed is not made up for in a burst. Four workers
    with 25 calls a second each stay below 105."""
    times = departures(seed, stalls)
    assert len(times) == 1500
    assert most_in_a_second(times) <= 26


def test_a_share_is_used() -> None:
    """Small delays of a busy machine do not lower the rate."""
    times = [at for at in departures(1, 0.05) if at % 60 > 15 and at < 60]
    assert (len(times) - 1) / (times[-1] - times[0]) >= 24.5


def test_limits_make_the_gate_they_describe() -> None:
    """A fixed number gives a fixed limiter; none gives one that adapts; pace only where it is asked for."""
    assert type(Limits(concurrency=7).limiter()) is Limiter
    assert isinstance(Limits().limiter(), AdaptiveLimiter)
    assert Limits().limiter().pace is None
    assert Limits(requests_per_minute=10).limiter().pace is not None
    with pytest.raises(ValidationError):
        Limits(concurrency=0)
