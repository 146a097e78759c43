"""Any number of runs in one table, each against a chosen one; two of them lead to their own comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from steelyard.protocols import vocabulary
from steelyard.records import Language, Record
from steelyard.reports.blocks import interval, number
from steelyard.reports.comparison import Comparison, ComparisonPage, ends, p_text, signed
from steelyard.reports.html import charts
from steelyard.text.wording import say
from steelyard.web.addresses import with_query
from steelyard.web.cache import PATIENCE
from steelyard.web.history import Against, Refusal, RunFigures, history
from steelyard.web.pages.compare import TONES
from steelyard.web.pages.runs import RunSummary
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import viewer_of

MOST_RUNS = 50


class ComparedRun(Record):
    """A run of the table. `against` compares it with the chosen one; null for that one, and until it is counted."""

    run: RunSummary
    figures: RunFigures | None = None
    against: Against | None = None


class CompareManyPage(Record):
    """Runs, oldest first; `to` is the one that the others are compared with: the given one, else the baseline, else
    the oldest."""

    runs: tuple[ComparedRun, ...]
    to: str
    is_complete: bool = Field(description="whether nothing is still being counted")


def compare_many(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    given = request.query_params
    with viewer.store() as store:
        named = {row.id: row for row in (store.run(name) for name in given.getlist("run")[:MOST_RUNS])}
        rows = sorted(named.values(), key=lambda row: row.number)
        if len(rows) < 2 and is_json(request):
            raise HTTPException(400, "name two runs or more: ?run=ID&run=ID")
        if len(rows) < 2 or (len(rows) == 2 and "to" not in given and not is_json(request)):
            chosen = dict(zip("ab", (row.id for row in rows), strict=False))
            return RedirectResponse(with_query("/compare", chosen), 303)
        summaries = {row.id: RunSummary.of(row, store) for row in rows}
        asked = store.run(given["to"]).id if given.get("to") else ""
    baseline = next((row.id for row in rows if row.baseline), rows[0].id)
    to = asked if asked in named else baseline
    pairs = [(to, row.id) for row in rows if row.id != to]
    known = history(viewer, rows, pairs, None if is_json(request) else PATIENCE)
    model = CompareManyPage(
        runs=tuple(
            ComparedRun(
                run=summaries[row.id], figures=known.figures.get(row.id), against=known.against.get((to, row.id))
            )
            for row in rows
        ),
        to=to,
        is_complete=known.is_complete,
    )
    mains = dict.fromkeys((one.run.protocol, name) for one in model.runs if one.figures for name in one.figures.scores)
    metrics = [
        (metric_heading(protocol, name, language), list(rows_of(model, name, language))) for protocol, name in mains
    ]
    return page(request, "compare_many.html", model, metrics=metrics, chosen=[row.id for row in rows])


def metric_heading(protocol: str, name: str, language: Language) -> str:
    return vocabulary(protocol).metric_words(name, language)


def rows_of(model: CompareManyPage, name: str, language: Language) -> Iterator[dict[str, Any]]:
    """One score as a table: each run with its value, and its difference from the chosen one on a common axis."""
    changes = {one.run.id: _change(one.against, name) for one in model.runs}
    moved = (abs(end) for c in changes.values() if c for end in (c.difference, *(c.interval or ())))
    reach = max(moved, default=0.0) or 1.0
    for one in model.runs:
        if one.figures and name not in one.figures.scores:
            continue
        scale = vocabulary(one.run.protocol).metric(name).mean_scale
        estimate = one.figures.scores[name] if one.figures else None
        row: dict[str, Any] = {
            "run": one.run,
            "is_chosen": one.run.id == model.to,
            "value": number(estimate.value, scale) if estimate else "…",
            "interval": interval(estimate.interval, scale) if estimate else "",
            "href": with_query("/compare", {"a": model.to, "b": one.run.id}),
            "refused": "",
            "bar": "",
        }
        change = changes[one.run.id]
        if isinstance(one.against, Refusal):
            codes = dict.fromkeys(code for code, _ in one.against.reasons)
            row["refused"] = say(language, "report.comma").join(say(language, f"compare.mark.{code}") for code in codes)
        elif change and isinstance(one.against, Comparison):
            tone = TONES[change.outcome]
            comparison_page = ComparisonPage(one.against.model_copy(update={"language": language}))
            row |= {
                "n": change.n,
                "difference": signed(change.difference, change.scale),
                "ends": ends(change.interval, change.scale),
                "p": p_text(change.p_adjusted),
                "outcome": comparison_page.decision(change),
                "tone": tone,
                "bar": charts.difference_bar(change.difference, change.interval, reach * 1.05, tone),
            }
        yield row


def _change(against: Against | None, name: str) -> Any:
    if not isinstance(against, Comparison):
        return None
    return next((change for change in against.metrics if change.metric == name), None)


routes = page_routes("/compare/runs", compare_many)
