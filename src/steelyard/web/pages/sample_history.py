"""One sample over the runs of its project: what was answered each time, and how it was judged."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from steelyard.protocols import vocabulary
from steelyard.records import DialogueSample, Language, Record, Sample, Verdict
from steelyard.reports.blocks import one_line
from steelyard.reports.html.richtext import plain
from steelyard.reports.html.views import Chip, chip
from steelyard.store import RunRow
from steelyard.web.addresses import sample_address, with_query
from steelyard.web.pages.runs import RunSummary, to_the_minute
from steelyard.web.pages.sample import one
from steelyard.web.pages.samples import shown
from steelyard.web.pages.sets import SetSummary
from steelyard.web.rendering import language_of, page, page_routes
from steelyard.web.viewer import viewer_of

# Newest first; what is older is in the runs themselves.
MOST_RUNS = 200
LONGEST_ANSWER = 600


class SampleInRun(Record):
    """The sample as one run judged it. `labels` counts its labels by `kind:label`."""

    run: str
    number: int
    title: str
    protocol: str
    judge: str
    started: str
    version: str = Field(default="", description="of the assistant, where the run's metadata says it")
    status: str
    scores: dict[str, float | None]
    labels: dict[str, int]
    answer: str
    has_new_answer: bool = Field(description="whether the run before judged another answer, or none")


class SampleHistoryPage(Record):
    """A sample over the runs of its project, newest first, and the sets that hold it."""

    run: RunSummary
    id: str
    runs: tuple[SampleInRun, ...]
    sets: tuple[SetSummary, ...]


class HistoryLine(NamedTuple):
    """One run as the page shows it."""

    entry: SampleInRun
    href: str
    compare: str
    scores: list[tuple[str, tuple[str, str]]]
    labels: list[tuple[Chip, int]]


def history(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    with viewer.store() as store:
        row, _, verdict = one(store, request)
        summary = RunSummary.of(row, store)
        rows = {other.id: other for other in store.runs(project=row.project)}
        found = store.history(verdict.id, list(rows))
        sets = tuple(map(SetSummary.of, store.sets_holding(row.project, verdict.id)))
    entries: list[SampleInRun] = []
    before = ""
    for id in reversed([id for id in rows if id in found]):
        entry = _in_run(rows[id], *found[id], before)
        entries.insert(0, entry)
        before = entry.answer
    model = SampleHistoryPage(run=summary, id=verdict.id, runs=tuple(entries[:MOST_RUNS]), sets=sets)
    lines = [_line(entry, model.id, row.id, language) for entry in model.runs]
    address = sample_address(row.id, verdict.id)
    return page(
        request, "sample_history.html", model, lines=lines, address=address, clock=to_the_minute, beginning=beginning
    )


def _in_run(row: RunRow, sample: Sample, verdict: Verdict, before: str) -> SampleInRun:
    vocab = vocabulary(row.protocol)
    labels = Counter(
        f"{aspect.name}:{label}"
        for item in verdict.items
        for aspect in vocab.kind_of(item.model_dump()).aspects
        if (label := getattr(item, aspect.field, None)) is not None
    )
    answer = "\n".join(turn.answer for turn in sample.turns) if isinstance(sample, DialogueSample) else sample.answer
    return SampleInRun(
        run=row.id,
        number=row.number,
        title=row.name or row.id,
        protocol=row.protocol,
        judge=row.judge,
        started=row.started,
        version=str(row.meta.get("version", "")),
        status=verdict.status,
        scores=dict(verdict.scores),
        labels=dict(labels),
        answer=answer,
        has_new_answer=answer != before,
    )


def _line(entry: SampleInRun, id: str, here: str, language: Language) -> HistoryLine:
    vocab = vocabulary(entry.protocol)
    scores = [
        (vocab.metric_words(name, language), shown(vocab.metric(name), value, vocab, language))
        for name, value in entry.scores.items()
    ]
    labels = [
        (chip(language, vocab, kind, label), n)
        for key, n in entry.labels.items()
        for kind, _, label in [key.partition(":")]
    ]
    pair = {"a": entry.run, "b": here, "id": id, "anyway": "true"}
    compare = with_query("/compare/sample", pair) if entry.run != here else ""
    return HistoryLine(entry, sample_address(entry.run, id), compare, scores, labels)


def beginning(answer: str) -> str:
    return one_line(plain(answer), LONGEST_ANSWER)


routes = page_routes("/runs/{run}/samples/{sample}/history", history)
