"""Experiments of the settings file inside the viewer: which of their runs there are, and beginning what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from steelyard.engine import runs
from steelyard.engine.runner import Budget
from steelyard.engine.templates import check_judge
from steelyard.errors import RunInUse
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limiter, Limits
from steelyard.prompts import Prompts
from steelyard.store import RunIdentity, RunRow, Store
from steelyard.trust.experiments import Combination, find_run, open_run, plan
from steelyard.web import actions
from steelyard.web.jobs import PreparedRun
from steelyard.web.viewer import Viewer


class FoundRun(NamedTuple):
    """A combination, and the run that came about in this way; none where it was not begun."""

    wanted: Combination
    row: RunRow | None


def found_runs(viewer: Viewer, store: Store, name: str, project: str | None) -> list[FoundRun]:
    """Every combination of an experiment with its run, of this project or, where none is named, of any."""
    found = []
    for wanted in plan(viewer.config, name):
        with _judged(viewer, wanted) as (judge, _, _, prompts):
            found.append(FoundRun(wanted, find_run(store, wanted, judge, prompts, project)))
    return found


def begin(viewer: Viewer, name: str, project: str | None) -> list[str]:
    """Begin the runs that an experiment lacks and go on with those that are not complete, one after the other; their
    ids. Where one of them cannot begin, none does."""
    identity = RunIdentity(project=actions.project_of(viewer, project))
    with viewer.store() as store:
        known = [(one, run_state(viewer, store, one.row)) for one in found_runs(viewer, store, name, project)]
    for one, state in known:
        if one.row and state == "running":
            raise RunInUse(f"run {one.row.id} of this experiment is running")

    def ready(store: Store, one: FoundRun, state: str) -> Callable[[], PreparedRun]:
        wanted = one.wanted
        judge, limiter, limits, prompts = actions.judge_and_limiter(viewer, wanted.protocol, wanted.judge)
        runs.check_ready(judge)
        check_judge(wanted.protocol, judge)
        conduct = runs.RunSettings(limits.samples_at_once, Budget(), limiter=limiter)

        def make() -> PreparedRun:
            run = open_run(store, wanted, one.row, judge, prompts, conduct, identity)
            return PreparedRun(actions.with_total(run), limiter, state == "failed")

        return make

    def making(store: Store) -> list[PreparedRun]:
        made = [ready(store, one, state) for one, state in known if state != "complete"]
        return [make() for make in made]

    if viewer.visit:
        viewer.visit.target = f"experiment {name}"[:200]
    return viewer.jobs.begin(making)


def run_state(viewer: Viewer, store: Store, row: RunRow | None) -> str:
    """How far a run is; `pending` where there is none. One that waits for its turn is at work."""
    if row is None:
        return "pending"
    return "running" if viewer.jobs.get(row.id) else runs.state_of(row, store)


@contextmanager
def _judged(viewer: Viewer, wanted: Combination) -> Iterator[tuple[Judge, Limiter, Limits, Prompts]]:
    made = actions.judge_and_limiter(viewer, wanted.protocol, wanted.judge)
    try:
        yield made
    finally:
        asyncio.run(made[0].aclose())
