"""A new run, checked before it starts: the first rows, the columns of its fields, what it would cost, its budget."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.engine.inputs import Input
from steelyard.errors import InputError, SteelyardError, invalid_field
from steelyard.protocols import protocol_names
from steelyard.records import Record
from steelyard.samples import PLAIN, importer_names, takes_names
from steelyard.samples.preview import LOOKED_AT, FilePreview, preview
from steelyard.store import run_identity
from steelyard.web import actions
from steelyard.web.rendering import page, page_routes
from steelyard.web.uploads import as_sent, held, hold, keep_file, taken
from steelyard.web.viewer import Viewer, viewer_of

# How the form calls the column of a field.
COLUMN = "column."
SETTINGS = ("protocol", "judge", "importer", "encoding", "project", "name", "max_cost", "max_tokens")
MOST_PROBLEMS = 5


class StartPage(Record):
    """An upload that waits to be started. `given` is what was entered, as it was entered."""

    upload: str
    file: str
    given: dict[str, str]
    preview: FilePreview | None = None
    unreadable: tuple[str, ...] = Field(default=(), description="what is wrong with rows at the beginning")
    expected: actions.Expected | None = None
    problem: str = ""
    protocols: tuple[str, ...]
    judges: tuple[str, ...]


async def upload(request: Request) -> Response:
    """Keep the file of the form on the list of runs, and go on to what is in it."""
    viewer = viewer_of(request)
    async with request.form(max_files=1, max_fields=20) as form:
        name = await run_in_threadpool(_kept, viewer, form)
        given = {field: str(form[field]) for field in SETTINGS if form.get(field)}
    return RedirectResponse(f"/runs/new/{name}?{urlencode(given)}", 303)


def _kept(viewer: Viewer, form: FormData) -> str:
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InputError("choose a file of samples", field="file")
    return hold(keep_file(viewer.uploads, file.filename, file.file, viewer.sizes.unpacked), viewer.person)


async def check(request: Request) -> Response:
    return await _shown(request, _entered(request.query_params))


async def start(request: Request) -> Response:
    """Start the run; where that cannot be, the page says why, with all that was entered."""
    viewer = viewer_of(request)
    async with request.form(max_files=0, max_fields=60) as form:
        given = _entered({name: value for name, value in form.items() if isinstance(value, str)})
    path = held(viewer.uploads, request.path_params["upload"], viewer.person)
    try:
        await run_in_threadpool(_start, viewer, path, given)
    except ValidationError as error:
        found = invalid_field(error)
        return await _shown(request, given, f"{found.field}: {found.problem}")
    except SteelyardError as error:
        return await _shown(request, given, str(error))
    return RedirectResponse("/runs", 303)


def _start(viewer: Viewer, path: Path, given: Mapping[str, str]) -> None:
    how = _request(path, given)
    limits = {name: given[name] for name in ("max_cost", "max_tokens") if name in given}
    spending = actions.Spending.model_validate(limits)
    with taken(path, viewer.person):
        actions.start(viewer, how, path, spending=spending, encoding=_encoding(given), is_held=True)


def _entered(values: Mapping[str, str]) -> dict[str, str]:
    """What the form holds, without what was left empty."""
    given = {name: value.strip() for name, value in values.items() if name in SETTINGS or name.startswith(COLUMN)}
    return {name: value for name, value in given.items() if value}


def _encoding(given: Mapping[str, str]) -> str:
    return given.get("encoding", "utf-8")


def _request(path: Path, given: Mapping[str, str]) -> actions.RunRequest:
    named: dict[str, Any] = {
        name: given[name] for name in ("protocol", "judge", "importer", "project") if name in given
    }
    return actions.RunRequest.model_validate(
        {
            "protocol": protocol_names()[0],
            **named,
            "fields": {name.removeprefix(COLUMN): value for name, value in given.items() if name.startswith(COLUMN)},
            "called": run_identity({"name": given.get("name", "")}),
        }
    )


async def _shown(request: Request, given: dict[str, str], problem: str = "") -> Response:
    viewer = viewer_of(request)
    path = held(viewer.uploads, request.path_params["upload"], viewer.person)

    async def looked_at() -> StartPage:
        return await _looked_at(viewer, path, given, problem)

    model = await viewer.evaluations.judged(looked_at)
    return page(
        request,
        "start.html",
        model,
        status=422 if problem else 200,
        importers=[name for name in (*importer_names(), PLAIN) if not takes_names(name)],
        own_projects=viewer.own_projects,
        column=COLUMN,
    )


async def _looked_at(viewer: Viewer, path: Path, given: dict[str, str], problem: str) -> StartPage:
    """The page with as much as can be told; the first thing that is wrong says why the rest is missing."""
    found: dict[str, Any] = {}
    try:
        how = _request(path, given)
        protocol, _ = actions.prepared(viewer, how)
        importer = actions.imports(how.importer)
        found["preview"] = seen = preview(str(path), protocol.kind, encoding=_encoding(given), importer=importer)
        if seen.importer:
            # A mapping turns recognition off: what was recognised is named from here on.
            given = {**given, "importer": seen.importer}
        data = Input([str(path)], how.fields, _encoding(given), importer=seen.importer)
        rows = [row for _, row in islice(data.rows(protocol), LOOKED_AT)]
        bad = [str(as_sent(row)) for row in rows if isinstance(row, InputError)]
        found["unreadable"] = tuple(bad[:MOST_PROBLEMS])
        if len(bad) < len(rows):
            found["expected"] = expected = await actions.expected(viewer, how, data)
            problem = problem or expected.problem
    except (SteelyardError, HTTPException) as error:
        problem = problem or str(error)
    except ValidationError as error:
        problem = problem or invalid_field(error).problem
    return StartPage(
        upload=path.parent.name,
        file=path.name,
        given=given,
        problem=" ".join(problem.split()),
        protocols=tuple(protocol_names()),
        judges=tuple(actions.judge_names(viewer.config)),
        **found,
    )


routes = [
    Route("/runs/new", upload, methods=["POST"]),
    *page_routes("/runs/new/{upload}", check),
    Route("/runs/new/{upload}", start, methods=["POST"]),
]
