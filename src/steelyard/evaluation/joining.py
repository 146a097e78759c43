"""From a machine's settings to a worker of a run: what `steelyard worker` starts with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from steelyard.engine.runs import check_ready
from steelyard.engine.workers import Worker
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limiter, Limits
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.settings import Settings

if TYPE_CHECKING:
    from steelyard.store import Store, StoreLocation


class Joined(NamedTuple):
    """A worker with its judge, which whoever joined closes in the end, and the limiter of its calls."""

    worker: Worker
    judge: Judge
    limiter: Limiter


def join_run(
    settings: Settings, prompts: Prompts, store: Store, run: str, location: StoreLocation | None = None
) -> Joined:
    """A worker of this run, refused if it would judge otherwise than the run began. `prompts` are all that the user
    has; `location` is where `recorded:RUN` looks for the run."""
    row, quota = store.run(run), store.quota(run)
    known = prompts.with_texts(get_protocol(row.protocol).prompts)
    # Its share of the run's limits comes later; without any, each worker finds out what the endpoint bears.
    limits = Limits(
        concurrency=(quota.concurrency if quota else None) or settings.run.concurrency,
        requests_per_minute=settings.run.requests_per_minute,
        tokens_per_minute=settings.run.tokens_per_minute,
    )
    limiter = limits.limiter()
    factory = JudgeFactory(settings, known, limiter, location)
    judge = factory.judge(row.manifest.get("judge_spec") or None, row.manifest.get("together", {}))
    check_ready(judge)
    return Joined(Worker(store, row, judge, known, limiter, limits.samples_at_once), judge, limiter)
