"""The samples of one run as a table: everything about it stands in the address, so that it can be passed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Metric, Vocabulary
from steelyard.records import Language, Record
from steelyard.reports.blocks import NOT_APPLICABLE, one_line, score
from steelyard.reports.html.page import score_tone
from steelyard.reports.html.richtext import plain
from steelyard.reports.html.views import Chip, chip
from steelyard.reports.model import named
from steelyard.store import RunRow
from steelyard.store.listing import (
    WORST,
    Range,
    SampleQuery,
    SampleRow,
    SampleTable,
    Summary,
    known_summary,
    summary,
    table,
)
from steelyard.text.wording import say
from steelyard.web.addresses import run_address, sample_address, with_query
from steelyard.web.cache import patience_for
from steelyard.web.pages.runs import RunSummary
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import Viewer, viewer_of

MOST_PROBLEMS = 3
MANY = ("status", "flag", "label", "tag")
# Where an address says nothing of an order, those come first that a reader looks for.
IN_ORDER = "seq"
DESCENDING = ":desc"
LONGEST_ANSWER = 150


class SamplesPage(Record):
    """One page of the table, and what there is to filter by; both null while they are being made."""

    run: RunSummary
    query: SampleQuery
    table: SampleTable | None
    summary: Summary | None


class Line(NamedTuple):
    """One row as the page shows it."""

    row: SampleRow
    href: str
    answer: str
    scores: list[tuple[str, str]]
    problems: list[tuple[Chip, int]]


def samples(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    query = query_of(request.query_params)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])
        run = RunSummary.of(row, store)
    shown, found, filters = looked_up(viewer, row, run.n, query, wait=is_json(request))
    model = SamplesPage(run=run, query=shown, table=found, summary=filters)
    names, vocab = score_names(found, filters), vocabulary(row.protocol)
    kept = parameters(query)
    return page(
        request,
        "samples.html",
        model,
        status=200 if found else 202,
        lines=[line(row.id, one, names, vocab, kept, language) for one in found.rows] if found else [],
        names=[(name, vocab.metric_words(name, language)) for name in names],
        turn=partial(turned, run_address(row.id, "samples"), kept),
        queue_href=turned(run_address(row.id, "queues"), kept, sort=None),
        filter_query=turned("", kept),
        filters=list(active(query, vocab, language)),
        sort=sort_of(shown),
        sorts=list(sorts(names, vocab, language)),
        label_name=partial(label_name, vocab=vocab, language=language),
    )


def looked_up(
    viewer: Viewer, row: RunRow, n: int, query: SampleQuery, *, wait: bool
) -> tuple[SampleQuery, SampleTable | None, Summary | None]:
    """What is shown, its page, and the filters. The table is made first, in the background where it is long; until then
    a reader without special wishes sees the first samples in the order of the input."""

    def summed() -> Summary:
        with viewer.store() as store:
            return summary(store, row.id)

    with viewer.store() as store:
        filters = known_summary(store, row.id)
    if filters is None:
        patience = None if wait else patience_for(n)
        filters = viewer.cache.get(("summary", row.id, row.finished, n), summed, patience)
    if filters is None and query.model_copy(update={"sort": IN_ORDER}).is_plain and query.sort in (WORST, IN_ORDER):
        query = query.model_copy(update={"sort": IN_ORDER})
    elif filters is None:
        return query, None, None
    with viewer.store() as store:
        return query, table(store, row.id, query), filters


# --- the query in the address ----------------------------------------------------------------------


def query_of(given: QueryParams) -> SampleQuery:
    """The query as an address says it; what makes no sense is named."""
    low, high, of = given.get("low"), given.get("high"), given.get("score")
    sort = given.get("sort") or WORST
    wanted: dict[str, Any] = {
        "search": given.get("q", ""),
        "statuses": _several(given, "status"),
        "flags": _several(given, "flag"),
        "labels": _several(given, "label"),
        "tags": _several(given, "tag"),
        "scores": {of: Range.model_validate({"low": low or None, "high": high or None})}
        if of and (low or high)
        else {},
        "sort": sort.removesuffix(DESCENDING),
        "descending": sort.endswith(DESCENDING),
        "page": given.get("page") or 1,
        "per_page": given.get("per") or 50,
    }
    return SampleQuery.model_validate(wanted)


def sorts(names: list[str], vocab: Vocabulary, language: Language) -> Iterator[tuple[str, str]]:
    """The orders to choose from, as `sort` of an address has them."""
    yield WORST, say(language, "viewer.table.worst")
    yield IN_ORDER, say(language, "viewer.table.in_order")
    yield "id", say(language, "report.id")
    for name in names:
        for sort, key in ((name, "ascending"), (f"{name}{DESCENDING}", "descending")):
            yield sort, say(language, f"viewer.table.{key}").format(name=vocab.metric_words(name, language))


def sort_of(query: SampleQuery) -> str:
    return f"{query.sort}{DESCENDING}" if query.descending else query.sort


def _several(given: QueryParams, name: str) -> tuple[str, ...]:
    return tuple(value for value in given.getlist(name) if value)


def parameters(query: SampleQuery) -> dict[str, Any]:
    """The same as parameters of an address; what is as usual is left out."""
    found: dict[str, Any] = {"q": query.search, "status": list(query.statuses), "flag": list(query.flags)}
    found |= {"label": list(query.labels), "tag": list(query.tags)}
    for name, ends in query.scores.items():
        found |= {"score": name, "low": _short(ends.low), "high": _short(ends.high)}
    sort = sort_of(query)
    found |= {"sort": sort if sort != WORST else None}
    found |= {"page": query.page if query.page > 1 else None, "per": query.per_page if query.per_page != 50 else None}
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def turned(path: str, kept: Mapping[str, Any], **changes: Any) -> str:
    """The table's address with something changed; whatever is changed leads to the first page."""
    return with_query(path, {**kept, "page": None, **changes})


