"""One run: how good the assistant is, where it fails, and the files to take away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pydantic import Field
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from steelyard.engine import exports
from steelyard.protocols import vocabulary
from steelyard.records import Language, Record
from steelyard.reports.blocks import number, score
from steelyard.reports.html import Lowest, render
from steelyard.reports.html.page import LowestLine, PageLinks, ReportPage, score_tone
from steelyard.reports.model import Report, in_language
from steelyard.store import RunRow, Store
from steelyard.web.actions import progress_of
from steelyard.web.addresses import as_file, run_address, sample_address
from steelyard.web.cache import patience_for
from steelyard.web.jobs import RunProgress
from steelyard.web.pages.runs import RunSummary
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import viewer_of

SAMPLES_IN_REPORT = 50
MOST_LOW = 5


class RunPage(Record):
    """A run with its report, which is null while it is still being counted."""

    run: RunSummary
    report: Report | None
    is_current: bool = Field(description="whether the report counts all that is judged, not just what was so far")
    progress: RunProgress | None = Field(default=None, description="how far it is, while it is at work")
    n_labels: int
    annotators: tuple[str, ...]
    projects: tuple[str, ...] = Field(default=(), description="the projects there are, to choose from")


class SamplePlaces(PageLinks):
    """The parts of a live report lead to the samples that they are about."""

    def __init__(self, run: str) -> None:
        self.run = run

    def label(self, kind: str, label: str) -> str:
        return run_address(self.run, "samples", label=f"{kind}:{label}")

    def group(self, what: str, name: str) -> str:
        return run_address(self.run, "samples", tag=name) if what == "tag" else super().group(what, name)

    def flag(self, flag: str) -> str:
        return run_address(self.run, "samples", flag=flag)


def run(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])
        summary = RunSummary.of(row, store)
        progress = progress_of(viewer, store, row) if summary.state == "running" else None
        projects = tuple(name for name in store.projects() if name)
        labels = store.label_counts(row.id)
    # A program waits for the numbers; a reader gets the page at once and the numbers when they are there.
    report = viewer.cache.report(viewer.store, row, None if is_json(request) else patience_for(summary.n))
    is_current = report is not None and report.n == summary.n
    report = report or viewer.cache.latest(row.id)
    report = in_language(report, language) if report else None
    annotators = tuple(sorted({one.annotator for one in labels}))
    model = RunPage(
        run=summary,
        report=report,
        is_current=is_current,
        progress=progress,
        n_labels=sum(one.n for one in labels),
        annotators=annotators,
        projects=projects,
    )
    shown = ReportPage(report, places=SamplePlaces(row.id)) if report else None
    lowest = list(lowly(report, row.id)) if report else []
    return page(
        request,
        "run.html",
        model,
        report_page=shown,
        lowest=lowest,
        is_ours=viewer.jobs.get(row.id) is not None,
        scores=list(live_scores(row.protocol, progress, language)) if progress else [],
    )


def live_scores(protocol: str, progress: RunProgress, language: Language) -> Iterator[tuple[str, str, str, str]]:
    """The main scores as they are so far: name, words, scale, value. Those without a value get one by an event."""
    vocab = vocabulary(protocol)
    for name in vocab.mains(metric.name for metric in vocab.metrics):
        scale = vocab.metric(name).mean_scale
        yield name, vocab.metric_words(name, language), scale, number(progress.scores.get(name), scale)


def lowly(report: Report, run: str) -> Iterator[LowestLine]:
    """The lowest samples as lines that lead to them."""
    for low in report.worst[:MOST_LOW]:
        tone = score_tone(low.main_score, report.words.metric(low.metric))
        yield LowestLine(
            low.id, score(low.main_score, report.scale_of(low.metric)), tone, low.why, sample_address(run, low.id)
        )


# --- files -----------------------------------------------------------------------------------------


def download(request: Request, form: str) -> Response:
    """The run as result lines, as a table, or as one HTML file."""
    viewer = viewer_of(request)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])
        if form == "jsonl":
            return _named(StreamingResponse(_lines(viewer.store(), row), media_type="application/x-ndjson"), row, form)
        opened, name = tempfile.mkstemp(suffix=f".{form}", prefix="steelyard-")
        os.close(opened)  # else each download leaves one open, until there are too many
        path = Path(name)
        try:
            if form == "csv":
                exports.write(store, row, path, items=request.query_params.get("items") == "1")
            else:
                path.write_text(_html(request, store, row), encoding="utf-8")
        except BaseException:
            path.unlink()
            raise
    kinds = {"csv": "text/csv; charset=utf-8", "html": "application/octet-stream"}
    # Not as a page: what is in it must not run in the viewer's name.
    return _named(FileResponse(path, media_type=kinds[form], background=BackgroundTask(path.unlink)), row, form)


def _named(response: Response, row: RunRow, form: str) -> Response:
    response.headers["Content-Disposition"] = as_file(f"steelyard-{row.id}.{form}")
    return response


def _lines(store: Store, row: RunRow) -> Iterator[str]:
    with store:
        for line in store.lines(row.id):
            yield line + "\n"


def _html(request: Request, store: Store, row: RunRow) -> str:
    viewer = viewer_of(request)
    lowest = Lowest(SAMPLES_IN_REPORT)
    for sample, verdict in store.verdicts(row.id):
        lowest.add(verdict, sample)
    report = viewer.cache.report(viewer.store, row, patience=None)
    assert report is not None
    return render(report, lowest.chosen(), language_of(request))


FORMS = ("jsonl", "csv", "html")


def _download(form: str) -> Route:
    return Route(f"/runs/{{run}}/results.{form}", partial(download, form=form), methods=["GET"])


routes = [*map(_download, FORMS), *page_routes("/runs/{run}", run)]
