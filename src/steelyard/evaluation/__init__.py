"""Evaluation from Python: `evaluate(samples, protocol=…, judge=…)` and what it returns."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from steelyard.engine.runner import Budget, Row, Runner, Tally, run_to_end
from steelyard.engine.templates import PromptTemplate, check_judge, templated
from steelyard.errors import ConfigError, InputError, JudgeError, NoReadableRow, Surface
from steelyard.evaluation.plans import Plan, own_options, sharing
from steelyard.judges.base import Judge, JudgeLike, as_judge
from steelyard.judges.limiter import Limiter, Limits
from steelyard.protocols import DEFAULT, Protocol, check_together, get_protocol
from steelyard.protocols.common import Options
from steelyard.records import Sample, Usage, Verdict
from steelyard.reports.results import AnyPath, Results

if TYPE_CHECKING:
    from steelyard.engine.inputs import Input
    from steelyard.prompts import Prompts

T = TypeVar("T")
Samples = AnyPath | Mapping[str, Any] | Iterable[Any]
"""A path; a table (pandas, polars, pyarrow, Hugging Face); or dicts, records, dataclasses and models."""
Several = list[str] | list[Protocol] | list[str | Protocol] | tuple[str | Protocol, ...]
"""Protocols that judge the same samples."""
OnProgress = Callable[[dict[str, Any]], None]


class EvaluationSettings(TypedDict, total=False):
    """The keyword arguments of `evaluate`."""

    options: Mapping[str, Any] | Options | None
    fields: Mapping[str, str] | None
    encoding: str
    format: str | None
    importer: str | None
    prompts: AnyPath | Sequence[AnyPath]
    template: AnyPath | PromptTemplate | None
    store: AnyPath | None
    name: str | None
    notes: str | None
    tags: Sequence[str]
    meta: Mapping[str, Any] | None
    project: str | None
    max_cost: float | None
    progress: bool | OnProgress
    concurrency: int


@overload
def evaluate(
    samples: Samples,
    protocol: str | Protocol = DEFAULT,
    judge: JudgeLike | str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> Results: ...
@overload
def evaluate(
    samples: Samples,
    protocol: Several,
    judge: JudgeLike | str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> dict[str, Results]: ...
def evaluate(
    samples: Samples,
    protocol: str | Protocol | Several = DEFAULT,
    judge: JudgeLike | str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> Results | dict[str, Results]:
    """Judge samples and return the verdicts.

    Samples are a path, a table (pandas, polars, pyarrow, Hugging Face), or an iterable of dicts, records, dataclasses
    or pydantic models, such as the test cases of ragas and deepeval. `fields` says which column holds what; `encoding`
    and `format` are for files; `importer` names the tool that wrote them, if it is not recognised. Rows that cannot
    be read are in `.bad_rows`; if all are bad, `NoReadableRow` is raised.

    `judge` is a judge, or a name as on the command line, which `prompts` (files or folders) belong to. `template` is a
    judge prompt of your own, a file or a `PromptTemplate`, that is sent instead of the shipped ones. With a `store`,
    replies are kept and nothing is paid for twice; `name`, `notes`, `tags`, `meta` and `project` are what the run is
    called there, and can be edited later. After `max_cost` US dollars no further call is made, and `.stopped` says so.
    `progress` shows a line on standard error, or is called with the state after every sample.

    Several protocols in a list judge the same samples one after the other; what more than one of them asks is asked
    once. Then the results come by protocol.

    A judge that becomes unusable is a `JudgeError`, which has the `results` until then.

    Works inside a notebook too, where an event loop is running already.
    """
    return in_own_loop(lambda: _evaluate(samples, protocol, judge, **settings), judge)


@overload
async def evaluate_async(
    samples: Samples,
    protocol: str | Protocol = DEFAULT,
    judge: JudgeLike | str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> Results: ...
@overload
async def evaluate_async(
    samples: Samples,
    protocol: Several,
    judge: JudgeLike | str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> dict[str, Results]: ...
async def evaluate_async(
    samples: Samples,
    protocol: str | Protocol | Several = DEFAULT,
    judge: JudgeLike | str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> Results | dict[str, Results]:
    """The same as a coroutine, for use inside a running event loop."""
    return await _evaluate(samples, protocol, judge, **settings)


async def _evaluate(
    samples: Samples,
    protocol: str | Protocol | Several,
    judge: JudgeLike | str | None,
    *,
    options: Mapping[str, Any] | Options | None = None,
    fields: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    format: str | None = None,
    importer: str | None = None,
    prompts: AnyPath | Sequence[AnyPath] = (),
    template: AnyPath | PromptTemplate | None = None,
    store: AnyPath | None = None,
    name: str | None = None,
    notes: str | None = None,
    tags: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    project: str | None = None,
    max_cost: float | None = None,
    progress: bool | OnProgress = False,
    concurrency: int = 32,
) -> Results | dict[str, Results]:
    from steelyard.engine.runs import check_affordable, new_run_id

    if max_cost is not None and (isinstance(max_cost, bool) or not isinstance(max_cost, int | float) or max_cost <= 0):
        raise ConfigError(f"max_cost= is a number of US dollars above 0, not {max_cost!r}")
    names = {"name": name, "notes": notes, "tags": tags, "meta": meta, "project": project}
    called = {field: value for field, value in names.items() if value}
    if called and store is None:
        raise ConfigError(f"{next(iter(called))}= is what a run is called in a store; give store= too")
    is_one = isinstance(protocol, str | Protocol)
    protocols = [get_protocol(one) for one in ([protocol] if isinstance(protocol, str | Protocol) else protocol)]
    if not protocols:
        raise ConfigError("protocol= is an empty list; name at least one")
    check_together(protocols)
    if not is_one and (template is not None or isinstance(options, Options)):
        raise ConfigError("template= and Options are those of one protocol, not of several in a list")
    if template is not None:
        given = template if isinstance(template, PromptTemplate) else PromptTemplate.read(template)
        protocols = [templated(protocols[0], given)]
    if isinstance(samples, Iterator) and len(protocols) > 1:
        samples = list(samples)
    said: list[str] = []
    plans = [
        _plan(one, own, samples, fields or {}, encoding, format, importer, said.append)
        for one, own in zip(protocols, own_options(protocols, options), strict=True)
    ]
    if store is not None:
        # A run is told apart from others by its data, so all of it has to be there first.
        plans = [plan.in_memory() for plan in plans]
    texts = {source: text for one in protocols for source, text in one.prompts.items()}
    asked = chosen_judge(judge, concurrency, texts, prompts)
    budget = Budget(max_cost, surface=Surface.python)
    found: dict[str, Results] = {}
    try:
        for one in protocols:
            check_judge(one, asked.judge)
        check_affordable(asked.judge, budget)
        if store is None:
            asked = replace(asked, judge=sharing(asked.judge, protocols))
        group = None if is_one else new_run_id()
        for plan in plans:
            if store is None:
                results = await _judge_in_memory(plan, asked, budget, progress, said)
            else:
                results = await _judge_in_store(store, called, group, plan, asked, budget, progress, said)
            found[plan.protocol.name] = results
            budget = budget.after(sum((verdict.usage for verdict in results), start=Usage()), 0.0)
            if results.stopped:
                break
    finally:
        if not isinstance(judge, JudgeLike):
            await asked.judge.aclose()
    return next(iter(found.values())) if is_one else found


def _plan(
    protocol: Protocol,
    options: Mapping[str, Any] | Options,
    samples: Samples,
    fields: Mapping[str, str],
    encoding: str,
    format: str | None,
    importer: str | None,
    on_note: Callable[[str], None],
) -> Plan:
    chosen = options if isinstance(options, Options) else protocol.parse_options(dated(protocol, options))
    is_dated = isinstance(options, Options) or bool(options.get("date"))
    data = input_of(samples, protocol, fields, encoding, format, on_note, importer=importer)
    return Plan(protocol, chosen, is_dated, data)


@dataclass(frozen=True)
class ChosenJudge:
    """The judge that a user passed or named, with its concurrency. `spec` is its name, if it has one."""

    judge: Judge
    spec: str
    prompts: Prompts
    workers: int
    limiter: Limiter | None


def chosen_judge(
    judge: JudgeLike | str | None,
    concurrency: int,
    texts: Mapping[str, str] = MappingProxyType({}),
    prompts: AnyPath | Sequence[AnyPath] = (),
) -> ChosenJudge:
    """From what a user passed; a named judge knows the shipped prompts, `texts` of the protocol, and the user's own."""
    from steelyard.evaluation.factory import JudgeFactory
    from steelyard.prompts import Prompts
    from steelyard.settings import Settings

    files = [Path(path) for path in ([prompts] if isinstance(prompts, str | PathLike) else prompts)]
    if isinstance(judge, JudgeLike):
        if files:
            raise ConfigError("prompts= belongs to a judge that is named; this one was made with its own")
        # One that is passed in may only be held back by its callers.
        return ChosenJudge(as_judge(judge), "", Prompts.shipped().with_texts(texts), concurrency, None)
    if judge is not None and not isinstance(judge, str):
        raise ConfigError(f"{type(judge).__name__} is not a judge: it needs a name, answer(ask) and aclose()")
    settings = Settings.load(surface=Surface.python)
    limits = Limits(concurrency=concurrency)
    limiter, known = limits.limiter(), settings.prompts.with_texts(texts).with_files(files)
    spec = settings.choose(judge).name
    made = JudgeFactory(settings, known, limiter).judge(spec)
    return ChosenJudge(made, spec, known, limits.samples_at_once, limiter)


