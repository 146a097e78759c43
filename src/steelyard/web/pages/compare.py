"""Two runs side by side: which is better, how sure that is, who moved, and which labels changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from steelyard.errors import NotComparable
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary
from steelyard.records import DialogueSample, Language, RagSample, Record, Sample, Verdict
from steelyard.reports.blocks import NOT_APPLICABLE, interval, minus, number, score
from steelyard.reports.comparison import Change, Comparison, ComparisonPage, MetricChange, ends, n_text, p_text, signed
from steelyard.reports.html import charts
from steelyard.reports.html.sample import sample_view
from steelyard.reports.html.views import ViewLimits, chip
from steelyard.reports.model import Contestant, Estimate, bracketed
from steelyard.store import RunRow, Store
from steelyard.store.labels import digest
from steelyard.trust.comparison import Judged, compare, why_of
from steelyard.trust.comparison.labels import LabelChange, label_changes
from steelyard.trust.comparison.word_diff import word_changes
from steelyard.web.addresses import sample_address, with_query
from steelyard.web.cache import PATIENCE
from steelyard.web.history import Refusal
from steelyard.web.pages.runs import RunSummary
from steelyard.web.pages.sample import judged_sample
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import Viewer, viewer_of

PER_PAGE = 50
LIMITS = ViewLimits(text=8000, items=200, passages=0)
TONES = {"better": "good", "worse": "bad", "more": "half", "fewer": "half", "undecided": "open"}
Direction = Literal["regressed", "improved"]


class MovedSamples(Record):
    """One page of the samples that moved in one direction."""

    direction: Direction
    page: int
    pages: int
    n: int
    samples: tuple[Change, ...]


class Preference(Record):
    """What a run that compared the answers of these runs with each other found."""

    run: RunSummary
    ranking: tuple[Contestant, ...]


class ComparePage(Record):
    """B against A. Without two runs, only what there is to choose from; `comparison` is null while it is still being
    counted, and where it is refused."""

    runs: tuple[RunSummary, ...]
    a: RunSummary | None = None
    b: RunSummary | None = None
    sentence: str = ""
    refused: Refusal | None = None
    comparison: Comparison | None = None
    moved: MovedSamples | None = None
    preference: Preference | None = None


class CompareSamplePage(Record):
    """One sample in two runs: its scores and every label, those that changed first."""

    a: RunSummary
    b: RunSummary
    id: str
    same_text: bool
    scores: dict[str, tuple[float | int | None, float | int | None]]
    changes: tuple[LabelChange, ...]
    previous: str | None = Field(default=None, description="the sample before it among those that moved")
    next: str | None = None

    @property
    def n_changed(self) -> int:
        return sum(change.change != "same" for change in self.changes)


# --- two runs --------------------------------------------------------------------------------------


def compare_runs(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    with viewer.store() as store:
        runs = tuple(RunSummary.of(row, store) for row in store.runs())
        named_runs = [store.run(name) for side in ("a", "b") if (name := request.query_params.get(side))]
    chosen = [next(run for run in runs if run.id == row.id) for row in named_runs]
    if len(chosen) < 2:
        first = chosen[0] if chosen else None
        proposed = dict(zip("ab", proposal(runs, first), strict=True))
        return page(request, "compare_choose.html", ComparePage(runs=runs, a=first), proposed=proposed)
    a, b = chosen
    anyway = is_forced(request)
    patience = None if is_json(request) else PATIENCE
    found = compared(viewer, named_runs[0], named_runs[1], language, patience, anyway=anyway)
    if found is None:
        return page(request, "compare.html", ComparePage(runs=runs, a=a, b=b), status=202, anyway=anyway)
    if isinstance(found, NotComparable):
        refused = Refusal(reasons=found.reasons, can_be_forced=found.can_be_forced)
        model = ComparePage(runs=runs, a=a, b=b, refused=refused)
        # A reader gets a page; a program must not take it for a comparison.
        return page(request, "compare_refused.html", model, status=422 if is_json(request) else 200)
    direction: Direction = "improved" if request.query_params.get("moved") == "improved" else "regressed"
    if "moved" not in request.query_params and not found.n_regressed and found.n_improved:
        direction = "improved"
    comparison_page = ComparisonPage(found)
    with viewer.store() as store:
        moved = moved_page(store, a.id, b.id, found, direction, page_number(request), language)
    preference = preference_of(viewer, named_runs[0], named_runs[1])
    short = found.model_copy(update={"improved": (), "regressed": ()})
    model = ComparePage(
        runs=runs, a=a, b=b, sentence=comparison_page.sentence(), comparison=short, moved=moved, preference=preference
    )
    given = {"a": a.id, "b": b.id, **({"anyway": "true"} if anyway else {})}
    return page(
        request,
        "compare.html",
        model,
        comparison_page=comparison_page,
        rows=list(metric_rows(found)),
        lines=[sample_line(change, given, found) for change in moved.samples],
        given=given,
        anyway=anyway,
        turn=partial(with_query, "/compare"),
        rate=lambda estimate: number(estimate.value, "ratio") + _bracketed(estimate, language),
    )


def preference_of(viewer: Viewer, a: RunRow, b: RunRow) -> Preference | None:
    """The newest run whose samples are the answers of both; its ranking, once that is counted."""
    with viewer.store() as store:
        row = next((row for row in store.runs() if {a.id, b.id} <= _paired_in(row)), None)
        summary = RunSummary.of(row, store) if row else None
    report = viewer.cache.report(viewer.store, row, PATIENCE) if row else None
    return Preference(run=summary, ranking=report.ranking) if summary and report and report.ranking else None


def _paired_in(row: RunRow) -> set[str]:
    return {str(run) for data in row.manifest.get("data", ()) for run in data.get("runs", ())}


def _bracketed(estimate: Estimate, language: Language) -> str:
    return bracketed(language, interval(estimate.interval, "ratio")) if estimate.interval else ""


def proposal(runs: Sequence[RunSummary], a: RunSummary | None) -> tuple[str, str]:
    """Two runs of one protocol to begin with: the newest as B; as A its project's baseline, else the run before."""
    if a:
        return a.id, next((run.id for run in runs if run.protocol == a.protocol and run.id != a.id), "")
    for place, newer in enumerate(runs):
        baseline = (run for run in runs if run.baseline and run.project == newer.project and run.id != newer.id)
        for older in (*baseline, *runs[place + 1 :]):
            if newer.protocol == older.protocol:
                return older.id, newer.id
    return "", ""


