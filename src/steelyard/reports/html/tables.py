"""The tables of a report: one row per group, the value, its interval as a bar, and what stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from steelyard.protocols.vocabulary import Scale
from steelyard.reports.blocks import estimate_cells, interval
from steelyard.reports.html import charts
from steelyard.reports.html.words import PageWords
from steelyard.reports.model import Estimate, Group

Scaled = tuple[Estimate, Scale]
Line = tuple[str, str, tuple[Scaled, ...]]
"""A row before it is drawn: its name, a word about it, its estimates with their scales."""


@dataclass(frozen=True)
class Cell:
    """An estimate in a table: the value, and what stands behind it, in columns of its own or in two short lines."""

    value: str
    behind: tuple[str, ...]
    lines: tuple[str, str]


@dataclass(frozen=True)
class BreakdownRow:
    name: str
    about: str
    cells: tuple[Cell, ...]
    bar: Markup | None
    href: str = ""
    """Where it leads, if anywhere."""


@dataclass(frozen=True)
class Breakdown:
    """A table of groups. The bar is that of the first column, and missing where several columns count alike;
    `behind` names what stands behind a single one.
    """

    anchor: str
    title: str
    first: str
    columns: tuple[str, ...]
    behind: tuple[str, ...]
    rows: tuple[BreakdownRow, ...]
    axis: Markup | None


class Tables:
    """The tables of one report."""

    def __init__(self, words: PageWords) -> None:
        self.words, self.report = words, words.report

    def scores(self) -> Breakdown:
        rows = [
            (self.words.metric(name), self.words.metric_about(name), ((estimate, self.report.scale_of(name)),))
            for name, estimate in self.report.scores.items()
        ]
        alike = len({self.report.scale_of(name) for name in self.report.scores}) == 1
        return self._breakdown("scores", "report.scores", "report.score", (self.words.say("report.mean"),), rows, alike)

    def outcomes(self, href: Callable[[str, str], str]) -> Breakdown | None:
        """What became of the samples; `href` says where those with a label are found."""
        aspect, words = self.words.vocab.outcome, self.words
        if not self.report.outcomes:
            return None
        rows = [
            (
                words.vocab.label_words(aspect, one.label, words.language),
                f"{one.n:,} / {one.share.n:,}",
                shares(one.share),
            )
            for one in self.report.outcomes
        ]
        share = (words.say("report.share"),)
        table = self._breakdown("outcomes", "report.labels", "report.label", share, rows)
        linked = (
            replace(row, href=href(aspect, one.label) if one.n else "")
            for row, one in zip(table.rows, self.report.outcomes, strict=True)
        )
        return replace(table, title=words.kind(aspect), rows=tuple(linked))

    def breakdowns(self) -> list[Breakdown]:
        return [table for table in self._breakdowns() if table.rows]

    def _breakdowns(self) -> Iterator[Breakdown]:
        report, words = self.report, self.words
        if report.atoms:
            groups = {**report.atoms.levels, "": report.atoms.overall}
            rows = [
                (
                    self.words.named("level", level) if level else words.say("report.overall"),
                    "",
                    shares(g.accuracy, g.accuracy_strict, g.coverage),
                )
                for level, g in groups.items()
            ]
            columns = tuple(words.metric(name) for name in ("accuracy", "accuracy_strict", "coverage"))
            yield self._breakdown("levels", "report.levels", "report.level", columns, rows)
        columns = (words.say("report.win_rate"), words.say("report.strength"))
        ranking: list[Line] = [
            (words.group(one.name), "", ((one.win_rate, "ratio"), (one.strength, "number"))) for one in report.ranking
        ]
        yield self._breakdown("ranking", "report.ranking", "report.contestant", columns, ranking)
        checks = [
            (words.check(c), words.vocab.group_words(c.group, words.language), shares(c.passed)) for c in report.checks
        ]
        yield self._breakdown("checks", "report.checks", "report.named_item", (words.say("report.passed"),), checks)
        if report.dialogue:
            d = report.dialogue
            rates = [(self.words.metric(name), "", shares(getattr(d, name))) for name in ("csr", "isr", "ssr")]
            rates.append((words.say("report.by_rule"), "", shares(d.by_rule)))
            yield self._breakdown("rates", "report.rates", "report.rate", (words.say("report.value"),), rates)
            types = [(self.words.constraint(name), "", shares(rate)) for name, rate in d.by_type.items()]
            yield self._breakdown("types", "report.by_type", "report.type", (words.metric("csr"),), lowest(types))
        yield self._groups("tags", "report.tags", "report.tag", report.tags)
        yield self._groups("by-flag", "report.by_flag", "report.flag", report.flags)

    def _groups(self, anchor: str, title: str, first: str, groups: Mapping[str, Group]) -> Breakdown:
        main = self.words.main
        names = [*main, *(name for name in self.report.scores if name not in main)]
        rows = [
            (
                self.words.group(name),
                f"n {group.n:,}",
                tuple((group.scores.get(metric, Estimate()), self.report.scale_of(metric)) for metric in names),
            )
            for name, group in groups.items()
        ]
        columns = tuple(map(self.words.metric, names))
        descends = bool(main) and self.words.vocab.metric(main[0]).direction == "down"
        return self._breakdown(anchor, title, first, columns, lowest(rows, len(main), descends), len(main) == 1)

    def _breakdown(
        self,
        anchor: str,
        title: str,
        first: str,
        columns: tuple[str, ...],
        rows: Sequence[Line],
        with_bar: bool = True,
    ) -> Breakdown:
        scale = rows[0][2][0][1] if rows and rows[0][2] else "ratio"
        alike = [estimate for _, _, estimates in rows for estimate, of in estimates if of == scale]
        bounds = charts.bounds_of(alike, scale)
        return Breakdown(
            anchor,
            self.words.say(title),
            self.words.say(first),
            columns,
            tuple(self.words.say(f"report.{name}") for name in ("interval", "n", "n_null", "n_unjudged")),
            tuple(
                BreakdownRow(
                    name,
                    about,
                    tuple(self._cell(*estimate) for estimate in estimates),
                    charts.interval_bar(estimates[0][0], bounds) if with_bar else None,
                )
                for name, about, estimates in rows
            ),
            charts.bar_axis(bounds, scale) if with_bar else None,
        )

    def _cell(self, estimate: Estimate, scale: Scale) -> Cell:
        value, *behind = estimate_cells(estimate, scale)
        return Cell(value, tuple(behind), (interval(estimate.interval, scale), self.words.counts(estimate)))


def shares(*estimates: Estimate) -> tuple[Scaled, ...]:
    return tuple((estimate, "ratio") for estimate in estimates)


def lowest(rows: Iterable[Line], alike: int = 1, descends: bool = False) -> list[Line]:
    """Rows with the worst value on top, read from the first `alike` columns; those without any last."""

    def low(row: Line) -> float:
        known = (e.value for e, _ in row[2][:alike] if e.value is not None)
        return min((-value if descends else value for value in known), default=float("inf"))

    return sorted(rows, key=low)
