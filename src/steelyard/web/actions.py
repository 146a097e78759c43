"""Actions on runs, for pages and API alike: start, resume, retry, stop, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from steelyard.engine import runs
from steelyard.engine.estimate import RunEstimate, estimate, standing_in
from steelyard.engine.inputs import Input
from steelyard.engine.runner import Budget
from steelyard.engine.sets import StoredSet
from steelyard.engine.templates import PromptTemplate, check_judge, protocol_of_run, templated
from steelyard.engine.workers import WorkerShown, rows_queued, workers_shown
from steelyard.errors import ConfigError, RunInUse
from steelyard.evaluation import dated, factory
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limiter, Limits
from steelyard.judges.models import ModelCache
from steelyard.judges.models.verifiers import VerifierCache
from steelyard.prompts import Prompts
from steelyard.protocols import Protocol, get_protocol
from steelyard.protocols.common import Options
from steelyard.records import Record
from steelyard.samples import count_samples, takes_names
from steelyard.settings import Settings
from steelyard.store import RunIdentity, RunRow, SampleSet, Store
from steelyard.store.set_table import AT
from steelyard.web.jobs import PreparedRun, RunProgress
from steelyard.web.uploads import check_readable, forget, forget_run
from steelyard.web.viewer import Viewer

BY_HAND = "stopped in the viewer"
# How many samples a page goes through for its estimate: each costs one or two milliseconds, and somebody waits.
LOOKED_AT = 40


class RunRequest(Record):
    """How samples are to be judged."""

    protocol: str = Field(description="a name of GET /protocols")
    judge: str | None = Field(default=None, description="a name of GET /judges; null: the default one")
    options: Mapping[str, Any] = Field(default_factory=dict, description="options of the protocol")
    fields: Mapping[str, str] = Field(default_factory=dict, description="where fields are found: field → column")
    project: str | None = Field(default=None, max_length=200, description="the project that the run belongs to")
    template: str | None = Field(default=None, description="the text of a judge prompt of your own")
    fence: bool = Field(default=False, description="whether texts in it stand between tags with a code")
    importer: str | None = Field(
        default=None, description="the tool that wrote the file or the samples; null: told from their shape"
    )
    called: RunIdentity = Field(
        default_factory=RunIdentity, description="what the run is called; its project is `project`"
    )


class Spending(Record):
    """When a run stops by itself."""

    max_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="US dollars")
    max_tokens: int | None = Field(default=None, ge=0)
    max_seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def budget(self) -> Budget:
        return Budget(self.max_cost, self.max_tokens, self.max_seconds)


def judge_names(config: Settings) -> list[str]:
    """The judges that may be named over HTTP: the default, the user's own, installed ones and the offline ones.

    Nothing that names a file or a model of the caller's choice.
    """
    can_be_local = find_spec("xllamacpp") and ModelCache.of_user(config.environment).records()
    pulled = VerifierCache.of_user(config.environment).records()
    offline = ["embedded", *(["local"] if can_be_local else []), *(f"verifier:{record.name}" for record in pulled)]
    return list(dict.fromkeys([config.choose(None).name, *factory.judge_names(config), *offline]))


def judge_name(config: Settings, name: str | None) -> str:
    """The judge to take; one that is not offered is refused."""
    known = judge_names(config)
    if name and name not in known:
        raise ConfigError(f"there is no judge {name!r} here; there are {', '.join(known)}")
    return name or known[0]


def chosen_importer(name: str | None) -> str | None:
    """The importer to take; one whose sources are names would read from elsewhere than the upload."""
    if name and takes_names(name):
        raise ConfigError(f"{name} reads datasets by name, which is not offered over HTTP; send the rows")
    return name or None


def prepared(viewer: Viewer, how: RunRequest) -> tuple[Protocol, Options]:
    """The protocol with its options: those of the settings file, then the given ones, with today's date."""
    if how.template:
        protocol = templated(
            get_protocol(how.protocol, paths=False), PromptTemplate(how.template, "of the request", how.fence)
        )
    else:
        protocol = viewer.config.protocol(how.protocol, paths=False)
    from_file = viewer.config.options.get(protocol.family, {})
    return protocol, protocol.parse_options(dated(protocol, {**from_file, **how.options}))


