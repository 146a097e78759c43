"""One sample: every label in its place, the evidence beside it, and what the judge was asked and said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from steelyard.errors import SteelyardError
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary
from steelyard.records import Language, Record, Sample, Usage, Verdict
from steelyard.reports.html.sample import sample_view
from steelyard.reports.html.views import Chip, ViewLimits, chip
from steelyard.reports.sample import sample_markdown
from steelyard.store import RunRow, Store
from steelyard.store.labels import HumanLabel
from steelyard.store.listing import WORST, SampleQuery, is_listed, neighbours
from steelyard.web.addresses import run_address, sample_address, sample_of
from steelyard.web.exchanges import JudgeCall, exchanges
from steelyard.web.pages.runs import RunSummary
from steelyard.web.pages.samples import IN_ORDER, parameters, query_of
from steelyard.web.rendering import language_of, page, page_routes
from steelyard.web.viewer import viewer_of

# A page of the viewer may hold more than a file that is passed around, but not a novel.
LIMITS = ViewLimits(text=20_000, items=400, passages=100)
LONGEST_SHOWN = 40_000


class ViewerSamplePage(Record):
    """A judged sample with what people said about it."""

    run: RunSummary
    id: str
    sample: Sample
    verdict: dict[str, Any]
    labels: tuple[HumanLabel, ...]


class ExchangesPage(Record):
    """What the judge was asked about a sample and what it said, in order; or why that cannot be told."""

    run: RunSummary
    id: str
    exchanges: tuple[JudgeCall, ...]
    problem: str = ""
    usage: Usage


def sample(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    with viewer.store() as store:
        row, judged, verdict = one(store, request)
        summary = RunSummary.of(row, store)
        labels = tuple(store.labels(row.id, verdict.id))
        query = order = query_of(request.query_params)
        if query.sort == WORST and not is_listed(store, row.id):
            # Nobody has looked at the table yet, and who opens one sample does not wait for it.
            order = query.model_copy(update={"sort": IN_ORDER})
        beside = neighbours_of(store, row.id, verdict.id, order)
    line = verdict.line() | {"notes": dict(verdict.notes)}
    model = ViewerSamplePage(run=summary, id=verdict.id, sample=judged, verdict=line, labels=labels)
    view = sample_view(verdict, judged, language, "s", LIMITS)
    # Who came from a table goes on in its order and returns to it.
    kept = parameters(query)
    links = {"table": run_address(row.id, "samples", **kept)}
    links |= {name: sample_address(row.id, id, **kept) for name, id in beside.items()}
    return page(
        request,
        "sample_page.html",
        model,
        view=view,
        address=sample_address(row.id, verdict.id),
        links=links,
        people=_people(labels, vocabulary(row.protocol), language),
    )


def neighbours_of(store: Store, run: str, id: str, query: SampleQuery) -> dict[str, str]:
    """The ids of the samples before and after this one in the order of the query, where there are any."""
    places = [seq for (seq,) in store.query("SELECT seq FROM samples WHERE run = ? AND id = ?", run, id)]
    found = zip(("previous", "next"), neighbours(store, run, query, places[0]), strict=True) if places else ()
    return {name: id for name, seq in found if seq is not None for id in _ids(store, run, seq)}


def _ids(store: Store, run: str, seq: int) -> Iterator[str]:
    return (id for (id,) in store.query("SELECT id FROM samples WHERE run = ? AND seq = ?", run, seq))


def one(store: Store, request: Request) -> tuple[RunRow, Sample, Verdict]:
    """The run and the sample that the address names."""
    row = store.run(request.path_params["run"])
    return row, *judged_sample(store, row, sample_of(request.path_params["sample"]))


def judged_sample(store: Store, row: RunRow, id: str) -> tuple[Sample, Verdict]:
    found = store.verdict(row.id, id)
    if found is None:
        raise HTTPException(404, f"run {row.id} has no sample {id!r}")
    return found


def _people(
    labels: tuple[HumanLabel, ...], vocab: Vocabulary, language: Language
) -> list[tuple[HumanLabel, str, Chip]]:
    return [
        (label, vocab.aspect_words(label.kind, language), chip(language, vocab, label.kind, label.label))
        for label in labels
    ]


def as_markdown(request: Request) -> Response:
    with viewer_of(request).store() as store:
        _, judged, verdict = one(store, request)
    text = sample_markdown(verdict, judged, language_of(request))
    return PlainTextResponse(text, media_type="text/markdown")


def asked(request: Request) -> Response:
    """The prompts and raw replies, on a page of their own: most readers never open them."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        row, judged, verdict = one(store, request)
        summary = RunSummary.of(row, store)
        found, problem = [], ""
        try:
            found = exchanges(store, row, judged, viewer.config.prompts)
        except SteelyardError as error:
            problem = str(error)
    usage = sum((exchange.usage for exchange in found), Usage())
    model = ExchangesPage(run=summary, id=verdict.id, exchanges=tuple(found), problem=problem, usage=usage)
    address = sample_address(row.id, verdict.id)
    return page(request, "exchanges.html", model, address=address, longest=LONGEST_SHOWN, pretty=pretty)


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


ADDRESS = "/runs/{run}/samples/{sample}"
routes = [
    *page_routes(f"{ADDRESS}/asked", asked),
    Route(f"{ADDRESS}.md", as_markdown, methods=["GET"]),
    *page_routes(ADDRESS, sample),
]
