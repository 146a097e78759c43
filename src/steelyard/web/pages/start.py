"""A new run, checked before it starts: the first rows, the columns of its fields, what it would cost, its budget.

It is made from an upload that waits, or from a version of a set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.engine.inputs import Input
from steelyard.errors import InputError, SteelyardError, invalid_field
from steelyard.protocols import Protocol, check_together, get_protocol, options_by_protocol, protocol_names
from steelyard.protocols.rubric import inline
from steelyard.records import DialogueSample, Record, Sample
from steelyard.samples import PLAIN, importer_names, takes_names
from steelyard.samples.preview import LOOKED_AT, ROWS, FilePreview, PreviewRow, beginning, preview
from steelyard.store import run_identity
from steelyard.text.wording import say
from steelyard.web import actions
from steelyard.web.pages.identity import COMMAS, meta_of
from steelyard.web.rendering import language_of, page, page_routes
from steelyard.web.uploads import as_sent, held, hold, keep_file, taken
from steelyard.web.viewer import Viewer, viewer_of

# How the form calls the column of a field.
COLUMN = "column."
CALLED = ("project", "name", "tags", "meta")
LIMITS = ("max_cost", "max_tokens")
ONCE = ("judge", "importer", "encoding", "options", "rubric", *CALLED, *LIMITS)
SEVERAL = "protocol"
MOST_PROBLEMS = 5
LARGEST_RUBRIC = 1 << 20
# A version of a set where an upload would be named.
SET = re.compile(r"set-([0-9]{1,9})-([0-9]{1,9})")


class ExpectedRun(actions.Expected):
    """What one of the runs would take."""

    protocol: str


class StartPage(Record):
    """Samples that wait to be judged: an upload, or a version of a set. `given` is what was entered, as it was
    entered; several protocols stand with commas between them."""

    upload: str
    file: str
    given: dict[str, str]
    preview: FilePreview | None = None
    unreadable: tuple[str, ...] = Field(default=(), description="what is wrong with rows at the beginning")
    expected: tuple[ExpectedRun, ...] = ()
    problem: str = ""
    protocols: tuple[str, ...]
    judges: tuple[str, ...]

    @property
    def chosen(self) -> tuple[str, ...]:
        return _names(self.given) or self.protocols[:1]


async def upload(request: Request) -> Response:
    """Keep the file of the form on the list of runs, and go on to what is in it."""
    viewer = viewer_of(request)
    async with request.form(max_files=1, max_fields=20) as form:
        name = await run_in_threadpool(_kept, viewer, form)
        given = _entered(form)
    return RedirectResponse(f"/runs/new/{name}?{urlencode(given)}", 303)


def _kept(viewer: Viewer, form: FormData) -> str:
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InputError("choose a file of samples", field="file")
    return hold(keep_file(viewer.uploads, file.filename, file.file, viewer.sizes.unpacked), viewer.person)


async def opened(request: Request) -> Response:
    return await _shown(request, _entered(request.query_params))


async def check(request: Request) -> Response:
    """The form, looked at again; nothing is started."""
    return await _shown(request, await _sent(request))


async def start(request: Request) -> Response:
    """Start a run for each protocol; where that cannot be, the page says why, with all that was entered."""
    viewer = viewer_of(request)
    given = await _sent(request)
    try:
        await run_in_threadpool(_start, viewer, request, given)
    except ValidationError as error:
        found = invalid_field(error)
        return await _shown(request, given, f"{found.field}: {found.problem}")
    except SteelyardError as error:
        return await _shown(request, given, str(error))
    return RedirectResponse("/runs", 303)


def _start(viewer: Viewer, request: Request, given: Mapping[str, str]) -> None:
    source = _source(viewer, request)
    hows = list(_requests(request, given))
    limits = {name: given[name] for name in LIMITS if name in given}
    spending = actions.Spending.model_validate(limits)
    with taken(source, viewer.person) if isinstance(source, Path) else nullcontext():
        actions.start_together(viewer, hows, source, spending=spending, encoding=_encoding(given))


def _source(viewer: Viewer, request: Request) -> Path | actions.SetSource:
    name = request.path_params["upload"]
    if found := SET.fullmatch(name):
        with viewer.store() as store:
            chosen = store.sample_set(found[1])
            return actions.SetSource(chosen, store.set_version(chosen.id, int(found[2])).version)
    return held(viewer.uploads, name, viewer.person)


# --- what was entered ------------------------------------------------------------------------------


async def _sent(request: Request) -> dict[str, str]:
    async with request.form(max_files=1, max_fields=100) as form:
        given = _entered(form)
        file = form.get("rubric_file")
        if isinstance(file, UploadFile) and file.filename:
            content = await file.read(LARGEST_RUBRIC + 1)
            if len(content) > LARGEST_RUBRIC:
                raise HTTPException(413, f"a rubric has at most {LARGEST_RUBRIC:,} bytes")
            given["rubric"] = content.decode("utf-8", "replace").strip()
    return given


def _entered(values: FormData | QueryParams) -> dict[str, str]:
    """What the form holds, without what was left empty."""
    texts = [(name, value.strip()) for name, value in values.multi_items() if isinstance(value, str)]
    given = {name: value for name, value in texts if value and (name in ONCE or name.startswith(COLUMN))}
    if names := [value for name, value in texts if value and name == SEVERAL]:
        given[SEVERAL] = ",".join(dict.fromkeys(names))
    return given


def _encoding(given: Mapping[str, str]) -> str:
    return given.get("encoding", "utf-8")


def _names(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in given.get(SEVERAL, "").split(",") if name)


def _protocols(given: Mapping[str, str]) -> list[Protocol]:
    own = [get_protocol(inline(given["rubric"]))] if "rubric" in given else []
    named = [get_protocol(name, paths=False) for name in _names(given)]
    found = [*named, *own] or [get_protocol(protocol_names()[0])]
    check_together(found)
    return found


def _requests(request: Request, given: Mapping[str, str]) -> Iterator[actions.RunRequest]:
    """How each of the runs is to judge."""
    problem = say(language_of(request), "viewer.identity.line")
    tags = [tag.strip() for tag in given.get("tags", "").translate(COMMAS).split(",") if tag.strip()]
    meta = meta_of(given.get("meta", ""), problem)
    called = run_identity({"name": given.get("name", ""), "tags": tags, "meta": meta})
    named: dict[str, Any] = {name: given[name] for name in ("judge", "importer", "project") if name in given}
    fields = {name.removeprefix(COLUMN): value for name, value in given.items() if name.startswith(COLUMN)}
    protocols = _protocols(given)
    options = {name: str(value) for name, value in meta_of(given.get("options", ""), problem, "options").items()}
    for protocol, own in zip(protocols, options_by_protocol(protocols, options), strict=True):
        yield actions.RunRequest(protocol=protocol.name, options=own, fields=fields, called=called, **named)


# --- the page --------------------------------------------------------------------------------------


async def _shown(request: Request, given: dict[str, str], problem: str = "") -> Response:
    viewer = viewer_of(request)
    source = await run_in_threadpool(_source, viewer, request)

    async def looked_at() -> StartPage:
        return await _looked_at(viewer, request, source, given, problem)

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


async def _looked_at(
    viewer: Viewer, request: Request, source: Path | actions.SetSource, given: dict[str, str], problem: str
) -> StartPage:
    """The page with as much as can be told; the first thing that is wrong says why the rest is missing."""
    found: dict[str, Any] = {}
    if isinstance(source, actions.SetSource):
        given = {"project": source.found.project, **given}
    try:
        hows = list(_requests(request, given))
        with _input(viewer, source, hows[0], given) as (seen, data):
            found["preview"] = seen
            if seen.importer:
                # A mapping turns recognition off: what was recognised is named from here on.
                given = {**given, "importer": seen.importer}
            for how in hows:
                protocol, _ = actions.prepared(viewer, how)
                rows = [row for _, row in islice(data.rows(protocol), LOOKED_AT)]
                bad = [str(as_sent(row)) for row in rows if isinstance(row, InputError)]
                found["unreadable"] = tuple(dict.fromkeys((*found.get("unreadable", ()), *bad)))[:MOST_PROBLEMS]
                if len(bad) < len(rows):
                    expected = await actions.expected(viewer, how, data)
                    named = ExpectedRun(protocol=protocol.name, **dict(expected))
                    found["expected"] = (*found.get("expected", ()), named)
                    problem = problem or expected.problem
    except (SteelyardError, HTTPException) as error:
        problem = problem or str(error)
    except ValidationError as error:
        problem = problem or invalid_field(error).problem
    return StartPage(
        upload=request.path_params["upload"],
        file=source.name,
        given=given,
        problem=" ".join(problem.split()),
        protocols=tuple(protocol_names()),
        judges=tuple(actions.judge_names(viewer.config)),
        **found,
    )


@contextmanager
def _input(
    viewer: Viewer, source: Path | actions.SetSource, how: actions.RunRequest, given: Mapping[str, str]
) -> Iterator[tuple[FilePreview, Input]]:
    """The samples with what their beginning looks like."""
    if isinstance(source, actions.SetSource):
        with viewer.store() as store:
            data = source.input(store)
            first = [sample for sample in islice(data.given or (), ROWS) if not isinstance(sample, InputError)]
            yield _of_set(first), data
        return
    importer = actions.chosen_importer(how.importer)
    kind = actions.prepared(viewer, how)[0].kind
    seen = preview(str(source), kind, encoding=_encoding(given), importer=importer)
    yield seen, Input([str(source)], how.fields, _encoding(given), importer=seen.importer)


def _of_set(samples: list[Sample]) -> FilePreview:
    """Of a set no column needs to be mapped."""
    rows = tuple(
        PreviewRow(number=number, cells={name: beginning(value) for name, value in _cells(sample).items()})
        for number, sample in enumerate(samples, 1)
    )
    return FilePreview(columns=tuple(rows[0].cells) if rows else (), rows=rows, detected={}, fields=())


def _cells(sample: Sample) -> dict[str, str]:
    if isinstance(sample, DialogueSample):
        return {"id": sample.id, "prompt": sample.turns[0].prompt, "answer": sample.turns[0].answer}
    return {"id": sample.id, "question": sample.question, "answer": sample.answer}


routes = [
    Route("/runs/new", upload, methods=["POST"]),
    *page_routes("/runs/new/{upload}/check", opened),
    *page_routes("/runs/new/{upload}", opened),
    Route("/runs/new/{upload}/check", check, methods=["POST"]),
    Route("/runs/new/{upload}", start, methods=["POST"]),
]