async def _judge_in_memory(
    plan: Plan, asked: ChosenJudge, budget: Budget, progress: bool | OnProgress, notes: list[str]
) -> Results:
    """Judge without a store."""
    protocol, data = plan.protocol, plan.data
    judged: list[tuple[Sample, Verdict]] = []
    bad_rows: list[InputError] = []
    runner = Runner(protocol, plan.options, asked.judge, workers=asked.workers, budget=budget, limiter=asked.limiter)
    runner.tally.total = data.total
    with _shown(progress, runner.tally, asked.limiter) as tick:

        def keep(_: int, sample: Sample, verdict: Verdict) -> None:
            judged.append((sample, verdict))
            tick()

        try:
            tally = await runner.run(data.rows(protocol), keep, bad_rows.append)
        except JudgeError as error:
            # Nothing is kept elsewhere, and it was paid for.
            error.results = Results(protocol.name, judged, bad_rows, stopped=str(error), notes=notes)
            raise
    if bad_rows and not judged and not tally.stopped:
        raise NoReadableRow(bad_rows)
    return Results(protocol.name, judged, bad_rows, stopped=tally.stopped, notes=notes)


async def _judge_in_store(
    location: AnyPath,
    called: Mapping[str, Any],
    group: str | None,
    plan: Plan,
    asked: ChosenJudge,
    budget: Budget,
    progress: bool | OnProgress,
    notes: list[str],
) -> Results:
    """Judge as a run of a store."""
    from steelyard.engine import runs
    from steelyard.store import Store, run_identity

    identity = run_identity(called)
    protocol, options, data = plan.protocol, plan.options, plan.data
    with Store.open(os.fspath(location)) as store:
        if not plan.is_dated and (found := runs.earlier_date(store, protocol, asked.judge.name, data)):
            options, note = redated(options, *found, Surface.python)
            notes += [note] if note else []
        settings = runs.RunSettings(asked.workers, budget, limiter=asked.limiter)
        try:
            run = runs.start(
                *(store, protocol, options, asked.judge, asked.spec, asked.prompts, data, settings),
                identity=identity,
                group=group,
            )
        except NoReadableRow as error:
            if error.bad_rows:
                raise
            return Results(protocol.name, (), (), notes=notes)
        run.tally.total = data.total

        def results(stopped: str | None) -> Results:
            bad_rows, verdicts = store.bad_rows(run.row.id), store.verdicts(run.row.id)
            return Results(protocol.name, verdicts, bad_rows, stopped=stopped, notes=notes, run=run.row.id)

        with _shown(progress, run.tally, asked.limiter) as tick:
            try:
                tally = await run.drive(lambda *_: tick(), lambda _: None)
            except JudgeError as error:
                error.results = results(str(error))
                raise
        return results(tally.stopped)


