"""How many calls may be in flight at once."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judges.limiter import Limiter


async def hold(limiter: Limiter, seconds: float = 0.0) -> None:
    async with limiter.call():
        assert limiter.in_flight <= limiter.peak
        await asyncio.sleep(seconds)


@given(st.integers(1, 6), st.integers(0, 20), st.lists(st.integers(0, 19), max_size=10))
def test_the_limit_holds_and_no_slot_is_lost(limit: int, callers: int, cancelled: list[int]) -> None:
    """Whoever is cancelled, and when, the peak stays within the limit and all others get through."""

    async def scenario() -> Limiter:
        limiter = Limiter(limit)
        tasks = [asyncio.create_task(hold(limiter)) for _ in range(callers)]
        for index in cancelled:
            await asyncio.sleep(0)
            if index < len(tasks):
                tasks[index].cancel()
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert all(result is None or isinstance(result, asyncio.CancelledError) for result in results)
        return limiter

    limiter = asyncio.run(scenario())
    assert limiter.peak <= limit
    assert limiter.in_flight == 0


async def test_callers_are_let_in_in_order() -> None:
    """First come, first served; a newcomer does not overtake those who wait."""
    limiter, order = Limiter(1), []

    async def call(number: int) -> None:
        async with limiter.call():
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(call(number) for number in range(20)))
    assert order == list(range(20))


async def test_a_caller_cancelled_as_it_is_let_in_passes_the_slot_on() -> None:
    """The slot that was just handed over is not lost."""
    limiter = Limiter(1)
    await limiter.enter()
    first, second = asyncio.create_task(hold(limiter)), asyncio.create_task(hold(limiter))
    await asyncio.sleep(0)
    limiter.leave()
    first.cancel()
    await asyncio.wait_for(second, 1)
    assert limiter.in_flight == 0


async def test_the_limit_can_change_while_calls_are_in_flight() -> None:
    """A larger limit lets those who wait in at once; a smaller one waits for calls to finish."""
    limiter = Limiter(1)
    tasks = [asyncio.create_task(hold(limiter, 0.02)) for _ in range(4)]
    await asyncio.sleep(0)
    assert limiter.in_flight == 1
    limiter.resize(3)
    assert limiter.in_flight == 3
    limiter.resize(0)
    assert limiter.limit == 1
    await asyncio.gather(*tasks)
    assert (limiter.in_flight, limiter.peak) == (0, 3)


def test_a_gate_that_lets_nobody_through_is_refused() -> None:
    """A limit below one would wait for ever."""
    with pytest.raises(ValueError, match="at least one"):
        Limiter(0)


async def test_an_error_inside_gives_the_slot_back() -> None:
    """A failing call frees its slot."""
    limiter = Limiter(1)
    with pytest.raises(RuntimeError):
        async with limiter.call():
            raise RuntimeError
    assert limiter.in_flight == 0
