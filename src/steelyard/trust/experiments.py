"""Experiments: data × protocols × judges × options, each combination a run, and one table that compares them.

An experiment has no state of its own. A combination is done when the store holds a run that came about in the same way,
so the same command goes on where it was stopped, and judges again only what has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from steelyard.engine.inputs import Input
from steelyard.engine.manifest import check_unchanged
from steelyard.engine.runs import Run, RunSettings, continue_, earlier_date, start, state_of
from steelyard.errors import ConfigError, InputError, NotComparable, SteelyardError
from steelyard.evaluation import dated, redated
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.base import Judge
from steelyard.prompts import Prompts
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.records import Language, Record
from steelyard.reports.build import ReportBuilder
from steelyard.reports.comparison import MetricChange
from steelyard.reports.experiment import CellScore, ExperimentRun, ExperimentTable
from steelyard.reports.model import Report
from steelyard.settings import Experiment, Settings
from steelyard.stats import CONFIDENCE
from steelyard.stats.paired import holm
from steelyard.store import RunIdentity, RunRow, Store
from steelyard.trust.comparison import Judged, compare

PLAIN = ""
"""The name of the only variant where an experiment names no options."""


# --- what is to be run -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Combination:
    """One cell of the grid: which data, judged how, by whom."""

    data: str
    protocol: Protocol
    judge: str
    variant: str
    input: Input
    options: Options
    is_dated: bool
    """Whether the settings name the date; else a run of an earlier day is as good."""

    @property
    def title(self) -> str:
        return " · ".join(filter(None, (self.data, self.protocol.name, self.judge, self.variant)))

    def done_by(self, row: RunRow, judge: Judge, prompts: Prompts) -> bool:
        """Whether a stored run came about in this way."""
        then, options = row.manifest, self.options.model_dump(mode="json")
        if row.protocol != self.protocol.name or then.get("protocol", {}).get("version") != self.protocol.version:
            return False
        undated = () if self.is_dated else ("date",)
        if _without(then.get("options", {}), undated) != _without(options, undated):
            return False
        if [part.get("sha256") for part in then.get("data", ())] != [part["sha256"] for part in self.input.described]:
            return False
        if then.get("fields") != dict(self.input.fields) or then.get("fresh"):
            return False
        if (then.get("template") or None) != (dict(self.protocol.template) if self.protocol.template else None):
            return False
        if then["protocol"].get("origin", {}) != dict(self.protocol.origin):
            return False
        try:
            check_unchanged(row, judge, prompts)
        except ConfigError:
            return False
        return True


def _without(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def plan(settings: Settings, name: str) -> list[Combination]:
    """Every combination of an experiment, in the order of its table. Whatever is wrong with one is said before any is
    judged, with the key it comes from."""
    table = settings.experiment(name)
    where = f"{settings.source}: experiments.{name}"
    protocols = [_at(f"{where}.protocols", lambda one=one: settings.protocol(one)) for one in table.protocols]
    data = {file: _at(f"{where}.data", lambda file=file: _input(settings, table, file)) for file in table.data}
    return combinations(settings, protocols, data, table.judges, table.options, f"{where}.")


def combinations(
    settings: Settings,
    protocols: Sequence[Protocol],
    data: Mapping[str, Input],
    judges: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    where: str = "",
) -> list[Combination]:
    """Every combination of these, of the data first. `where` stands before the key in what is said to be wrong."""
    for judge in judges:
        # One that cannot be made is found before the others are paid.
        _at(f"{where}judges", lambda judge=judge: JudgeFactory(settings).judge(judge))
    named = [settings.choose(judge).name for judge in judges or (None,)]
    variants = dict(options) or {PLAIN: {}}
    found = []
    for title, protocol, judge, variant in product(data, protocols, named, variants):
        given = {**settings.options.get(protocol.family, {}), **variants[variant]}
        key = f"{where}options{f'.{variant}' if variant else ''}"
        parsed = _at(key, lambda p=protocol, given=given: p.parse_options(dated(p, given)))
        _at(f"{where}data", lambda title=title, p=protocol: data[title].check(p))
        found.append(Combination(title, protocol, judge, variant, data[title], parsed, bool(given.get("date"))))
    return found


def _input(settings: Settings, table: Experiment, file: str) -> Input:
    path = settings.folder / file
    if not path.is_file():
        raise InputError("there is no such file", file=str(path))
    return Input([str(path)], dict(table.fields), table.encoding, table.format)


def _at(key: str, make: Any) -> Any:
    try:
        return make()
    except SteelyardError as error:
        raise ConfigError(f"{key}: {error}") from error


def find_run(
    store: Store, wanted: Combination, judge: Judge, prompts: Prompts, project: str | None = None
) -> RunRow | None:
    """The newest run, of any project or of one, that came about as this combination asks, whatever became of it."""
    return next((row for row in store.runs(project=project) if wanted.done_by(row, judge, prompts)), None)


def open_run(
    store: Store,
    wanted: Combination,
    found: RunRow | None,
    judge: Judge,
    prompts: Prompts,
    settings: RunSettings,
    identity: RunIdentity | None = None,
) -> Run:
    """The run that was found, to be gone on with; else a new one."""
    if found:
        return continue_(store, found.id, judge, prompts, settings)
    options = wanted.options
    if not wanted.is_dated and (earlier := earlier_date(store, wanted.protocol, judge.name, wanted.input)):
        options, _ = redated(options, *earlier, settings.budget.surface)
    spec, data = wanted.judge, wanted.input
    return start(store, wanted.protocol, options, judge, spec, prompts, data, settings, identity=identity)


# --- what came of it -------------------------------------------------------------------------------


class CellRun(Record):
    """The run of a combination; none where it was not begun, and then perhaps why."""

    id: str | None
    problem: str = ""


def tabulate(
    store: Store, name: str, cells: Sequence[tuple[Combination, CellRun]], language: Language | None = None
) -> ExperimentTable:
    """The table: each run's main scores, and their difference from the first run of the same protocol."""
    reports = [_report(store, cell.id, language) if cell.id else None for _, cell in cells]
    baselines: dict[str, int] = {}
    for at, ((wanted, _), report) in enumerate(zip(cells, reports, strict=True)):
        if report and report.n:
            baselines.setdefault(wanted.protocol.name, at)
    changes = [
        _changes(store, cells[base][1].id, cell.id)
        if report and (base := baselines.get(wanted.protocol.name)) is not None and base != at
        else {}
        for at, ((wanted, cell), report) in enumerate(zip(cells, reports, strict=True))
    ]
    mains = [report.words.mains(report.scores) if report else () for report in reports]
    asked = [(at, metric) for at, found in enumerate(changes) for metric in mains[at] if metric in found]
    adjusted = dict(zip(asked, holm([changes[at][metric].p for at, metric in asked]), strict=True))
    known = next((report.language for report in reports if report), "en")
    runs = []
    for at, ((wanted, cell), report) in enumerate(zip(cells, reports, strict=True)):
        scores = [
            _score(report, metric, changes[at].get(metric), adjusted.get((at, metric)))
            for metric in mains[at]
            if report
        ]
        runs.append(
            ExperimentRun(
                data=wanted.data,
                protocol=wanted.protocol.name,
                judge=wanted.judge,
                options=wanted.variant,
                run=cell.id,
                state=state_of(store.run(cell.id), store) if cell.id else "pending",
                problem=cell.problem,
                n=report.n if report else 0,
                cost=report.usage.cost if report else None,
                calls=report.usage.calls if report else 0,
                is_baseline=baselines.get(wanted.protocol.name) == at,
                scores=tuple(scores),
            )
        )
    return ExperimentTable(name=name, language=language or known, runs=tuple(runs))


