"""The runs of one project and protocol over time, or by what their metadata says: did the assistant get better?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import NamedTuple

from markupsafe import Markup
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from steelyard.engine.runs import state_of
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Metric
from steelyard.records import Language, Record
from steelyard.reports.blocks import NOT_APPLICABLE, interval, number, one_line
from steelyard.reports.comparison import Comparison, MetricChange, ends, signed
from steelyard.reports.html.charts import tick_text
from steelyard.reports.html.trend_chart import TrendPoint, trend
from steelyard.reports.model import Estimate, bracketed
from steelyard.store import RunRow, Store
from steelyard.text.wording import say
from steelyard.web.addresses import run_address, with_query
from steelyard.web.cache import PATIENCE
from steelyard.web.history import Refusal, RunFigures, RunHistory, history
from steelyard.web.pages.runs import NO_PROJECT, RunSummary
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import viewer_of

TIME = "time"
FINISHED = ("complete", "stopped")
TONES = {"better": "good", "worse": "bad"}
LONGEST_NAME = 14
MOST_NEWS = 8
SMALL_CHARTS = 12
DIGITS = re.compile(r"(\d+)")


class TrendRun(Record):
    """One run of a trend. `figures` is null until they are counted; `changes` is what is significant or not against the
    run before, metric by metric, and empty where the two cannot be compared: `refused` says why."""

    run: RunSummary
    at: str = Field(description="the moment, or the value of the metadata that orders the runs")
    figures: RunFigures | None = None
    before: str | None = Field(default=None, description="the run that it is compared with")
    changes: dict[str, MetricChange] = Field(default_factory=dict)
    refused: tuple[tuple[str, str], ...] = ()


class TrendsPage(Record):
    """The runs in their order, and what there is to choose from."""

    projects: tuple[str, ...]
    protocols: tuple[str, ...]
    keys: tuple[str, ...] = Field(description="metadata that some of the runs have")
    tags: tuple[str, ...] = Field(description="tags of these runs")
    project: str
    protocol: str
    by: str
    tag: str = ""
    runs: tuple[TrendRun, ...]
    baseline: str | None = None
    n_without: int = Field(default=0, description="runs that lack the metadata they would be ordered by")
    is_complete: bool = True


class SignificantChange(NamedTuple):
    """A significant change, as a line that leads to the comparison."""

    tone: str
    run: str
    text: str
    href: str


class TrendFigure(NamedTuple):
    name: str
    latest: str
    level: str
    chart: Markup


def trends(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    with viewer.store() as store:
        rows = [row for row in store.runs() if state_of(row, store) in FINISHED]
        found = _chosen(request.query_params, rows, store)
        wanted = found.rows
        summaries = [RunSummary.of(row, store) for row in wanted]
    pairs = [(a.id, b.id) for a, b in pairwise(wanted)]
    known = history(viewer, wanted, pairs, None if is_json(request) else PATIENCE)
    runs = tuple(_runs(wanted, summaries, found.by, known))
    model = TrendsPage(
        projects=tuple(sorted({row.project for row in rows})),
        protocols=found.protocols,
        keys=found.keys,
        tags=found.tags,
        project=found.project,
        protocol=found.protocol,
        by=found.by,
        tag=found.tag,
        runs=runs,
        baseline=next((row.id for row in wanted if row.baseline), None),
        n_without=found.n_without,
        is_complete=known.is_complete,
    )
    text = TrendText(model, language)
    return page(
        request,
        "trends.html",
        model,
        no_project=NO_PROJECT,
        figures=list(text.figures()),
        spending=list(text.spending()),
        small=list(text.small()),
        news=list(text.news())[:MOST_NEWS],
        rows=list(text.rows()),
        metrics=[text.metric(name) for name in text.mains],
    )


# --- which runs ------------------------------------------------------------------------------------


class TrendChoice(NamedTuple):
    project: str
    protocol: str
    by: str
    tag: str
    rows: list[RunRow]
    protocols: tuple[str, ...]
    keys: tuple[str, ...]
    tags: tuple[str, ...]
    n_without: int


def _chosen(given: Mapping[str, str], rows: Sequence[RunRow], store: Store) -> TrendChoice:
    """The runs that the address means; what it leaves open is that of the newest run."""
    rows = [row for row in rows if store.judged(row.id)]
    asked = given.get("project")
    project = ("" if asked == NO_PROJECT else asked) if asked else (rows[0].project if rows else "")
    rows = [row for row in rows if row.project == project]
    protocols = tuple(dict.fromkeys(row.protocol for row in rows))
    protocol = given.get("protocol", "")
    protocol = protocol if protocol in protocols else (protocols[0] if protocols else "")
    rows = [row for row in rows if row.protocol == protocol]
    tags = tuple(sorted({tag for row in rows for tag in row.tags}))
    tag = given.get("tag", "")
    rows = [row for row in rows if not tag or tag in row.tags]
    keys = tuple(sorted({key for row in rows for key in row.meta}))
    by = given.get("by", TIME)
    by = by if by in keys else TIME
    in_time = sorted(rows, key=lambda row: (row.started, row.number))
    ordered = in_time if by == TIME else sorted((r for r in in_time if by in r.meta), key=lambda r: natural(r.meta[by]))
    return TrendChoice(project, protocol, by, tag, ordered, protocols, keys, tags, len(rows) - len(ordered))


def natural(value: object) -> list[tuple[int, int, str]]:
    """Sorts versions as people do: 2.9 before 2.10."""
    parts = (part for part in DIGITS.split(str(value)) if part)
    return [(0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part) for part in parts]


def _runs(rows: Sequence[RunRow], summaries: Sequence[RunSummary], by: str, known: RunHistory) -> Iterator[TrendRun]:
    for at, (row, run) in enumerate(zip(rows, summaries, strict=True)):
        before = rows[at - 1].id if at else None
        found = known.against.get((before, row.id)) if before else None
        mains = known.figures[row.id].scores if row.id in known.figures else {}
        changes = {c.metric: c for c in found.metrics if c.metric in mains} if isinstance(found, Comparison) else {}
        yield TrendRun(
            run=run,
            at=row.started[:10] if by == TIME else str(row.meta[by]),
            figures=known.figures.get(row.id),
            before=before,
            changes=changes,
            refused=found.reasons if isinstance(found, Refusal) else (),
        )


# --- what is told ----------------------------------------------------------------------------------


class TrendText:
    """A trend in the reader's language: charts, news, rows of a table."""

    def __init__(self, model: TrendsPage, language: Language) -> None:
        self.model, self.language = model, language
        self.words = vocabulary(model.protocol)
        self.names = {run.run.id: run.run.title for run in model.runs}
        self.level = next((run.figures for run in model.runs if run.run.id == model.baseline), None)
        self.mains = list(dict.fromkeys(name for run in model.runs if run.figures for name in run.figures.scores))

    def say(self, key: str, **values: object) -> str:
        return say(self.language, f"viewer.trends.{key}").format(**values)

    def metric(self, name: str) -> str:
        return self.words.metric_words(name, self.language)

    def figures(self) -> Iterator[TrendFigure]:
        """A chart for every main score."""
        for name in self.mains:
            metric = self.words.metric(name)
            points = [self._point(run, self._score(run, name), metric) for run in self.model.runs]
            level = self.level.scores.get(name) if self.level else None
            last = next((p.estimate for p in reversed(points) if p.estimate.value is not None), Estimate())
            yield TrendFigure(
                self.metric(name),
                self._value(last, metric),
                number(level.value, metric.mean_scale) if level else "",
                self._chart(points, metric, self.metric(name), level.value if level else None),
            )

    def _chart(
        self, points: Sequence[TrendPoint], metric: Metric, label: str, level: float | None, height: int = 190
    ) -> Markup:
        scale = metric.mean_scale
        return trend(points, metric.bounds, lambda value: tick_text(value, scale), label, level=level, height=height)

    def _score(self, run: TrendRun, name: str) -> Estimate:
        return (run.figures.scores if run.figures else {}).get(name, Estimate())

    def _value(self, estimate: Estimate, metric: Metric) -> str:
        scale = metric.mean_scale
        within = bracketed(self.language, interval(estimate.interval, scale)) if estimate.interval else ""
        return number(estimate.value, scale) + within

    def _point(self, run: TrendRun, estimate: Estimate, metric: Metric) -> TrendPoint:
        change = run.changes.get(metric.name)
        lines = [f"{run.run.title} · {run.at}"]
        lines.append(f"{self.metric(metric.name)}{self.colon}{self._value(estimate, metric)}")
        if change and run.before:
            lines.append(self._against(change, run.before))
        if run.refused:
            lines.append(self._refused(run))
        tone = TONES.get(change.outcome, "") if change else ""
        return self._at(run, estimate, "\n".join(lines), tone)

    def _at(self, run: TrendRun, estimate: Estimate, tooltip: str, tone: str = "") -> TrendPoint:
        is_one_year = self.model.runs[0].at[:4] == self.model.runs[-1].at[:4]
        name = run.at[5 if is_one_year else 2 :] if self.model.by == TIME else one_line(run.at, LONGEST_NAME)
        return TrendPoint(estimate, name, tooltip, run_address(run.run.id), tone, bool(run.refused))

    @property
    def colon(self) -> str:
        return say(self.language, "report.colon")

    def _against(self, change: MetricChange, before: str) -> str:
        by = signed(change.difference, change.scale)
        sure = self.say("significant" if change.outcome in TONES else "not_significant")
        difference = self.say("against", by=by, run=self.names.get(before, before))
        return f"{difference}{say(self.language, 'report.comma')}{sure}"

    def _refused(self, run: TrendRun) -> str:
        codes = dict.fromkeys(code for code, _ in run.refused)
        reasons = say(self.language, "report.comma").join(say(self.language, f"compare.mark.{c}") for c in codes)
        return self.say("not_comparable", why=reasons)

    def news(self) -> Iterator[SignificantChange]:
        """What changed significantly from one run to the next, the newest first."""
        for run in reversed(self.model.runs):
            for name, change in run.changes.items():
                if change.outcome not in TONES or run.before is None:
                    continue
                size = signed(abs(change.difference), change.scale).lstrip("+")
                size += say(self.language, "compare.pp") if change.scale == "ratio" else ""
                text = self.say(
                    "fell" if change.difference < 0 else "rose",
                    metric=self.metric(name),
                    by=size,
                    a=number(change.a, change.scale),
                    b=number(change.b, change.scale),
                )
                href = with_query("/compare", {"a": run.before, "b": run.run.id})
                yield SignificantChange(TONES[change.outcome], run.run.title, text, href)

    def _spent(self) -> Iterator[tuple[str, Callable[[float | None], str]]]:
        """What is known of cost and time, each with how its amounts are written."""
        for what, unit in (("cost", "${}"), ("seconds", "{} s")):
            if any(getattr(run.figures, what, None) is not None for run in self.model.runs):
                yield what, partial(_amount, unit)

    def spending(self) -> Iterator[TrendFigure]:
        """What a sample cost, and how long it took."""
        for what, write in self._spent():
            values = [getattr(run.figures, what, None) for run in self.model.runs]
            points = [
                self._at(run, Estimate(value=value), f"{run.run.title} · {run.at}\n{write(value)}")
                for run, value in zip(self.model.runs, values, strict=True)
            ]
            level = getattr(self.level, what, None)
            chart = trend(points, (0.0, inf), write, self.say(what), level=level, height=150)
            yield TrendFigure(self.say(what), write(values[-1]), write(level) if level is not None else "", chart)

    def small(self) -> Iterator[TrendFigure]:
        """The first main score by the tags of samples, small, the largest tags first."""
        if not self.mains:
            return
        metric = self.words.metric(self.mains[0])
        tags = dict.fromkeys(tag for run in reversed(self.model.runs) if run.figures for tag in run.figures.tags)
        for tag in list(tags)[:SMALL_CHARTS]:
            every = ((run.figures.tags if run.figures else {}).get(tag, {}) for run in self.model.runs)
            found = [scores.get(metric.name, Estimate()) for scores in every]
            points = [
                self._at(run, one, f"{run.run.title} · {run.at}\n{tag}{self.colon}{self._value(one, metric)}")
                for run, one in zip(self.model.runs, found, strict=True)
            ]
            last = next((p.estimate for p in reversed(points) if p.estimate.value is not None), Estimate())
            chart = self._chart(points, metric, f"{tag} · {self.metric(metric.name)}", None, 120)
            yield TrendFigure(tag, number(last.value, metric.mean_scale), "", chart)

    def rows(self) -> Iterator[dict[str, object]]:
        """The same as a table, the newest first."""
        for run in reversed(self.model.runs):
            cells = []
            for name in self.mains:
                metric, change = self.words.metric(name), run.changes.get(name)
                estimate = self._score(run, name)
                cells.append(
                    {
                        "value": number(estimate.value, metric.mean_scale),
                        "interval": interval(estimate.interval, metric.mean_scale),
                        "by": signed(change.difference, change.scale) if change else "",
                        "ends": ends(change.interval, change.scale) if change else "",
                        "tone": TONES.get(change.outcome, "") if change else "",
                    }
                )
            href = with_query("/compare", {"a": run.before, "b": run.run.id}) if run.before else ""
            yield {
                "run": run.run,
                "at": run.at,
                "cells": cells,
                "refused": self._refused(run) if run.refused else "",
                "compare": href,
                "spending": [write(getattr(run.figures, what, None)) for what, write in self._spent()],
            }


def _amount(unit: str, value: float | None) -> str:
    return NOT_APPLICABLE if value is None else unit.format(number(value, "number"))


routes = page_routes("/trends", trends)