@contextmanager
def _shown(progress: bool | OnProgress, tally: Tally, limiter: Limiter | None) -> Iterator[Callable[[], None]]:
    """What to call after every sample, so that whoever wants to knows how far it is."""
    from steelyard.engine.progress import ProgressLine, snapshot

    def in_flight() -> int | None:
        return limiter.in_flight if limiter else None

    if callable(progress):
        began = time.monotonic()
        yield lambda: progress(snapshot(tally, time.monotonic() - began, in_flight()))
        return
    with ProgressLine("auto" if progress else "quiet", tally, in_flight) as shown:
        yield shown.tick


def in_own_loop(work: Callable[[], Coroutine[Any, Any, T]], judge: object) -> T:
    """Run the work in a new event loop: in this thread, or in another thread if a loop is running here."""

    async def alone() -> T:
        try:
            return await work()
        finally:
            # This loop ends with the call, and connections cannot outlive their loop.
            if isinstance(judge, JudgeLike):
                await judge.aclose()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_to_end(alone())
    return _in_thread(alone())


def _in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: list[T | BaseException] = []

    def work() -> None:
        try:
            outcome.append(run_to_end(coroutine))
        except BaseException as error:  # handed to the caller's thread below
            outcome.append(error)

    thread = threading.Thread(target=work, name="steelyard-evaluate")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def dated(protocol: Protocol, options: Mapping[str, Any], today: Callable[[], date] = date.today) -> dict[str, Any]:
    """The options with today's date where the protocol wants one: protocols read no clock."""
    if "date" in protocol.options.model_fields and not options.get("date"):
        return {**options, "date": today().isoformat()}
    return dict(options)


