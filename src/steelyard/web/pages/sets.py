"""Sets of samples: what there is, what each version holds, and what was added to it from runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from steelyard.engine.manifest import now
from steelyard.records import DialogueSample, Record, Sample
from steelyard.reports.blocks import one_line
from steelyard.reports.html.richtext import plain
from steelyard.store import SampleSet, SetVersion, Store
from steelyard.store.listing import chosen
from steelyard.web.addresses import as_file
from steelyard.web.pages.runs import to_the_minute, whole
from steelyard.web.pages.samples import query_of
from steelyard.web.rendering import page, page_routes, with_query
from steelyard.web.viewer import Viewer, viewer_of

PER_PAGE = 50
LONGEST_TEXT = 160
# How the form says that all samples of a filter are meant, and not the ones that were ticked.
BY_FILTER = "filter"


class SetSummary(Record):
    """A set as lists and headings show it."""

    id: int
    project: str
    name: str
    version: int
    changed: str
    samples: int

    @classmethod
    def of(cls, found: SampleSet) -> SetSummary:
        return cls(**found._asdict())


class VersionSummary(Record):
    version: int
    time: str
    author: str
    note: str
    samples: int

    @classmethod
    def of(cls, found: SetVersion) -> VersionSummary:
        return cls(**found._asdict())


class SetsPage(Record):
    sets: tuple[SetSummary, ...]


class HeldSample(Record):
    """A sample of a set: its beginning, the run that it was taken from, and the version that it came with."""

    id: str
    title: str
    answer: str
    run: str
    has_run: bool
    added_in: int


class SetPage(Record):
    """One version of a set, page by page, and what its versions are."""

    set: SetSummary
    version: VersionSummary
    versions: tuple[VersionSummary, ...]
    samples: tuple[HeldSample, ...]
    page: int
    pages: int


def sets(request: Request) -> Response:
    with viewer_of(request).store() as store:
        model = SetsPage(sets=tuple(map(SetSummary.of, store.sets())))
    return page(request, "sets.html", model, clock=to_the_minute)


def one(request: Request) -> Response:
    with viewer_of(request).store() as store:
        found = store.sample_set(request.path_params["set"])
        version = _version(store, found, request)
        pages = max(1, math.ceil(version.samples / PER_PAGE))
        at = min(pages, max(1, whole(request.query_params.get("page"))))
        held = list(store.set_samples(found.id, version.version, start=(at - 1) * PER_PAGE, limit=PER_PAGE))
        runs = {row.id for row in store.runs(project=found.project)}
        model = SetPage(
            set=SetSummary.of(found),
            version=VersionSummary.of(version),
            versions=tuple(map(VersionSummary.of, store.set_versions(found.id))),
            samples=tuple(
                HeldSample(
                    id=one.sample.id,
                    title=_title(one.sample),
                    answer=_answer(one.sample),
                    run=one.run,
                    has_run=one.run in runs,
                    added_in=one.added_in,
                )
                for one in held
            ),
            page=at,
            pages=pages,
        )
    return page(request, "set.html", model, clock=to_the_minute, turn=partial(_turned, request))


def _turned(request: Request, to: int) -> str:
    return with_query(request, page=to)


def _version(store: Store, found: SampleSet, request: Request) -> SetVersion:
    given = request.query_params.get("version")
    return store.set_version(found.id, whole(given) if given else None)


def _title(sample: Sample) -> str:
    text = sample.turns[0].prompt if isinstance(sample, DialogueSample) else sample.question or sample.answer
    return one_line(text, LONGEST_TEXT)


def _answer(sample: Sample) -> str:
    return one_line(
        plain(sample.turns[0].answer if isinstance(sample, DialogueSample) else sample.answer), LONGEST_TEXT
    )


def lines(request: Request) -> Response:
    """The samples of a version, one to a line, as files of samples have them."""
    given = request.query_params.get("version")
    return sent_lines(viewer_of(request), request.path_params["set"], whole(given) if given else None)


def sent_lines(viewer: Viewer, number: str, given: int | None) -> Response:
    with viewer.store() as store:
        found = store.sample_set(number)
        version = store.set_version(found.id, given)

    def streamed() -> Iterator[str]:
        with viewer.store() as store:
            for one in store.set_samples(found.id, version.version):
                yield f"{one.sample.model_dump_json(exclude_defaults=True)}\n"

    headers = {"Content-Disposition": as_file(f"{found.name}-{version.version}.jsonl")}
    return StreamingResponse(streamed(), media_type="application/x-ndjson", headers=headers)


# --- acting ----------------------------------------------------------------------------------------


async def add(request: Request) -> Response:
    """The form on a run's table and on every sample: the samples that were ticked, or all of the filter in the
    address."""
    async with request.form(max_files=0, max_fields=1000) as form:
        found = await run_in_threadpool(_added, viewer_of(request), request, form)
    return RedirectResponse(f"/sets/{found.id}", 303)


def _added(viewer: Viewer, request: Request, form: FormData) -> SampleSet:
    with viewer.store() as store:
        run = store.run(request.path_params["run"]).id
        by_filter = form.get("what") == BY_FILTER
        places = chosen(store, run, query_of(request.query_params)) if by_filter else []
        named = [] if by_filter else [str(id) for id in form.getlist("sample")]
        return store.add_to_set(
            _text(form, "name"),
            run,
            named,
            places=places,
            time=now(),
            author=viewer.person or "",
            note=_text(form, "note"),
        )


async def remove(request: Request) -> Response:
    async with request.form(max_files=0, max_fields=1000) as form:
        id = await run_in_threadpool(_removed, viewer_of(request), request.path_params["set"], form)
    return RedirectResponse(f"/sets/{id}", 303)


def _removed(viewer: Viewer, number: str, form: FormData) -> int:
    with viewer.store() as store:
        found = store.sample_set(number)
        gone = [str(id) for id in form.getlist("sample")]
        author, note = viewer.person or "", _text(form, "note")
        return store.remove_from_set(found.id, gone, time=now(), author=author, note=note).id


def delete(request: Request) -> Response:
    with viewer_of(request).store() as store:
        store.delete_set(store.sample_set(request.path_params["set"]).id)
    return RedirectResponse("/sets", 303)


def _text(form: FormData, name: str) -> str:
    given = form.get(name)
    return given.strip() if isinstance(given, str) else ""


routes = [
    *page_routes("/sets", sets),
    Route("/sets/{set}/samples.jsonl", lines, methods=["GET"]),
    Route("/sets/{set}/remove", remove, methods=["POST"]),
    Route("/sets/{set}/delete", delete, methods=["POST"]),
    *page_routes("/sets/{set}", one),
    Route("/runs/{run}/sets", add, methods=["POST"]),
]