def judge_and_limiter(
    viewer: Viewer,
    protocol: Protocol,
    name: str,
    together: Mapping[str, Any] | None = None,
    edited: Mapping[str, str] | None = None,
) -> tuple[Judge, Limiter, Limits, Prompts]:
    """The judge with what its calls go through; `together` is how a run said that several judge, `edited` the prompts
    (source → text) that are to be tried."""
    settings = viewer.config.run
    limits = Limits(
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
    limiter, prompts = limits.limiter(), viewer.config.prompts.with_texts(protocol.prompts).with_texts(edited or {})
    made = JudgeFactory(viewer.config, prompts, limiter, viewer.store_location)
    return made.judge(name, together), limiter, limits, prompts


# --- starting and going on -------------------------------------------------------------------------


class SetSource(NamedTuple):
    """A version of a set that a run is made from."""

    found: SampleSet
    version: int

    @property
    def name(self) -> str:
        return f"{self.found.name}{AT}{self.version}"

    def input(self, store: Store) -> Input:
        return Input([], given=StoredSet(store, self.found, self.version))


def start(
    viewer: Viewer,
    how: RunRequest,
    source: Path | SetSource,
    *,
    spending: Spending | None = None,
    encoding: str = "utf-8",
    format: str | None = None,
    choosy: bool = True,
) -> str:
    """Begin a run over a file that was kept, or over a set; its id. If it cannot begin, the file goes.

    A `choosy` caller wants no run over a file without a sample; others find its rows among the bad ones.
    """
    try:
        return start_together(
            viewer, [how], source, spending=spending, encoding=encoding, format=format, choosy=choosy
        )[0]
    except BaseException:
        if isinstance(source, Path):
            forget(viewer.uploads, source)
        raise


def start_together(
    viewer: Viewer,
    hows: Sequence[RunRequest],
    source: Path | SetSource,
    *,
    spending: Spending | None = None,
    encoding: str = "utf-8",
    format: str | None = None,
    choosy: bool = True,
) -> list[str]:
    """Begin runs that judge the same samples by several protocols, one after the other; their ids. Where one of them
    cannot begin, none is made."""
    spending = spending or Spending()
    project = project_of(viewer, hows[0].project)
    group = runs.new_run_id() if len(hows) > 1 else None

    def ready(store: Store, how: RunRequest) -> Callable[[], PreparedRun]:
        protocol, options = prepared(viewer, how)
        name = judge_name(viewer.config, how.judge)
        if isinstance(source, SetSource):
            data = source.input(store)
        else:
            data = Input([str(source)], how.fields, encoding, format, importer=chosen_importer(how.importer))
        data.check(protocol)
        if choosy:
            check_readable(data, protocol)
        judge, limiter, limits, prompts = judge_and_limiter(viewer, protocol, name)
        budget = spending.budget
        runs.check_affordable(judge, budget)
        runs.check_ready(judge)
        check_judge(protocol, judge)
        conduct = runs.RunSettings(limits.samples_at_once, budget, limiter=limiter, keeps_unreadable=True)
        identity = how.called.model_copy(update={"project": project})

        def make() -> PreparedRun:
            run = runs.start(store, protocol, options, judge, name, prompts, data, conduct, None, identity, group)
            return PreparedRun(with_total(run), limiter)

        return make

    def making(store: Store) -> list[PreparedRun]:
        made = [make() for make in [ready(store, how) for how in hows]]
        if viewer.visit:
            viewer.visit.target = ", ".join(one.run.row.id for one in made)
        return made

    return viewer.jobs.begin(making)


def project_of(viewer: Viewer, given: str | None) -> str:
    """The project that a new run belongs to, in which whoever asks may start runs."""
    return viewer.visit.project_of_new_run(given) if viewer.visit else given or ""


class Expected(Record):
    """The estimate of a run, and why its judge cannot begin."""

    estimate: RunEstimate
    problem: str = ""


async def expected(viewer: Viewer, how: RunRequest, data: Input) -> Expected:
    """Estimate a run with stand-in replies; nothing is sent."""
    protocol, options = prepared(viewer, how)
    judge, _, _, prompts = judge_and_limiter(viewer, protocol, judge_name(viewer.config, how.judge))
    problem = ""
    try:
        try:
            runs.check_ready(judge)
        except ConfigError as error:
            problem = str(error)
        found = await estimate(
            data.rows(protocol), protocol, options, standing_in(judge, prompts), data.total, LOOKED_AT
        )
    finally:
        await judge.aclose()
    return Expected(estimate=found, problem=problem)


def continue_run(viewer: Viewer, name: str, *, retry: bool = False) -> str:
    """Resume a run, or ask again for what failed; its id."""
    with viewer.store() as store:
        row = store.run(name)
    if viewer.jobs.get(row.id):
        raise RunInUse(f"run {row.id} is already running")

    def making(store: Store) -> list[PreparedRun]:
        protocol = protocol_of_run(row.protocol, row.manifest)
        name, together = _judge_of(viewer.config, row), row.manifest.get("together", {})
        judge, limiter, limits, prompts = judge_and_limiter(viewer, protocol, name, together)
        conduct = runs.RunSettings(limits.samples_at_once, limiter=limiter)
        return [PreparedRun(with_total(runs.continue_(store, row.id, judge, prompts, conduct)), limiter, retry)]

    return viewer.jobs.begin(making)[0]


def _judge_of(config: Settings, row: RunRow) -> str:
    """The judge that a run began with. A run may come from another machine, so what it names is not taken on trust."""
    name = str(row.manifest.get("judge_spec") or "")
    if factory.is_provider(name) or name in judge_names(config):
        return name
    raise ConfigError(
        f"run {row.id} was judged by {name or row.judge}, which can only be named on the command line: "
        f"steelyard resume {row.id}"
    )


def with_total(run: runs.Run) -> runs.Run:
    """The run, which knows how many samples it is over, where that can be told."""
    run.tally.total = run.data.total
    return run


# --- ending ----------------------------------------------------------------------------------------


def stop(viewer: Viewer, name: str) -> RunProgress:
    """Stop a run politely: what is in flight is finished and kept."""
    with viewer.store() as store:
        row = store.run(name)
        if not viewer.jobs.stop(row.id, BY_HAND) and store.in_use(row.id):
            raise RunInUse(f"run {row.id} is running in another process; stop it there with Ctrl-C")
        return progress_of(viewer, store, row)


def delete(viewer: Viewer, name: str) -> str:
    """Delete a run with its samples and verdicts. The judge's replies stay, and so do labels by people."""
    with viewer.store() as store:
        row = store.run(name)
        if viewer.jobs.get(row.id):
            raise RunInUse(f"run {row.id} is running; stop it first")
        store.delete_run(row.id)
    with viewer.whole_store() as store:  # a run of another project may have been made from the same file
        forget_run(viewer.uploads, row, store)
    viewer.jobs.problems.pop(row.id, None)
    return row.id


# --- how far ---------------------------------------------------------------------------------------


def progress_of(viewer: Viewer, store: Store, row: RunRow) -> RunProgress:
    """The progress of a run, in this process or another."""
    if job := viewer.jobs.get(row.id):
        return job.progress()
    counts, state = store.judged(row.id), runs.state_of(row, store)
    # Only of a run that a process of this machine works on: what others name is not looked for here.
    total = rows_queued(store, row.id) or (
        _total(tuple(_files(row)), row.manifest.get("format"), row.manifest.get("importer"))
        if state == "running"
        else None
    )
    problem = viewer.jobs.problems.get(row.id) or row.manifest.get("stopped")
    workers = workers_shown(store, row.id) if state == "running" else ()
    return RunProgress(
        id=row.id,
        state=state,
        problem=str(problem) if problem and state in ("stopped", "failed") else None,
        done=sum(counts.values()),
        total=total,
        bad_rows=len(store.bad_rows(row.id)),
        judged=counts.get("judged", 0),
        partial=counts.get("partial", 0),
        failed=counts.get("failed", 0),
        workers=workers,
        **_sums(workers),
    )


def _sums(workers: Sequence[WorkerShown]) -> dict[str, Any]:
    if not workers:
        return {}
    parts = ("calls", "prompt_tokens", "completion_tokens", "in_flight")
    known = [worker.cost for worker in workers if worker.cost is not None]
    return {
        **{part: sum(getattr(worker, part) for worker in workers) for part in parts},
        "cost": sum(known) if known else None,
    }


def _files(row: RunRow) -> Iterator[str]:
    return (str(data.get("path", "")) for data in row.manifest.get("data", ()))


@lru_cache(maxsize=64)
def _total(files: tuple[str, ...], format: str | None, importer: str | None) -> int | None:
    return count_samples(files, format, importer) if files else None