def redated(options: Options, date: str, run: str, surface: Surface) -> tuple[Options, str]:
    """The options with the date of an earlier run over the same data, and what to say if it is another one."""
    if getattr(options, "date", None) == date:
        return options, ""
    other = "options={'date': …}" if surface is Surface.python else "--date or --fresh"
    note = f"date {date}, as in run {run} over the same data, so that nothing is paid for twice; {other} changes it"
    return options.model_copy(update={"date": date}), note


def input_of(
    samples: Samples,
    protocol: Protocol,
    fields: Mapping[str, str],
    encoding: str = "utf-8",
    format: str | None = None,
    on_note: Callable[[str], None] = lambda note: None,
    surface: Surface = Surface.python,
    *,
    importer: str | None = None,
) -> Input:
    """Samples as they were passed: a file, or what is in memory, to be read once."""
    from steelyard.engine.inputs import Input
    from steelyard.samples import is_dataset, samples_from, takes_names

    if isinstance(samples, str | PathLike):
        path = str(samples)
        if not (is_dataset(path) or Path(path).exists() or takes_names(importer)):
            raise InputError("there is no such file", file=path)
        data = Input([path], dict(fields), encoding, format, surface, on_note, importer=importer)
        data.check(protocol)
        return data
    given = samples_from(
        samples,
        protocol.kind,
        fields=fields,
        importer=importer,
        on_note=on_note,
        needs_question=protocol.needs_question,
    )
    return Input([], dict(fields), encoding, format, surface, on_note, given, importer)


def rows_of(samples: Samples, protocol: Protocol, fields: Mapping[str, str], surface: Surface) -> Iterator[Row]:
    """The rows of samples in any form."""
    return input_of(samples, protocol, fields, surface=surface).rows(protocol)
