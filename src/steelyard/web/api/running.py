"""Runs: made, followed, stopped, resumed, deleted."""

from __future__ import annotations

import json
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from steelyard.errors import InputError
from steelyard.records import Record
from steelyard.reports.model import Report
from steelyard.samples.columns import check_fields
from steelyard.web import actions
from steelyard.web.api.bodies import FENCED, OWN_PROMPT, Body, IdentityBody, RunBody
from steelyard.web.errors import JUDGING
from steelyard.web.events import run_events
from steelyard.web.jobs import RunProgress
from steelyard.web.pages.identity import edit
from steelyard.web.pages.runs import RunSummary
from steelyard.web.uploads import keep_file, keep_samples
from steelyard.web.viewer import Viewer, viewer_of

router = APIRouter(tags=["runs"])
MULTIPART = "multipart/form-data"


class RunList(Record):
    runs: tuple[RunSummary, ...]


class RunDetail(Record):
    """A run: facts, how far it is, how it came about, and its report, which is null while it is being counted."""

    run: RunSummary
    progress: RunProgress
    manifest: dict[str, Any]
    report: Report | None


class Created(Record):
    id: str
    url: str = Field(description="where the run can be read")


class UploadBody(Body):
    """A file of samples, sent as a form."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str
    judge: str | None = None
    encoding: Literal["utf-8", "gb18030", "big5", "utf-16"] = "utf-8"
    format: Literal["jsonl", "json", "csv", "tsv"] | None = Field(
        default=None, description="where the file's name does not say it"
    )
    importer: str | None = Field(
        default=None, description="the tool that wrote the file, such as dify or langfuse; null: told from its shape"
    )
    project: str | None = Field(default=None, max_length=200, description="the project that the run belongs to")
    template: str | None = OWN_PROMPT
    fence: bool = FENCED


@router.get("/runs")
def list_runs(request: Request) -> RunList:
    """All runs, newest first."""
    with viewer_of(request).store() as store:
        return RunList(runs=tuple(RunSummary.of(row, store) for row in store.runs()))


@router.post("/runs", status_code=201, response_model=Created, responses=JUDGING)
async def create_run(request: Request) -> Response:
    """Begin a run, over samples in the request (JSON) or over a file (multipart/form-data)."""
    viewer = viewer_of(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == MULTIPART:
        async with request.form(max_files=1, max_fields=20) as form:
            id = await run_in_threadpool(_from_file, viewer, form)
    elif kind == "application/json":
        id = await run_in_threadpool(_from_samples, viewer, await request.body())
    else:
        raise HTTPException(415, f"send application/json or {MULTIPART}")
    url = f"/api/v1/runs/{id}"
    return JSONResponse(Created(id=id, url=url).model_dump(), 201, {"Location": url})


def _from_samples(viewer: Viewer, given: bytes) -> str:
    try:
        parsed = json.loads(given)
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    body = RunBody.model_validate(parsed)
    how = body.how.model_copy(update={"project": body.project, "called": body.called})
    check_fields(actions.prepared(viewer, how)[0].kind, how.fields)
    path = keep_samples(viewer.uploads, body.samples)
    return actions.start(viewer, how, path, spending=body.spending, choosy=False)


def _from_file(viewer: Viewer, form: FormData) -> str:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise InputError("a file of samples is needed", field="file")
    body = UploadBody.model_validate({name: value for name, value in form.multi_items() if name != "file"})
    how = actions.RunRequest(
        protocol=body.protocol,
        judge=body.judge,
        project=body.project,
        template=body.template,
        fence=body.fence,
        importer=body.importer,
    )
    path = keep_file(viewer.uploads, file.filename, file.file, viewer.sizes.unpacked)
    return actions.start(viewer, how, path, encoding=body.encoding, format=body.format, choosy=False)


@router.get("/runs/{run}")
def get_run(request: Request, run: str) -> RunDetail:
    """One run by its id, its number, or `last`."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        row = store.run(run)
        summary, progress = RunSummary.of(row, store), actions.progress_of(viewer, store, row)
    report = viewer.cache.report(viewer.store, row)
    return RunDetail(run=summary, progress=progress, manifest=row.manifest, report=report)


@router.patch("/runs/{run}")
def edit_run(request: Request, run: str, body: IdentityBody) -> RunSummary:
    """Change what a run is called: its name, notes, tags, metadata, project; pin it as its project's baseline."""
    viewer = viewer_of(request)
    row = edit(viewer, run, body.model_dump(exclude_none=True))
    with viewer.store() as store:
        return RunSummary.of(row, store)


@router.delete("/runs/{run}", status_code=204)
def delete_run(request: Request, run: str) -> None:
    """Delete a run's samples and verdicts. The judge's replies and labels by people stay."""
    actions.delete(viewer_of(request), run)


@router.get(
    "/runs/{run}/events",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
def follow_run(request: Request, run: str) -> Response:
    """Progress as server-sent events: `progress` while the run is at work, then one `end`."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        id = store.run(run).id
    return run_events(viewer, id)


@router.post("/runs/{run}/stop", status_code=202)
def stop_run(request: Request, run: str) -> RunProgress:
    """Stop politely: what is in flight is finished and kept."""
    return actions.stop(viewer_of(request), run)


@router.post("/runs/{run}/resume", status_code=202, responses=JUDGING)
def resume_run(request: Request, run: str) -> RunProgress:
    """Go on with a run that was stopped or killed; nothing that was answered is asked again."""
    return _going_on(request, run, retry=False)


@router.post("/runs/{run}/retry", status_code=202, responses=JUDGING)
def retry_run(request: Request, run: str) -> RunProgress:
    """Ask again for what failed or stayed unjudged."""
    return _going_on(request, run, retry=True)


def _going_on(request: Request, run: str, *, retry: bool) -> RunProgress:
    viewer = viewer_of(request)
    id = actions.continue_run(viewer, run, retry=retry)
    with viewer.store() as store:
        return actions.progress_of(viewer, store, store.run(id))
