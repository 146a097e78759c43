"""What every client shares: what it was told, the samples, the stop-watch, the report.

A client is started as `python run_X.py '{"url": …, "data": …, "concurrency": …, "report": …}'`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOLD: dict[str, Any] = json.loads(sys.argv[1])
URL: str = TOLD["url"]
CONCURRENCY: int = TOLD["concurrency"]
DEADLINE: float = TOLD["deadline"]  # for one attempt, in seconds
# "run"; or "keep", which keeps what is needed to "resume" after a kill.
DOING: str = TOLD.get("doing", "run")
MODEL = "gpt-4o-mini"  # some clients look the model up in a table of their own
KEY = "sk-stub"
os.environ.update(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=URL, OPENAI_API_BASE=URL)
_record: dict[str, Any] = {}
_began = time.perf_counter()


def samples() -> list[dict[str, Any]]:
    with open(TOLD["data"], encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _cpu() -> float:
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


@contextmanager
def measured() -> Iterator[None]:
    """Around the judging itself; imports and set-up come before."""
    began, cpu = time.perf_counter(), _cpu()
    _record["setup_s"] = began - _began
    try:
        yield
    finally:
        _record.update(wall_s=time.perf_counter() - began, cpu_s=_cpu() - cpu)


async def at_once(jobs: Mapping[Any, Callable[[], Awaitable[Any]]]) -> dict[Any, Any]:
    """For libraries that leave running to the user: all jobs, so many at a time; null for what fails."""
    gate = asyncio.Semaphore(CONCURRENCY)

    async def done(job: Callable[[], Awaitable[Any]]) -> Any:
        async with gate:
            try:
                return await job()
            except Exception as error:
                print(repr(error), file=sys.stderr)
                return None

    results = await asyncio.gather(*map(done, jobs.values()))
    return dict(zip(jobs, results, strict=True))


def by_sample(values: Mapping[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    """(sample, metric) → value, regrouped for `report`."""
    grouped: dict[str, dict[str, Any]] = {}
    for (id, metric), value in values.items():
        grouped.setdefault(id, {})[metric] = value
    return grouped


def scores_of(line: dict[str, Any]) -> dict[str, float | None]:
    """The scores of a result line of Steelyard; a sample of which anything is unjudged does not count as scored."""
    judged = line["status"] == "judged"
    return {name: score if judged else None for name, score in line["scores"].items()}


def report(values: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
    """The values by sample and metric; null is a sample that was not scored."""
    plain = {id: {name: _number(value) for name, value in scores.items()} for id, scores in values.items()}
    Path(TOLD["report"]).write_text(json.dumps({**_record, **more, "values": plain}), "utf-8")


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else round(number, 6)
