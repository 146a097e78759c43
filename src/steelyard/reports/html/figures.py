"""The figures of a report: how scores spread, how often each label was given, rates along the turns, the bands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markupsafe import Markup

from steelyard.protocols.vocabulary import Scale
from steelyard.reports.blocks import interval, number, share
from steelyard.reports.html import charts
from steelyard.reports.html.views import Chip, chip
from steelyard.reports.html.words import PageWords
from steelyard.reports.model import Estimate, Spread, is_broken_down


@dataclass(frozen=True)
class ScoreFigure:
    """A chart with its caption, and the same as a table."""

    title: str
    chart: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[tuple[Chip, str], ...] = ()
    caption: str = ""
    wide: bool = False


# How an amount is written: two digits tell all there is to tell.
AMOUNTS: dict[str, Callable[[float], str]] = {
    "seconds": lambda value: f"{value:.2g} s" if value < 100 else f"{value:,.0f} s",
    "cost": lambda value: f"${value:.2g}" if value < 0.001 else f"${value:.4f}".rstrip("0").rstrip("."),
    "tokens": lambda value: f"{float(f'{value:.2g}'):,.0f}",
}


@dataclass(frozen=True)
class BandRow:
    scores: str
    cells: tuple[tuple[int, str, Markup], ...]


class Figures:
    """The figures of one report."""

    def __init__(self, words: PageWords) -> None:
        self.words, self.report = words, words.report

    def distributions(self) -> list[ScoreFigure]:
        found = [self._distribution(name) for name in self.report.distributions if self.report.scores[name].n]
        return sorted(found, key=lambda figure: figure.wide)

    def _distribution(self, name: str) -> ScoreFigure:
        bins, estimate = self.report.distributions[name], self.report.scores[name]
        metric = self.words.metric(name)
        if len(bins) == 2:
            return self._yes_or_no(name, metric, estimate)
        scale = self.report.scale_of(name)
        edges = [charts.tick_text(edge, scale) for edge in (*(b.low for b in bins), bins[-1].high)]
        steps = [f"{low} – {high}" for low, high in pairwise(edges)]
        desc = ", ".join(f"{step}: {b.n}" for step, b in zip(steps, bins, strict=True) if b.n)
        caption = self.words.say("html.mean_mark").format(value=number(estimate.value, scale)) + f" · n {estimate.n:,}"
        chart = charts.histogram(bins, estimate.value, scale, metric, desc, self.words.say("report.samples"))
        rows = tuple((step, str(b.n), share(b.n, estimate.n)) for step, b in zip(steps, bins, strict=True))
        columns = (metric, self.words.say("report.samples"), self.words.say("report.share"))
        return ScoreFigure(metric, chart, columns, rows, caption=caption)

    def _yes_or_no(self, name: str, metric: str, estimate: Estimate) -> ScoreFigure:
        no, yes = (b.n for b in self.report.distributions[name])
        aspect = next(iter(self.words.vocab.metric(name).reads), name)
        answers = [(self._chip(aspect, "1"), yes), (self._chip(aspect, "0"), no)]
        answers.sort(key=lambda answer: answer[0].tone != "good")
        answers.append((Chip(self.words.say("report.not_applicable"), "plain", "○"), estimate.n_null))
        answers.append((Chip(self.words.say("report.n_unjudged"), "open", "…"), estimate.n_unjudged))
        return self._stack(metric, answers, self.words.say("report.samples"))

    def made_of(self) -> ScoreFigure | None:
        """The labels that a single headline number is counted from."""
        if len(self.words.main) != 1:
            return None
        metric = self.words.vocab.metric(self.words.main[0])
        if metric.scale == "binary":
            return self._yes_or_no(metric.name, self.words.say("report.samples"), self.report.scores[metric.name])
        kind = next(iter(metric.reads), "")
        counts = self.report.labels.get(kind, {})
        return self._labels(self.words.kind(kind), kind, counts) if any(counts.values()) else None

    def spending(self) -> list[ScoreFigure]:
        """The cost per sample; tokens only where no price is known."""
        found = self.report.spending
        names = [
            name
            for name in ("seconds", "cost", "tokens")
            if name in found and (name != "tokens" or "cost" not in found)
        ]
        return [self._spending(name, found[name]) for name in names]

    def _spending(self, name: str, spread: Spread) -> ScoreFigure:
        title, write = self.words.say(f"html.per_sample.{name}"), AMOUNTS[name]
        steps = [f"{write(b.low)} – {write(b.high)}" for b in spread.bins]
        caption = self.words.say("html.per_sample.caption").format(
            median=write(spread.median), p95=write(spread.p95), most=write(spread.most)
        )
        counted = self.words.say("report.samples")
        chart = charts.amounts(spread, write, title, caption, counted)
        rows = tuple((step, str(b.n), share(b.n, spread.n)) for step, b in zip(steps, spread.bins, strict=True))
        return ScoreFigure(title, chart, (title, counted, self.words.say("report.share")), rows, caption=caption)

    def labels(self) -> list[ScoreFigure]:
        """How often each label was given, per kind of item; statements also per relevance level."""
        figures = [
            self._labels(self.words.kind(aspect), aspect, counts)
            for aspect, counts in self.report.labels.items()
            if any(counts.values()) and not (self.report.checks and is_broken_down(self.report, aspect))
        ]
        graded = next(iter(self.report.labels), "")
        for level, group in (self.report.atoms.levels if self.report.atoms else {}).items():
            counts = {label.removeprefix("n_"): n for label, n in group.counts.items()}
            if any(counts.values()):
                figures.append(replace(self._labels(self.words.named("level", level), graded, counts), wide=False))
        return figures

    def _labels(self, title: str, kind: str, counts: Mapping[str, int]) -> ScoreFigure:
        found = [(self._chip(kind, label), n) for label, n in counts.items()]
        return self._stack(title, found, self.words.say("report.label"))

    def _chip(self, aspect: str, label: str) -> Chip:
        return chip(self.words.language, self.words.vocab, aspect, label)

    def _stack(self, title: str, found: Sequence[tuple[Chip, int]], first: str) -> ScoreFigure:
        total = sum(n for _, n in found)
        parts = [charts.ChartPart(label.text, n, label.tone, label.sign) for label, n in found]
        legend = tuple((label, f"{n:,} · {share(n, total)}") for label, n in found if n)
        columns = (first, self.words.say("report.count"), self.words.say("report.share"))
        rows = tuple((label.text, str(n), share(n, total)) for label, n in found)
        return ScoreFigure(title, charts.stacked(parts, title), columns, rows, legend, wide=True)

    def turns(self) -> ScoreFigure | None:
        if not self.report.dialogue or not self.report.dialogue.by_turn:
            return None
        turns = {self.words.group(turn): rates for turn, rates in self.report.dialogue.by_turn.items()}
        scale: Scale = "ratio"
        series = [
            charts.Series(self.words.metric("csr"), [rates.csr for rates in turns.values()]),
            charts.Series(self.words.metric("isr"), [rates.isr for rates in turns.values()]),
        ]
        desc = ", ".join(f"{turn}: {number(rates.csr.value, scale)}" for turn, rates in turns.items())
        title = self.words.say("report.by_turn")
        rows = tuple(
            (turn, number(e.value, scale), interval(e.interval, scale), str(e.n), str(e.n_unjudged), metric)
            for turn, rates in turns.items()
            for metric, e in (("CSR", rates.csr), ("ISR", rates.isr))
        )
        columns = ("turn", "value", "interval", "n", "n_unjudged", "rate")
        return ScoreFigure(
            title,
            charts.lines(list(turns), series, scale, title, desc, self.words.say("report.turn")),
            tuple(self.words.say(f"report.{column}") for column in columns),
            rows,
            tuple((Chip(line.name, "plain", mark), "") for line, mark in zip(series, "●■", strict=True)),
            wide=True,
        )

    def bands(self) -> list[BandRow]:
        """One row per band, the highest first: how many samples each metric has there."""
        by_metric = [self.report.bands[name] for name in self.report.bands]
        totals = [sum(line.n for line in lines) for lines in by_metric]
        if not any(totals):
            return []
        return [
            BandRow(
                f"{lines[0].scores[0]}–{lines[0].scores[1]}",
                tuple(
                    (line.n, line.description, charts.share_bar(line.n / total if total else 0.0))
                    for line, total in zip(lines, totals, strict=True)
                ),
            )
            for lines in zip(*by_metric, strict=True)
        ]