def is_forced(request: Request) -> bool:
    """Whether the reader wants runs compared that are not alike."""
    return request.query_params.get("anyway", "") in ("true", "1")


def compared(
    viewer: Viewer, a: RunRow, b: RunRow, language: Language, patience: float | None = None, *, anyway: bool = False
) -> Comparison | NotComparable | None:
    """The comparison, or why there is none: kept for two runs as they stand. None where that takes longer."""
    with viewer.store() as store:
        state = [(row.id, row.state, row.finished, sum(store.judged(row.id).values())) for row in (a, b)]

    def make() -> Comparison | NotComparable:
        with viewer.store() as store:
            try:
                return compare(*sides_of(store, a, b), anyway=anyway, language=language, listed=None)
            except NotComparable as refusal:
                return refusal

    return viewer.cache.get(("compare", *state, language, anyway), make, patience)


def sides_of(store: Store, a: RunRow, b: RunRow) -> tuple[Judged, Judged]:
    one, other = (Judged(row.id, partial(store.verdicts, row.id), row.manifest) for row in (a, b))
    return one, other


def page_number(request: Request) -> int:
    given = request.query_params.get("page", "1")
    return max(1, int(given)) if given.isdecimal() and len(given) < 8 else 1


def moved_page(
    store: Store, a: str, b: str, found: Comparison, direction: Direction, number: int, language: Language
) -> MovedSamples:
    """So many of the samples that moved. Why is looked up for these alone: in A where one rose, in B where it fell."""
    every = found.regressed if direction == "regressed" else found.improved
    pages = max(1, -(-len(every) // PER_PAGE))
    number = min(number, pages)
    run = b if direction == "regressed" else a
    shown = [_with_why(store, run, change, language) for change in every[(number - 1) * PER_PAGE : number * PER_PAGE]]
    return MovedSamples(direction=direction, page=number, pages=pages, n=len(every), samples=tuple(shown))


def _with_why(store: Store, run: str, change: Change, language: Language) -> Change:
    if change.why:
        return change
    judged = store.verdict(run, change.id)
    return change.model_copy(update={"why": why_of(judged[1], language)}) if judged else change


def metric_rows(found: Comparison) -> Iterator[dict[str, Any]]:
    """The scores as a table shows them, each with its dot and interval on a common axis."""
    reach = max((abs(end) for change in found.metrics for end in _extent(change)), default=0) or 1.0
    comparison_page = ComparisonPage(found)
    for change in found.metrics:
        tone = TONES[change.outcome]
        yield {
            "name": comparison_page.metric(change.metric),
            "a": number(change.a, change.scale),
            "b": number(change.b, change.scale),
            "difference": signed(change.difference, change.scale),
            "interval": ends(change.interval, change.scale),
            "p": p_text(change.p_adjusted),
            "outcome": comparison_page.decision(change),
            "tone": tone,
            "bar": charts.difference_bar(change.difference, change.interval, reach * 1.05, tone),
            "n": n_text(change.n, change.n_only_a, change.n_only_b),
            "rose": change.n_rose,
            "fell": change.n_fell,
            "same": change.n - change.n_rose - change.n_fell,
            "effect": "–" if change.effect is None else minus(f"{change.effect:+.2f}"),
            "lost": f"{change.n_only_a:,} / {change.n_only_b:,}",
        }
    for gap in found.missing:
        if gap.n_a or gap.n_b:
            none = dict.fromkeys(("a", "b", "difference", "interval", "p", "rose", "fell", "same", "effect"), "–")
            yield none | {
                "name": comparison_page.metric(gap.metric),
                "outcome": comparison_page.say("outcome_missing"),
                "tone": "bad",
                "bar": "",
                "n": n_text(0, gap.n_a, gap.n_b),
                "lost": f"{gap.n_a:,} / {gap.n_b:,}",
            }


def _extent(change: MetricChange) -> tuple[float, ...]:
    return (change.difference, *(change.interval or ()))


def sample_line(change: Change, given: Mapping[str, str], found: Comparison) -> dict[str, Any]:
    scale = found.scale_of(change.metric)
    return {
        "id": change.id,
        "href": with_query("/compare/sample", {**given, "id": change.id}),
        "a": score(change.a, scale),
        "b": score(change.b, scale),
        "by": signed(change.b - change.a, scale),
        "why": change.why,
    }


# --- one sample ------------------------------------------------------------------------------------


def compare_sample(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    given = request.query_params
    if missing := [name for name in ("a", "b", "id") if name not in given]:
        raise HTTPException(400, f"{missing[0]} is missing: two runs (a, b) and the id of a sample are needed")
    with viewer.store() as store:
        rows = [store.run(given[side]) for side in ("a", "b")]
        summaries = [RunSummary.of(row, store) for row in rows]
        judged = [judged_sample(store, row, given["id"]) for row in rows]
    one, other = judged
    before, after = _beside(viewer, rows, given["id"], language, is_forced(request))
    answers = [answer_of(sample) for sample, _ in judged]
    model = CompareSamplePage(
        a=summaries[0],
        b=summaries[1],
        id=given["id"],
        same_text=digest(one[0]) == digest(other[0]),
        scores=scores_of(one[1], other[1]),
        changes=tuple(label_changes(one[1], other[1])),
        previous=before,
        next=after,
    )
    sides = {name: given[name] for name in ("a", "b", "anyway") if name in given}
    views = [
        sample_view(verdict, sample, language, side, LIMITS)
        for side, (sample, verdict) in zip("ab", judged, strict=True)
    ]
    return page(
        request,
        "compare_sample.html",
        model,
        views=views,
        addresses=[sample_address(row.id, given["id"]) for row in rows],
        scores=list(score_rows(model.scores, [verdict.protocol for _, verdict in judged], language)),
        back=with_query("/compare", sides),
        links={
            name: with_query("/compare/sample", {**sides, "id": id})
            for name, id in (("previous", before), ("next", after))
            if id is not None
        },
        words=None if answers[0] == answers[1] else word_changes(*answers),
        is_reworded=answers[0] != answers[1],
        changes=[change_row(change, vocabulary(other[1].protocol), language) for change in model.changes],
        asked=_asked(one[0]),
    )


def _beside(
    viewer: Viewer, rows: Sequence[RunRow], id: str, language: Language, anyway: bool
) -> tuple[str | None, str | None]:
    """The samples before and after this one, as the comparison lists those that moved: the worst falls first."""
    found = compared(viewer, rows[0], rows[1], language, PATIENCE, anyway=anyway)
    ids = [change.id for change in (*found.regressed, *found.improved)] if isinstance(found, Comparison) else []
    if id not in ids:
        return None, None
    at = ids.index(id)
    return (ids[at - 1] if at else None), (ids[at + 1] if at + 1 < len(ids) else None)


def answer_of(sample: Sample) -> str:
    """What was judged; of a dialogue, all answers."""
    match sample:
        case RagSample():
            return sample.answer
        case DialogueSample():
            return "\n\n".join(turn.answer for turn in sample.turns)


def _asked(sample: Sample) -> str:
    return getattr(sample, "question", "")


def scores_of(a: Verdict, b: Verdict) -> dict[str, tuple[float | int | None, float | int | None]]:
    return {name: (a.scores.get(name), b.scores.get(name)) for name in dict.fromkeys((*a.scores, *b.scores))}


def score_rows(
    scores: Mapping[str, tuple[float | int | None, float | int | None]], protocols: Sequence[str], language: Language
) -> Iterator[tuple[str, str, str, str]]:
    """The scores side by side, each on its own scale; a difference only where that is one."""
    before, after = map(vocabulary, protocols)
    for name, (a, b) in scores.items():
        scale, other = before.metric(name).mean_scale, after.metric(name).mean_scale
        by = "=" if a == b else NOT_APPLICABLE
        if a is not None and b is not None and a != b and scale == other:
            by = signed(b - a, scale)
        yield after.metric_words(name, language), score(a, scale), score(b, other), by


def change_row(change: LabelChange, vocab: Vocabulary, language: Language) -> dict[str, Any]:
    either = change.a or change.b
    assert either is not None
    sides = [chip(language, vocab, change.kind, side.label) if side else None for side in (change.a, change.b)]
    kind = vocab.kind_with(change.kind)
    text = (vocab.name_words(kind.name, change.name, language) if kind else "") or either.text
    other = change.b.text if change.a and change.b and change.b.text != change.a.text and not change.name else ""
    number = f"{change.turn}.{either.id}" if change.turn is not None else str(either.id)
    reasons = [side.reason if side else "" for side in (change.a, change.b)]
    return {
        "kind": vocab.aspect_words(change.kind, language),
        "number": number,
        "text": text,
        "other": other,
        "a": sides[0],
        "b": sides[1],
        "reasons": reasons,
        "change": change.change,
    }


routes = [*page_routes("/compare/sample", compare_sample), *page_routes("/compare", compare_runs)]
