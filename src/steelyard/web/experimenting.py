"""Experiments inside the viewer, of the settings file or composed here: which of their runs there are, what the others
would take, and beginning them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from steelyard.engine import runs
from steelyard.engine.estimate import estimate, standing_in
from steelyard.engine.inputs import Input
from steelyard.engine.sets import StoredSet
from steelyard.engine.templates import check_judge
from steelyard.errors import ConfigError, FormRefused, InputError, RunInUse
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limiter, Limits
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.protocols.rubric import inline
from steelyard.records import Record
from steelyard.store import RunIdentity, RunRow, Store, StoredExperiment
from steelyard.store.set_table import AT
from steelyard.trust.experiments import Combination, combinations, find_run, open_run, plan
from steelyard.web import actions
from steelyard.web.jobs import PreparedRun
from steelyard.web.uploads import forget_unused
from steelyard.web.viewer import Viewer

MOST_COMBINATIONS = 200


class SetVersionNamed(Record):
    """A version of a set, by numbers."""

    id: int
    version: int


class ExperimentDesign(Record):
    """What was composed: every combination of its data, protocols, judges and variants is one run."""

    sets: tuple[SetVersionNamed, ...] = ()
    files: tuple[str, ...] = Field(default=(), description="uploads")
    protocols: tuple[str, ...] = ()
    rubric: str = ""
    judges: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, str]] = Field(default_factory=dict, description="variants, by name")
    fields: Mapping[str, str] = Field(default_factory=dict)
    encoding: str = "utf-8"


@dataclass(frozen=True)
class ExperimentPlan:
    """An experiment, wherever it is written down. `combinations` reads its data through a store."""

    name: str
    combinations: Callable[[Store], list[Combination]]
    stored: StoredExperiment | None = None
    """None: it is one of the settings file, and its runs are of any project."""


def of_settings(viewer: Viewer, name: str) -> ExperimentPlan:
    return ExperimentPlan(name, lambda _: plan(viewer.config, name))


def composed(viewer: Viewer, stored: StoredExperiment) -> ExperimentPlan:
    design = ExperimentDesign.model_validate_json(stored.design)
    return ExperimentPlan(stored.name, lambda store: designed(viewer, store, design, stored.project), stored)


def designed(viewer: Viewer, store: Store, design: ExperimentDesign, project: str) -> list[Combination]:
    """Every combination of a design. Whatever is wrong with one of them is said before any is judged."""
    protocols = [get_protocol(inline(design.rubric))] if design.rubric else []
    protocols = [*(viewer.config.protocol(name, paths=False) for name in design.protocols), *protocols]
    judges = [actions.judge_name(viewer.config, name) for name in design.judges]
    n = (len(design.sets) + len(design.files)) * len(protocols) * len(judges) * max(1, len(design.options))
    if not n:
        problem = "choose at least one set or file, one protocol and one judge"
        raise FormRefused(problem, "empty_experiment", field="data")
    if n > MOST_COMBINATIONS:
        problem = f"an experiment has at most {MOST_COMBINATIONS} runs, and this would have {n:,}"
        raise FormRefused(problem, "large_experiment", most=MOST_COMBINATIONS, n=f"{n:,}")
    return combinations(viewer.config, protocols, _data(store, design, project), judges, design.options)


def _data(store: Store, design: ExperimentDesign, project: str) -> dict[str, Input]:
    found: dict[str, Input] = {}
    for named in design.sets:
        chosen = store.sample_set(named.id)
        if chosen.project != project:
            problem = f"the set {chosen.name!r} belongs to another project than the experiment"
            raise FormRefused(problem, "set_elsewhere", field="data", name=chosen.name)
        found[f"{chosen.name}{AT}{named.version}"] = Input([], given=StoredSet(store, chosen, named.version))
    for file in map(Path, design.files):
        if not file.is_file():
            raise InputError("is not there any more; compose the experiment anew", file=file.name)
        title, n = file.name, 1
        while title in found:
            n += 1
            title = f"{file.name} ({n})"
        found[title] = Input([str(file)], design.fields, design.encoding)
    return found


class FoundRun(NamedTuple):
    """A combination, and the run that came about in this way; none where it was not begun."""

    wanted: Combination
    row: RunRow | None


def found_runs(viewer: Viewer, store: Store, planned: ExperimentPlan, project: str | None) -> list[FoundRun]:
    """Every combination of an experiment with its run, of this project or, where none is named, of any."""
    found = []
    for wanted in planned.combinations(store):
        with _judged(viewer, wanted) as (judge, _, _, prompts):
            found.append(FoundRun(wanted, find_run(store, wanted, judge, prompts, project)))
    return found


def begin(viewer: Viewer, planned: ExperimentPlan, project: str | None, spending: actions.Spending) -> list[str]:
    """Begin the runs that an experiment lacks and go on with those that are not complete, one after the other; their
    ids. They share one budget. Where one of them cannot begin, none does."""
    identity = RunIdentity(project=actions.project_of(viewer, project))
    with viewer.store() as store:
        known = [(one.row, run_state(viewer, store, one.row)) for one in found_runs(viewer, store, planned, project)]
    for row, state in known:
        if row and state == "running":
            raise RunInUse(f"run {row.id} of this experiment is running")
    budget = spending.budget

    def ready(store: Store, wanted: Combination, row: RunRow | None, state: str) -> Callable[[], PreparedRun]:
        judge, limiter, limits, prompts = actions.judge_and_limiter(viewer, wanted.protocol, wanted.judge)
        runs.check_affordable(judge, budget)
        runs.check_ready(judge)
        check_judge(wanted.protocol, judge)
        conduct = runs.RunSettings(limits.samples_at_once, budget, limiter=limiter)

        def make() -> PreparedRun:
            run = open_run(store, wanted, row, judge, prompts, conduct, identity)
            return PreparedRun(actions.with_total(run), limiter, state == "failed")

        return make

    def making(store: Store) -> list[PreparedRun]:
        wanted = planned.combinations(store)
        left = [(one, *found) for one, found in zip(wanted, known, strict=True) if found[1] != "complete"]
        return [make() for make in [ready(store, *one) for one in left]]

    if viewer.visit:
        viewer.visit.target = f"experiment {planned.name}"[:200]
    return viewer.jobs.begin(making)


def run_state(viewer: Viewer, store: Store, row: RunRow | None) -> str:
    """How far a run is; `pending` where there is none. One that waits for its turn is at work."""
    if row is None:
        return "pending"
    return "running" if viewer.jobs.get(row.id) else runs.state_of(row, store)


class ExpectedCost(Record):
    """What the runs that were not begun would take together."""

    runs: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def expected(viewer: Viewer, planned: ExperimentPlan, pending: Sequence[str]) -> ExpectedCost:
    """Of the combinations of these titles. Gone through with stand-ins: nothing is sent."""

    async def gone_through(store: Store) -> ExpectedCost:
        found = []
        for wanted in planned.combinations(store):
            if wanted.title not in pending:
                continue
            judge, _, _, prompts = actions.judge_and_limiter(viewer, wanted.protocol, wanted.judge)
            try:
                rows, stand_in = wanted.input.rows(wanted.protocol), standing_in(judge, prompts)
                given = wanted.protocol, wanted.options, stand_in, wanted.input.total, actions.LOOKED_AT
                found.append(await estimate(rows, *given))
            finally:
                await judge.aclose()
        costs = [one.cost for one in found]
        return ExpectedCost(
            runs=len(found),
            calls=sum(one.calls for one in found),
            prompt_tokens=sum(one.prompt_tokens for one in found),
            completion_tokens=sum(one.completion_tokens for one in found),
            cost=sum(cost for cost in costs if cost is not None) if None not in costs else None,
        )

    with viewer.whole_store() as store:
        return asyncio.run(gone_through(store))


@contextmanager
def _judged(viewer: Viewer, wanted: Combination) -> Iterator[tuple[Judge, Limiter, Limits, Prompts]]:
    made = actions.judge_and_limiter(viewer, wanted.protocol, wanted.judge)
    try:
        yield made
    finally:
        asyncio.run(made[0].aclose())


# --- its uploads -----------------------------------------------------------------------------------


def forget_experiment(viewer: Viewer, gone: StoredExperiment) -> None:
    """Take away the uploads of an experiment that was deleted, unless something else is made from them."""
    with viewer.whole_store() as store:
        for file in ExperimentDesign.model_validate_json(gone.design).files:
            forget_unused(viewer.uploads, file, store)


def variants_of(text: str, problem: str) -> dict[str, dict[str, str]]:
    """One variant per line: its name, a colon, and options as NAME=VALUE with commas between them."""
    found: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.translate(PUNCTUATION).splitlines(), 1):
        if not line.strip():
            continue
        name, _, rest = (part.strip() for part in line.partition(":"))
        pairs = [pair.partition("=") for pair in rest.split(",") if pair.strip()]
        if not name or name in found or not all(key.strip() and equals for key, equals, _ in pairs):
            raise ConfigError(problem.format(line=number))
        found[name] = {key.strip(): value.strip() for key, _, value in pairs}
    return found


# Chinese is typed with punctuation of its own.
PUNCTUATION = str.maketrans("，：＝", ",:=")
