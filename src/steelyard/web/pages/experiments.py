"""Experiments of the settings file: their runs, one table that compares them, and beginning what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.errors import ConfigError, InputError, SteelyardError
from steelyard.protocols import vocabulary
from steelyard.records import Language, Record
from steelyard.reports.blocks import interval, number
from steelyard.reports.experiment import ExperimentTable, decision_text, difference_text
from steelyard.settings import Experiment
from steelyard.store import Store
from steelyard.trust.experiments import CellRun, tabulate
from steelyard.web import actions
from steelyard.web.addresses import sample_of, segment_of, with_query
from steelyard.web.cache import PATIENCE, run_version
from steelyard.web.experimenting import FoundRun, begin, found_runs, run_state
from steelyard.web.jobs import RunProgress
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import Viewer, viewer_of


class ExperimentSummary(Record):
    """An experiment as the settings file has it."""

    name: str
    data: tuple[str, ...]
    protocols: tuple[str, ...]
    judges: tuple[str, ...]
    options: tuple[str, ...] = Field(description="the names of its variants")

    @classmethod
    def of(cls, name: str, table: Experiment, default: str) -> ExperimentSummary:
        judges = table.judges or (default,)
        return cls(name=name, data=table.data, protocols=table.protocols, judges=judges, options=tuple(table.options))

    @property
    def n(self) -> int:
        return len(self.data) * len(self.protocols) * len(self.judges) * max(1, len(self.options))


class ExperimentsPage(Record):
    experiments: tuple[ExperimentSummary, ...]


class ExperimentCell(Record):
    """One combination: its run, how far it is, or that it was not begun."""

    data: str
    protocol: str
    judge: str
    options: str
    run: str | None
    state: str
    progress: RunProgress | None = Field(default=None, description="of a run that is not complete")


class ExperimentPage(Record):
    """The runs of an experiment. The table holds those that are not at work; it is null while it is counted."""

    experiment: ExperimentSummary
    project: str | None = Field(description="whose runs these are; null: of any project")
    projects: tuple[str, ...] = ()
    runs: tuple[ExperimentCell, ...] = ()
    table: ExperimentTable | None = None
    problem: str = Field(default="", description="why it cannot be begun")

    @property
    def is_at_work(self) -> bool:
        return any(one.state == "running" for one in self.runs)

    @property
    def is_complete(self) -> bool:
        return all(one.state == "complete" for one in self.runs)

    @property
    def is_live(self) -> bool:
        return self.is_at_work or (bool(self.runs) and self.table is None)


def experiment_address(name: str, project: str | None = None) -> str:
    return with_query(f"/experiments/{segment_of(name)}", {"project": project})


def experiments(request: Request) -> Response:
    config = viewer_of(request).config
    default = config.choose(None).name
    found = tuple(ExperimentSummary.of(name, table, default) for name, table in config.experiments.items())
    return page(request, "experiments.html", ExperimentsPage(experiments=found), address=experiment_address)


def one(request: Request) -> Response:
    return _shown(request, request.query_params.get("project"))


def _shown(request: Request, given: str | None, problem: str = "") -> Response:
    viewer, name = viewer_of(request), _name(request)
    summary = ExperimentSummary.of(name, viewer.config.experiment(name), viewer.config.choose(None).name)
    projects, project = _projects(viewer, given)
    cells: tuple[ExperimentCell, ...] = ()
    table = None
    try:
        with viewer.store() as store:
            found = found_runs(viewer, store, name, project)
            cells = tuple(_cell(viewer, store, one) for one in found)
        table = _table(viewer, name, found, cells, None if is_json(request) else PATIENCE)
    except (ConfigError, InputError) as error:
        problem = problem or str(error)
    model = ExperimentPage(
        experiment=summary, project=project, projects=projects, runs=cells, table=table, problem=problem
    )
    language = language_of(request)
    return page(
        request,
        "experiment.html",
        model,
        status=422 if problem and request.method == "POST" else 200,
        address=experiment_address(name),
        rows=list(_rows(table, language)) if table else [],
        parts=[part for part in ("data", "protocol", "judge", "options") if len({getattr(c, part) for c in cells}) > 1],
    )


def _name(request: Request) -> str:
    name = sample_of(request.path_params["experiment"])
    if name not in viewer_of(request).config.experiments:
        raise HTTPException(404, f"the settings file has no experiment {name!r}")
    return name


def _projects(viewer: Viewer, given: str | None) -> tuple[tuple[str, ...], str | None]:
    """On a team's server: the projects whose runs can be seen, and the chosen one."""
    if viewer.visit is None:
        return (), None
    with viewer.store() as store:
        known = sorted({*store.projects(), *(viewer.own_projects or ())})
    first = (viewer.own_projects or known or [""])[0]
    if given is None or given == first:
        return tuple(known), first
    if given not in known:
        raise HTTPException(404, f"there is no project {given!r}")
    return tuple(known), given


def _cell(viewer: Viewer, store: Store, found: FoundRun) -> ExperimentCell:
    wanted, row = found
    state = run_state(viewer, store, row)
    return ExperimentCell(
        data=wanted.data,
        protocol=wanted.protocol.name,
        judge=wanted.judge,
        options=wanted.variant,
        run=row.id if row else None,
        state=state,
        progress=actions.progress_of(viewer, store, row) if row and state != "complete" else None,
    )


def _table(
    viewer: Viewer, name: str, found: list[FoundRun], cells: tuple[ExperimentCell, ...], patience: float | None
) -> ExperimentTable | None:
    # A run at work changes faster than its scores are counted.
    rows = [one.row if cell.state != "running" else None for one, cell in zip(found, cells, strict=True)]
    with viewer.store() as store:
        key = tuple(run_version(store, row) if row else "" for row in rows)

    def made() -> ExperimentTable:
        with viewer.store() as store:
            ids = [row.id if row else None for row in rows]
            runs = [(one.wanted, CellRun(id=id)) for one, id in zip(found, ids, strict=True)]
            return tabulate(store, name, runs)

    titles = tuple(one.wanted.title for one in found)
    return viewer.known.get(("experiment", name, titles, key), made, patience)


def _rows(table: ExperimentTable, language: Language) -> Iterator[dict[str, Any]]:
    """Each main score of each run, with its difference from the first run of the protocol."""
    for run in table.runs:
        for at, score in enumerate(run.scores):
            decision = decision_text(run, score, language)
            yield {
                "run": run,
                "is_first": at == 0,
                "metric": vocabulary(run.protocol).metric_words(score.metric, language),
                "value": number(score.value, score.scale),
                "interval": interval(score.interval, score.scale),
                "n": f"{score.n:,}",
                "difference": difference_text(score, brief=False),
                "decision": decision,
                "tone": getattr(decision, "tone", "plain"),
            }


async def start(request: Request) -> Response:
    """Begin what is left of an experiment; where that cannot be, its page says why."""
    viewer, name = viewer_of(request), _name(request)
    async with request.form(max_files=0, max_fields=5) as form:
        given = form.get("project")
    project = str(given) if given is not None and viewer.visit else None
    try:
        await run_in_threadpool(begin, viewer, name, project)
    except SteelyardError as error:
        return await run_in_threadpool(_shown, request, project, str(error))
    return RedirectResponse(experiment_address(name, project), 303)


routes = [
    *page_routes("/experiments", experiments),
    *page_routes("/experiments/{experiment}", one),
    Route("/experiments/{experiment}", start, methods=["POST"]),
]
