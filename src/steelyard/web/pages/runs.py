"""The list of runs: what there is, how good, how far; starting, stopping, resuming and deleting them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from markupsafe import Markup
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.engine.runs import failure_of, state_of
from steelyard.errors import InputError
from steelyard.protocols import protocol_names, vocabulary
from steelyard.records import Record
from steelyard.reports.blocks import number
from steelyard.reports.html import charts
from steelyard.reports.model import RunFailure
from steelyard.samples import PLAIN, importer_names, takes_names
from steelyard.store import RunIdentity, RunRow, Store, run_identity
from steelyard.store.listing import ScoreSummary, Summary, known_summary, searchable, statuses, summary
from steelyard.web import actions
from steelyard.web.addresses import run_address
from steelyard.web.events import all_events
from steelyard.web.jobs import RunProgress
from steelyard.web.rendering import is_json, language_of, page, page_routes, with_query
from steelyard.web.uploads import keep_file
from steelyard.web.viewer import Viewer, viewer_of

PER_PAGE = 50
# How long the list waits for scores that nobody has counted yet, all runs together.
PATIENCE = 0.5
# How the filter calls runs without a project: an empty value leaves all.
NO_PROJECT = "-"
STATES = ("running", "stopped", "complete", "failed")


class RunSummary(RunIdentity):
    """One run as lists and headings show it."""

    id: str
    number: int
    protocol: str
    judge: str
    state: str
    started: str
    finished: str | None
    statuses: dict[str, int]
    data: tuple[str, ...] = ()
    failure: RunFailure | None = Field(default=None, description="of a failed run: why, and what to do")

    @classmethod
    def of(cls, row: RunRow, store: Store) -> RunSummary:
        facts = {name: value for name, value in row._asdict().items() if name not in ("manifest", "state")}
        files = tuple(PurePath(str(data.get("path", ""))).name for data in row.manifest.get("data", ()))
        state, counts = state_of(row, store), statuses(store, row.id)
        failure = failure_of(row, store) if state == "failed" else None
        return cls(**facts, state=state, statuses=counts, data=files, failure=failure)

    @property
    def title(self) -> str:
        """What people call it: its name, else its id."""
        return self.name or self.id

    @property
    def n(self) -> int:
        return sum(self.statuses.values())

    @property
    def gaps(self) -> int:
        return self.statuses.get("partial", 0) + self.statuses.get("failed", 0)


class ListedRun(Record):
    """A run of the list. `scores` is null until they are counted, and while the run is at work."""

    run: RunSummary
    progress: RunProgress | None = None
    scores: dict[str, ScoreSummary] | None = None


class RunsPage(Record):
    """One page of the list, newest first; `n` runs fit the filter of `total` in the store."""

    runs: tuple[ListedRun, ...]
    n: int
    total: int
    page: int
    pages: int
    protocols: tuple[str, ...]
    judges: tuple[str, ...]
    projects: tuple[str, ...] = Field(default=(), description="those of all runs")
    tags: tuple[str, ...] = Field(default=(), description="those of all runs")

    @property
    def is_live(self) -> bool:
        return any(listed.progress or (listed.scores is None and listed.run.n) for listed in self.runs)


def runs(request: Request) -> Response:
    viewer = viewer_of(request)
    with viewer.store() as store:
        rows = store.runs()
        wanted = [row for row in rows if _fits(row, request, store)]
        pages = max(1, math.ceil(len(wanted) / PER_PAGE))
        at = min(pages, max(1, whole(request.query_params.get("page"))))
        deadline = time.monotonic() + (math.inf if is_json(request) else PATIENCE)
        shown = [_listed(viewer, store, row, deadline) for row in wanted[(at - 1) * PER_PAGE : at * PER_PAGE]]
    model = RunsPage(
        runs=tuple(shown),
        n=len(wanted),
        total=len(rows),
        page=at,
        pages=pages,
        protocols=tuple(protocol_names()),
        judges=tuple(actions.judge_names(viewer.config)),
        projects=tuple(sorted({row.project for row in rows} - {""})),
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
    )
    language = language_of(request)
    return page(
        request,
        "runs.html",
        model,
        states=STATES,
        importers=[name for name in (*importer_names(), PLAIN) if not takes_names(name)],
        own_projects=viewer.own_projects,
        has_experiments=bool(viewer.config.experiments),
        given=request.query_params,
        turn=lambda to: with_query(request, page=to),
        metric=lambda run, name: vocabulary(run.protocol).metric_words(name, language),
        value=lambda run, name, score: number(score.mean, vocabulary(run.protocol).metric(name).mean_scale),
        spread=spread,
        clock=to_the_minute,
    )


def _fits(row: RunRow, request: Request, store: Store) -> bool:
    given = request.query_params
    if (protocol := given.get("protocol")) and row.protocol != protocol:
        return False
    if (state := given.get("state")) and state_of(row, store) != state:
        return False
    if (project := given.get("project")) and (row.project or NO_PROJECT) != project:
        return False
    if (tag := given.get("tag")) and tag not in row.tags:
        return False
    files = (str(data.get("path", "")) for data in row.manifest.get("data", ()))
    called = (row.name, row.notes, row.project, *row.tags, *(f"{key}={value}" for key, value in row.meta.items()))
    text = searchable("\n".join((row.id, row.protocol, row.judge, *files, *called)))
    return all(word in text for word in searchable(given.get("q", "")).split())


def to_the_minute(moment: str) -> str:
    """A time as lists show it, to the minute."""
    return moment[:16].replace("T", " ")


def whole(given: str | None) -> int:
    return int(given) if given and given.isascii() and given.isdigit() and len(given) < 7 else 1


def _listed(viewer: Viewer, store: Store, row: RunRow, deadline: float) -> ListedRun:
    run = RunSummary.of(row, store)
    if run.state == "running" or viewer.jobs.get(row.id):
        return ListedRun(run=run, progress=actions.progress_of(viewer, store, row))
    found = known_summary(store, row.id) or _counted(viewer, row, run, deadline)
    return ListedRun(run=run, scores=main_scores(row.protocol, found) if found else None)


def _counted(viewer: Viewer, row: RunRow, run: RunSummary, deadline: float) -> Summary | None:
    """The scores of a run that nobody has looked at yet: now if that is quick, else in the background."""

    def count() -> Summary:
        with viewer.store() as store:
            return summary(store, row.id)

    left = deadline - time.monotonic()
    key = ("summary", row.id, row.finished, tuple(sorted(run.statuses.items())))
    return viewer.cache.get(key, count, None if left == math.inf else max(0.0, left))


def main_scores(protocol: str, found: Summary) -> dict[str, ScoreSummary]:
    """The scores that say how good the assistant is."""
    return {name: found.scores[name] for name in vocabulary(protocol).mains(found.scores)}


SPARK_WIDTH, SPARK_HEIGHT = 64, 20


def spread(score: ScoreSummary) -> Markup:
    """How the samples spread over the scale, as ten small columns; the number beside it is the mean."""
    most, step = max(score.bins, default=0), SPARK_WIDTH / max(1, len(score.bins))
    base = charts.tag("line", x1=0, x2=SPARK_WIDTH, y1=SPARK_HEIGHT - 0.5, y2=SPARK_HEIGHT - 0.5, class_="track")
    columns = [
        charts.tag(
            "rect",
            x=step * at + 0.5,
            y=SPARK_HEIGHT - (height := max(1.5, (SPARK_HEIGHT - 1) * n / most)),
            width=step - 1,
            height=height,
            class_="column",
        )
        for at, n in enumerate(score.bins)
        if n
    ]
    return charts.svg(SPARK_WIDTH, SPARK_HEIGHT, charts.joined([base, *columns]), kind="spread")


# --- acting ----------------------------------------------------------------------------------------


async def start(request: Request) -> Response:
    """The form with a file."""
    viewer = viewer_of(request)
    async with request.form(max_files=1, max_fields=20) as form:
        return await run_in_threadpool(_start, viewer, form)


def _start(viewer: Viewer, form: FormData) -> Response:
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InputError("choose a file of samples", field="file")
    given: dict[str, Any] = {
        name: form[name] for name in ("protocol", "judge", "importer", "project") if form.get(name)
    }
    called = run_identity({"name": str(form.get("name") or "").strip()})
    how = actions.RunRequest.model_validate({**given, "called": called})
    encoding = str(form.get("encoding") or "utf-8")
    path = keep_file(viewer.uploads, file.filename, file.file, viewer.sizes.unpacked)
    actions.start(viewer, how, path, encoding=encoding)
    return _back()


def _acting(act: Callable[[Viewer, str], object]) -> Callable[[Request], Response]:
    def handler(request: Request) -> Response:
        run = request.path_params["run"]
        act(viewer_of(request), run)
        return RedirectResponse(run_address(run), 303) if request.query_params.get("back") == "run" else _back()

    return handler


def _back() -> Response:
    return RedirectResponse("/runs", 303)


async def events(request: Request) -> Response:
    return all_events(viewer_of(request))


routes = [
    *page_routes("/runs", runs),
    Route("/runs", start, methods=["POST"]),
    Route("/runs/{run}/stop", _acting(actions.stop), methods=["POST"]),
    Route("/runs/{run}/resume", _acting(actions.continue_run), methods=["POST"]),
    Route(
        "/runs/{run}/retry",
        _acting(lambda viewer, run: actions.continue_run(viewer, run, retry=True)),
        methods=["POST"],
    ),
    Route("/runs/{run}/delete", _acting(actions.delete), methods=["POST"]),
    Route("/events", events, methods=["GET"]),
]