def _report(store: Store, run: str, language: Language | None) -> Report:
    builder = ReportBuilder(store.run(run).protocol, language)
    for sample, verdict in store.verdicts(run):
        builder.add(verdict, sample)
    for bad in store.bad_rows(run):
        builder.add_bad_row(bad)
    return builder.build()


def _changes(store: Store, a: str | None, b: str | None) -> dict[str, MetricChange]:
    """How each score differs; nothing where the runs have no sample in common."""
    if a is None or b is None:
        return {}
    before, after = (
        Judged(run, lambda run=run: store.verdicts(run), store.run(run).manifest)  # type: ignore[misc]
        for run in (a, b)
    )
    try:
        # They differ in judge or options on purpose; what differs stands in the table.
        return {change.metric: change for change in compare(before, after, anyway=True, listed=0).metrics}
    except NotComparable:
        return {}


def _score(report: Report, metric: str, change: MetricChange | None, p: float | None) -> CellScore:
    estimate, description = report.scores[metric], report.words.metric(metric)
    made = CellScore(
        metric=metric,
        scale=report.scale_of(metric),
        direction=description.direction,
        value=estimate.value,
        interval=estimate.interval,
        n=estimate.n,
        n_unjudged=estimate.n_unjudged,
    )
    if change is None:
        return made
    decided = p is not None and p <= 1 - CONFIDENCE
    return made.model_copy(
        update={
            "difference": change.difference,
            "difference_interval": change.interval,
            "n_pairs": change.n,
            "n_moved": change.n_rose + change.n_fell,
            "p_adjusted": p,
            "outcome": change.outcome if decided else "undecided",
        }
    )
