"""Experiments, of the settings file or composed here: their runs, one table that compares them, and beginning what is
left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.engine.manifest import now
from steelyard.errors import ConfigError, InputError, SteelyardError, UnknownSet, invalid_field
from steelyard.protocols import protocol_names, vocabulary
from steelyard.records import Language, Record
from steelyard.reports.blocks import TonedText, interval, number
from steelyard.reports.experiment import ExperimentTable, decision_text, difference_text
from steelyard.settings import Experiment
from steelyard.store import Store, StoredExperiment
from steelyard.store.set_table import AT
from steelyard.text.wording import say
from steelyard.trust.experiments import CellRun, tabulate
from steelyard.web import actions
from steelyard.web.addresses import sample_of, segment_of, with_query
from steelyard.web.cache import PATIENCE, run_version
from steelyard.web.errors import refusal_text
from steelyard.web.experimenting import (
    ExpectedCost,
    ExperimentDesign,
    ExperimentPlan,
    FoundRun,
    SetVersionNamed,
    begin,
    composed,
    designed,
    expected,
    forget_experiment,
    found_runs,
    of_settings,
    run_state,
    variants_of,
)
from steelyard.web.forms import posted
from steelyard.web.jobs import RunProgress
from steelyard.web.pages.identity import meta_of
from steelyard.web.pages.sets import SetSummary
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.uploads import forget, keep_file
from steelyard.web.viewer import Viewer, viewer_of

LIMITS = ("max_cost", "max_tokens")
NUMBER = re.compile(r"[0-9]{1,9}")
MOST_FILES = 20
# How lists call the protocol of a rubric that was entered.
RUBRIC = "rubric"


class ExperimentSummary(Record):
    """An experiment as the settings file has it, or as it was composed here."""

    name: str
    number: int | None = Field(default=None, description="null: it is one of the settings file")
    project: str = ""
    author: str = ""
    data: tuple[str, ...]
    protocols: tuple[str, ...]
    judges: tuple[str, ...]
    options: tuple[str, ...] = Field(description="the names of its variants")

    @classmethod
    def of(cls, name: str, table: Experiment, default: str) -> ExperimentSummary:
        judges = table.judges or (default,)
        return cls(name=name, data=table.data, protocols=table.protocols, judges=judges, options=tuple(table.options))

    @classmethod
    def composed(cls, stored: StoredExperiment, store: Store) -> ExperimentSummary:
        design = ExperimentDesign.model_validate_json(stored.design)
        names = {found.id: found.name for found in store.sets(stored.project)}
        sets = (f"{names.get(one.id, '?')}{AT}{one.version}" for one in design.sets)
        return cls(
            name=stored.name,
            number=stored.id,
            project=stored.project,
            author=stored.author,
            data=(*sets, *(Path(file).name for file in design.files)),
            protocols=(*design.protocols, *([RUBRIC] if design.rubric else ())),
            judges=design.judges,
            options=tuple(design.options),
        )

    @property
    def n(self) -> int:
        return len(self.data) * len(self.protocols) * len(self.judges) * max(1, len(self.options))

    @property
    def address(self) -> str:
        return f"/experiments/composed/{self.number}" if self.number else experiment_address(self.name)


class ExperimentsPage(Record):
    experiments: tuple[ExperimentSummary, ...]


class ComposePage(Record):
    """What an experiment can be composed of, and what was entered before, as it was entered."""

    given: Mapping[str, str] = Field(default_factory=dict)
    chosen: tuple[str, ...] = Field(default=(), description="the boxes that were ticked, as NAME=VALUE")
    sets: tuple[SetSummary, ...]
    protocols: tuple[str, ...]
    judges: tuple[str, ...]
    problem: str = ""


class ExperimentCell(Record):
    """One combination: its run, how far it is, or that it was not begun."""

    data: str
    protocol: str
    judge: str
    options: str
    run: str | None
    state: str
    n: int = Field(default=0, description="samples judged so far")
    progress: RunProgress | None = Field(default=None, description="of a run that is not complete")


class ExperimentPage(Record):
    """The runs of an experiment. The table holds those that are not at work; it is null while it is counted."""

    experiment: ExperimentSummary
    project: str | None = Field(description="whose runs these are; null: of any project")
    projects: tuple[str, ...] = ()
    runs: tuple[ExperimentCell, ...] = ()
    table: ExperimentTable | None = None
    expected: ExpectedCost | None = Field(
        default=None, description="what the runs that were not begun would take; null: nothing, or it is still counted"
    )
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
    return page(request, "experiments.html", every_experiment(viewer_of(request)))


def every_experiment(viewer: Viewer) -> ExperimentsPage:
    default = viewer.config.choose(None).name
    in_file = (ExperimentSummary.of(name, table, default) for name, table in viewer.config.experiments.items())
    with viewer.store() as store:
        own = [ExperimentSummary.composed(one, store) for one in store.experiments()]
    return ExperimentsPage(experiments=(*own, *in_file))


class Asked(NamedTuple):
    """The experiment that a request is about, and the project whose runs are looked for; None: of any."""

    planned: ExperimentPlan
    summary: ExperimentSummary
    projects: tuple[str, ...]
    project: str | None
    address: str


def asked_of_settings(viewer: Viewer, name: str, given: str | None) -> Asked:
    if name not in viewer.config.experiments:
        raise HTTPException(404, f"the settings file has no experiment {name!r}")
    summary = ExperimentSummary.of(name, viewer.config.experiment(name), viewer.config.choose(None).name)
    projects, project = _projects(viewer, given)
    return Asked(of_settings(viewer, name), summary, projects, project, experiment_address(name))


def asked_composed(viewer: Viewer, number: int) -> Asked:
    with viewer.store() as store:
        stored = store.experiment(number)
        summary = ExperimentSummary.composed(stored, store)
    return Asked(composed(viewer, stored), summary, (), stored.project, summary.address)


def _of_settings(request: Request, given: str | None) -> Asked:
    return asked_of_settings(viewer_of(request), sample_of(request.path_params["experiment"]), given)


def _composed(request: Request, given: str | None) -> Asked:
    return asked_composed(viewer_of(request), request.path_params["composed"])


Asking = Callable[[Request, str | None], Asked]


def _looked_at(asking: Asking) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        return _shown(request, asking(request, request.query_params.get("project")))

    return handle


def _shown(request: Request, about: Asked, problem: str = "", given: Mapping[str, str] | None = None) -> Response:
    model = experiment_page(viewer_of(request), about, None if is_json(request) else PATIENCE, problem)
    table, language = model.table, language_of(request)
    return page(
        request,
        "experiment.html",
        model,
        status=422 if problem and request.method == "POST" else 200,
        address=about.address,
        rows=list(_rows(table, language)) if table else [],
        parts=[
            part for part in ("data", "protocol", "judge", "options") if len({getattr(c, part) for c in model.runs}) > 1
        ],
        given=given or {},
    )


def experiment_page(viewer: Viewer, about: Asked, patience: float | None, problem: str = "") -> ExperimentPage:
    """What there is of an experiment; with `patience`, without what takes longer to count."""
    cells: tuple[ExperimentCell, ...] = ()
    table = found_cost = None
    try:
        with viewer.store() as store:
            found = found_runs(viewer, store, about.planned, about.project)
            cells = tuple(_cell(viewer, store, one) for one in found)
        table = _table(viewer, about.summary.name, found, cells, patience)
        if pending := tuple(one.wanted.title for one in found if one.row is None):
            data = tuple(str(one.wanted.input.described) for one in found)
            key = ("expected", about.address, data, pending)
            found_cost = viewer.cache.get(key, partial(expected, viewer, about.planned, pending), patience)
    except (ConfigError, InputError, UnknownSet) as error:
        problem = problem or str(error)
    return ExperimentPage(
        experiment=about.summary,
        project=about.project,
        projects=about.projects,
        runs=cells,
        table=table,
        expected=found_cost,
        problem=problem,
    )


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
        n=sum(store.judged(row.id).values()) if row else 0,
        progress=actions.progress_of(viewer, store, row) if row and state != "complete" else None,
    )


def _table(
    viewer: Viewer, name: str, found: list[FoundRun], cells: tuple[ExperimentCell, ...], patience: float | None
) -> ExperimentTable | None:
    # A run at work changes faster than its scores are counted.
    rows = [one.row if cell.state != "running" else None for one, cell in zip(found, cells, strict=True)]
    with viewer.store() as store:
        # With the id: two projects may hold runs that came about alike.
        key = tuple((row.id, run_version(store, row)) if row else None for row in rows)

    def made() -> ExperimentTable:
        with viewer.store() as store:
            ids = [row.id if row else None for row in rows]
            runs = [(one.wanted, CellRun(id=id)) for one, id in zip(found, ids, strict=True)]
            return tabulate(store, name, runs)

    titles = tuple(one.wanted.title for one in found)
    return viewer.cache.get(("experiment", name, titles, key), made, patience)


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
                "decision": decision.text if isinstance(decision, TonedText) else decision,
                "tone": decision.tone if isinstance(decision, TonedText) else "plain",
            }


# --- starting --------------------------------------------------------------------------------------


def _started(asking: Asking) -> Callable[[Request, FormData], Response]:
    """Begin what is left of an experiment; where that cannot be, its page says why."""

    def handle(request: Request, form: FormData) -> Response:
        viewer = viewer_of(request)
        given = {name: str(value).strip() for name, value in form.items() if str(value).strip()}
        project = str(form["project"]) if "project" in form and viewer.visit else None
        about = asking(request, project)
        try:
            spending = actions.Spending.model_validate({name: given[name] for name in LIMITS if name in given})
            begin(viewer, about.planned, about.project, spending)
        except ValidationError as error:
            found = invalid_field(error)
            return _shown(request, about, f"{found.field}: {found.problem}", given)
        except SteelyardError as error:
            return _shown(request, about, refusal_text(error, language_of(request)), given)
        return RedirectResponse(with_query(about.address, {"project": None if about.summary.number else project}), 303)

    return handle


# --- composing -------------------------------------------------------------------------------------


def compose(request: Request) -> Response:
    return _form(request)


def _form(request: Request, form: FormData | None = None, problem: str = "") -> Response:
    viewer = viewer_of(request)
    texts = [(name, value) for name, value in form.multi_items() if isinstance(value, str)] if form else []
    with viewer.store() as store:
        sets = tuple(map(SetSummary.of, store.sets()))
    model = ComposePage(
        given=dict(texts),
        chosen=tuple(f"{name}={value}" for name, value in texts),
        sets=sets,
        protocols=tuple(protocol_names()),
        judges=tuple(actions.judge_names(viewer.config)),
        problem=problem,
    )
    status = 422 if problem else 200
    return page(request, "compose.html", model, status=status, own_projects=viewer.own_projects)


async def create(request: Request) -> Response:
    """Keep what was composed and go to its page, where it is started."""
    async with request.form(max_files=MOST_FILES, max_fields=500) as form:
        return await run_in_threadpool(_created, request, form)


def _created(request: Request, form: FormData) -> Response:
    viewer = viewer_of(request)
    kept: list[Path] = []
    try:
        for file in form.getlist("file"):
            if isinstance(file, UploadFile) and file.filename:
                kept.append(keep_file(viewer.uploads, file.filename, file.file, viewer.sizes.unpacked))
        design = _design(request, form, kept)
        with viewer.store() as store:
            project = _project(viewer, store, form, design)
            designed(viewer, store, design, project)
            given = {"created": now(), "author": viewer.person or ""}
            made = store.add_experiment(project, text_of(form, "name"), design.model_dump_json(), **given)
    except SteelyardError as error:
        for path in kept:
            forget(viewer.uploads, path)
        return _form(request, form, refusal_text(error, language_of(request)))
    if viewer.visit:
        viewer.visit.target = f"experiment {made.name}"[:200]
    return RedirectResponse(f"/experiments/composed/{made.id}", 303)


def _design(request: Request, form: FormData, kept: Sequence[Path]) -> ExperimentDesign:
    problem = partial(say, language_of(request))
    versions = [name.partition(AT) for name in map(str, form.getlist("set"))]
    named = [(id, version) for id, _, version in versions if NUMBER.fullmatch(id) and NUMBER.fullmatch(version)]
    return ExperimentDesign(
        sets=tuple(SetVersionNamed(id=int(id), version=int(version)) for id, version in dict.fromkeys(named)),
        files=tuple(map(str, kept)),
        protocols=_ticked(form, "protocol"),
        rubric=text_of(form, "rubric"),
        judges=_ticked(form, "judge"),
        options=variants_of(text_of(form, "variants"), problem("viewer.compose.line")),
        fields={
            key: str(value)
            for key, value in meta_of(text_of(form, "columns"), problem("viewer.identity.line"), "columns").items()
        },
        encoding=text_of(form, "encoding") or "utf-8",
    )


def _ticked(form: FormData, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(value) for value in form.getlist(name)))


def _project(viewer: Viewer, store: Store, form: FormData, design: ExperimentDesign) -> str:
    """As named; else that of the sets."""
    given = text_of(form, "project") if "project" in form else None
    if not given and design.sets:
        owner = store.sample_set(design.sets[0].id).project
        given = owner if given is None or viewer.may("start", owner) else given
    return actions.project_of(viewer, given)


def delete(request: Request) -> Response:
    delete_composed(viewer_of(request), request.path_params["composed"])
    return RedirectResponse("/experiments", 303)


def delete_composed(viewer: Viewer, number: int) -> None:
    """Take an experiment away; its runs stay."""
    with viewer.store() as store:
        gone = store.delete_experiment(number)
    forget_experiment(viewer, gone)


def text_of(form: FormData, name: str) -> str:
    given = form.get(name)
    # What is no whole character is replaced: a charset of the form's own choice can make halves.
    return given.encode("utf-8", "replace").decode().strip() if isinstance(given, str) else ""


COMPOSED = "/experiments/composed/{composed:int}"
routes = [
    *page_routes("/experiments", experiments),
    *page_routes("/experiments/composed/new", compose),
    Route("/experiments/composed", create, methods=["POST"]),
    *page_routes(COMPOSED, _looked_at(_composed)),
    Route(COMPOSED, posted(_started(_composed)), methods=["POST"]),
    Route(f"{COMPOSED}/delete", delete, methods=["POST"]),
    *page_routes("/experiments/{experiment}", _looked_at(_of_settings)),
    Route("/experiments/{experiment}", posted(_started(_of_settings)), methods=["POST"]),
]
