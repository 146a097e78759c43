"""What runs found: the table of samples, single ones, and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from steelyard.engine import exports
from steelyard.records import Record, Sample, Status
from steelyard.reports.comparison import Comparison
from steelyard.reports.files import BATCH, safe_cell
from steelyard.store.labels import HumanLabel
from steelyard.store.listing import Range, SampleQuery, SampleTable, table
from steelyard.trust.comparison import compare
from steelyard.web.addresses import as_file
from steelyard.web.pages.compare import sides_of
from steelyard.web.viewer import Viewer, viewer_of

router = APIRouter(tags=["results"])
RunName = Annotated[str, Query(min_length=1, max_length=200, description="a run: its id, its number, or last")]
Words = Annotated[list[str], Query(max_length=50)]


class SampleDetail(Record):
    """A judged sample: what was given, what came of it (a result line with its notes), what people said."""

    sample: Sample
    result: dict[str, Any]
    labels: tuple[HumanLabel, ...]


@router.get("/runs/{run}/samples")
def list_samples(
    request: Request,
    run: str,
    q: Annotated[str, Query(max_length=1000, description="stands in id, question, answer or tags")] = "",
    status: Annotated[list[Status], Query()] = [],  # noqa: B006 (FastAPI copies it)
    flag: Words = [],  # noqa: B006
    label: Annotated[list[str], Query(max_length=50, description="kind:label, as the counts of labels name it")] = [],  # noqa: B006
    tag: Words = [],  # noqa: B006
    score: Annotated[
        str | None,
        Query(pattern="^[A-Za-z_][A-Za-z0-9_]*$", max_length=64, description="which score low and high mean"),
    ] = None,
    low: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    high: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    sort: Annotated[
        str,
        Query(
            pattern="^[A-Za-z_][A-Za-z0-9_]*$", max_length=64, description="seq, id, status, title, flags, or a score"
        ),
    ] = "seq",
    descending: bool = False,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    per_page: Annotated[int, Query(ge=1, le=500)] = 50,
) -> SampleTable:
    """One page of a run's samples. Several values of a filter mean any of them, several filters all."""
    query = SampleQuery(
        search=q,
        statuses=tuple(status),
        flags=tuple(flag),
        labels=tuple(label),
        tags=tuple(tag),
        scores={score: Range(low=low, high=high)} if score else {},
        sort=sort,
        descending=descending,
        page=page,
        per_page=per_page,
    )
    with viewer_of(request).store() as store:
        return table(store, store.run(run).id, query)


@router.get("/runs/{run}/samples/{sample:path}")
def get_sample(
    request: Request, run: str, sample: Annotated[str, Path(description="the sample's id, percent-encoded")]
) -> SampleDetail:
    """One sample in full."""
    with viewer_of(request).store() as store:
        row = store.run(run)
        found = store.verdict(row.id, sample)
        if found is None:
            raise HTTPException(404, f"run {row.id} has no sample {sample!r}")
        judged, verdict = found
        line = verdict.line() | {"notes": dict(verdict.notes)}
        return SampleDetail(sample=judged, result=line, labels=tuple(store.labels(row.id, sample)))


@router.get("/compare")
def compare_runs(
    request: Request,
    a: RunName,
    b: RunName,
    metric: Annotated[
        list[str], Query(max_length=50, description="only these scores; fewer questions decide more")
    ] = [],  # noqa: B006
    anyway: Annotated[
        bool,
        Query(description="compare runs of different protocols, judges, prompts, options or questions, and mark it"),
    ] = False,
) -> Comparison:
    """B against A, as `steelyard compare` has it. What it refuses is refused here: 422, `not_comparable`, with the
    reasons."""
    with viewer_of(request).store() as store:
        return compare(*sides_of(store, store.run(a), store.run(b)), metrics=metric, anyway=anyway)


def _file(kind: str) -> dict[str, Any]:
    return {"response_class": Response, "responses": {200: {"content": {kind: {"schema": {"type": "string"}}}}}}


@router.get("/runs/{run}/results.jsonl", **_file("application/x-ndjson"))
def result_lines(request: Request, run: str) -> Response:
    """All result lines, as `-o` writes them."""
    viewer = viewer_of(request)
    id = _id(viewer, run)

    def lines() -> Iterator[str]:
        with viewer.store() as store:
            for line in store.lines(id):
                yield f"{line}\n"

    return _download(lines(), "application/x-ndjson", f"steelyard-{id}.jsonl")


@router.get("/runs/{run}/results.csv", **_file("text/csv; charset=utf-8"))
def result_table(request: Request, run: str, items: bool = False) -> Response:
    """A row per sample, or per labelled item. What a spreadsheet would run as a formula is text."""
    viewer = viewer_of(request)
    id = _id(viewer, run)

    def lines() -> Iterator[str]:
        with viewer.store() as store:
            yield from csv_lines(exports.rows(store, store.run(id), items=items))

    return _download(lines(), "text/csv; charset=utf-8", f"steelyard-{id}.csv")


def csv_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """As `export` writes it, piece by piece."""
    first = list(islice(rows, BATCH))
    columns = list(dict.fromkeys(name for row in first for name in row))
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, extrasaction="ignore", restval="")
    written.write("\ufeff")
    writer.writeheader()
    for row in chain(first, rows):
        writer.writerow({name: safe_cell(value) for name, value in row.items()})
        yield written.getvalue()
        written.seek(0)
        written.truncate()
    yield written.getvalue()


def _id(viewer: Viewer, run: str) -> str:
    with viewer.store() as store:
        return store.run(run).id


def _download(lines: Iterator[str], kind: str, name: str) -> Response:
    return StreamingResponse(lines, media_type=kind, headers={"Content-Disposition": as_file(name)})
