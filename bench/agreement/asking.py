"""Puts cases to a judge, several at once. With a journal around the judge, a run that was killed goes on."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from agreement.cases import Answer, Case, judging
from steelyard.judges.base import Judge
from steelyard.records import Reply, Unjudged

Progress = Callable[[int, int], None]
Reasons = Counter[str]
"""Why asks were not answered, and how often."""


async def answers_to(
    cases: Sequence[Case], judge: Judge, workers: int, progress: Progress, reasons: Reasons
) -> list[Answer]:
    """What the judge says to all cases, in their order."""
    found: list[list[Answer]] = [[] for _ in cases]
    source = iter(enumerate(cases))
    done = 0

    async def work() -> None:
        nonlocal done
        for at, case in source:
            found[at] = await _answers(case, judge, reasons)
            done += 1
            progress(done, len(cases))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())
    except BaseExceptionGroup as several:
        # A judge that cannot answer at all fails in every worker; once is enough to be told.
        raise several.exceptions[0] from None
    return [answer for answers in found for answer in answers]


async def _answers(case: Case, judge: Judge, reasons: Reasons) -> list[Answer]:
    rounds = judging(case)
    try:
        asks = next(rounds)
        while True:
            replies: list[Reply | Unjudged] = [await judge.answer(ask) for ask in asks]
            reasons.update(reply.reason for reply in replies if isinstance(reply, Unjudged))
            asks = rounds.send(replies)
    except StopIteration as finished:
        answers: list[Answer] = finished.value
        return answers


def line_of_progress(name: str, every: float = 5.0) -> Progress:
    """Says now and then on stderr how far a set is."""
    began = last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            left = (total - done) * (now - began) / done
            print(f"  {name}: {done} of {total}, about {left / 60:.0f} min left", file=sys.stderr, flush=True)

    return show