def active(query: SampleQuery, vocab: Vocabulary, language: Language) -> Iterator[tuple[str, str, str]]:
    """The filters that are on: their parameter, their value, and how they read."""
    for name, values in zip(MANY, (query.statuses, query.flags, query.labels, query.tags), strict=True):
        for value in values:
            shown = label_name(value, vocab, language) if name == "label" else value
            yield name, value, named(language, "status", value) if name == "status" else shown
    for name, ends in query.scores.items():
        low, high = _short(ends.low) or "…", _short(ends.high) or "…"
        yield "score", name, f"{vocab.metric_words(name, language)} {low} – {high}"


def label_name(value: str, vocab: Vocabulary, language: Language) -> str:
    kind, _, label = value.partition(":")
    return f"{vocab.aspect_words(kind, language)} · {vocab.label_words(kind, label, language)}"


# --- rows ------------------------------------------------------------------------------------------


def score_names(found: SampleTable | None, filters: Summary | None) -> list[str]:
    if filters:
        return list(filters.scores)
    return list(dict.fromkeys(name for row in (found.rows if found else ()) for name in row.scores))


def line(
    run: str, row: SampleRow, names: list[str], vocab: Vocabulary, kept: Mapping[str, Any], language: Language
) -> Line:
    values = [shown(vocab.metric(name), row.scores.get(name), vocab, language) for name in names]
    found = [(aspect, label, n) for key, n in row.labels.items() for aspect, _, label in [key.partition(":")]]
    problems = sorted((entry for entry in found if _is_listed(vocab, *entry[:2])), key=lambda e: _order(vocab, *e[:2]))
    chips = [(chip(language, vocab, aspect, label), n) for aspect, label, n in problems if n]
    answer = one_line(plain(row.answer), LONGEST_ANSWER) if row.title != row.answer else ""
    return Line(row, sample_address(run, row.id, **kept), answer, values, chips[:MOST_PROBLEMS])


def _is_listed(vocab: Vocabulary, aspect: str, label: str) -> bool:
    # No problem, but a reader must see where a tolerance was used.
    return vocab.label(aspect, label).is_against or any(aspect == of for of, _ in vocab.flagged())


def _order(vocab: Vocabulary, aspect: str, label: str) -> tuple[int, int]:
    """What is wrong first, then what only a flag makes right, then what is merely open."""
    return (0, 99) if not vocab.label(aspect, label).is_against else vocab.severity(aspect, label)


def shown(metric: Metric, value: float | None, vocab: Vocabulary, language: Language) -> tuple[str, str]:
    """A score and its tone. Neither yes nor no is good in itself where a metric is neutral."""
    if metric.direction == "neither" and metric.scale == "binary":
        text = NOT_APPLICABLE if value is None else vocab.label_words(metric.name, str(int(value)), language)
        return text, "plain"
    return score(value, metric.mean_scale), score_tone(value, metric)


routes = page_routes("/runs/{run}/samples", samples)
