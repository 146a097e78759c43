"""What the HTML page of a card shows: figures, tables with bars, and cards side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from steelyard.records import Language
from steelyard.reports.audit.card import LOW_IS_GOOD, Card, CardPart, Measure
from steelyard.reports.audit.sections import (
    CardSection,
    CardWords,
    Estimates,
    about,
    headline,
    is_best,
    remarks,
    sections,
)
from steelyard.reports.blocks import estimate_cells, interval, number, one_line
from steelyard.reports.html import charts
from steelyard.reports.html.document import from_template
from steelyard.reports.html.tables import Breakdown, BreakdownRow, Cell
from steelyard.reports.model import Estimate
from steelyard.text.wording import say

BOUNDS = (0.0, 1.0)
LONGEST_NAME = 60
# The three numbers that a reader wants first; the others stand in the table below.
FIRST = ("injection", "stability", "sensitivity")


@dataclass(frozen=True)
class AuditFigure:
    """One of the first numbers, with its beam."""

    name: str
    value: str
    behind: str
    chart: Markup
    href: str


@dataclass(frozen=True)
class CardComparison:
    """Cards of several judges: one row per measure, one cell per judge."""

    judges: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[tuple[str, str, Markup, bool], ...]], ...]


@dataclass(frozen=True)
class PartView:
    anchor: str
    title: str
    figures: tuple[AuditFigure, ...]
    card: Breakdown
    beside: CardComparison | None
    sections: tuple[tuple[CardSection, tuple[Breakdown, ...]], ...]


def render(card: Card, others: Sequence[Card] = (), language: Language | None = None) -> str:
    """The card as a document; the cards of other judges stand beside its headline numbers."""
    words = CardWords(language or card.language)
    return from_template(
        "audit.html",
        words.language,
        "audit.css",
        card=card,
        judge=one_line(card.judge, LONGEST_NAME),
        words=words,
        remarks=list(remarks(card, words)),
        parts=list(_parts(card, others, words)),
        facts=about(card, words),
    )


def _parts(card: Card, others: Sequence[Card], words: CardWords) -> Iterator[PartView]:
    for place, part in enumerate(card.parts):
        beside = [other.parts[place] for other in others]
        yield PartView(
            part.data,
            words.say(part.data),
            tuple(_figures(part, words)),
            _with_direction(_breakdown(headline(part, words), words), part, words),
            _beside([part, *beside], [card, *others], words) if others else None,
            tuple(
                (section, tuple(_breakdown(table, words) for table in section.tables))
                for section in sections(part, words)
            ),
        )


def _figures(part: CardPart, words: CardWords) -> Iterator[AuditFigure]:
    for measure, estimate in part.measures().items():
        if measure not in FIRST:
            continue
        name, value = words.named("measure_name", measure), number(estimate.value, "ratio")
        ends = interval(estimate.interval, "ratio")
        behind = f"{say(words.language, 'report.interval')} {ends} · n {estimate.n:,}"
        desc = f"{value}, {say(words.language, 'report.interval')} {ends}, n = {estimate.n}"
        href = f"#{part.data}-{measure}"
        yield AuditFigure(name, value, behind, charts.beam(estimate, "ratio", name, desc), href)


def _breakdown(table: Estimates, words: CardWords) -> Breakdown:
    return Breakdown(
        table.anchor,
        table.title,
        words.say("group"),
        table.columns,
        tuple(say(words.language, f"report.{name}") for name in ("interval", "n", "n_null", "n_unjudged")),
        tuple(
            BreakdownRow(name, "", tuple(map(_cell, estimates)), charts.interval_bar(estimates[0], BOUNDS))
            for name, estimates in table.rows
        ),
        charts.bar_axis(BOUNDS, "ratio"),
    )


def _direction(measure: Measure, words: CardWords) -> str:
    return words.say("low_is_good" if measure in LOW_IS_GOOD else "high_is_good")


def _with_direction(table: Breakdown, part: CardPart, words: CardWords) -> Breakdown:
    rows = zip(table.rows, part.measures(), strict=True)
    return replace(table, rows=tuple(replace(row, about=_direction(measure, words)) for row, measure in rows))


def _cell(estimate: Estimate) -> Cell:
    value, *behind = estimate_cells(estimate, "ratio")
    return Cell(value, tuple(behind), (interval(estimate.interval, "ratio"), f"n {estimate.n:,}"))


def _beside(parts: Sequence[CardPart], cards: Sequence[Card], words: CardWords) -> CardComparison:
    rows = []
    for measure in parts[0].measures():
        found = [part.measures().get(measure, Estimate()) for part in parts]
        cells = tuple(
            (
                number(estimate.value, "ratio"),
                f"{interval(estimate.interval, 'ratio')} · n {estimate.n:,}",
                charts.interval_bar(estimate, BOUNDS),
                best,
            )
            for estimate, best in zip(found, is_best(measure, found), strict=True)
        )
        rows.append((words.named("measure_name", measure), _direction(measure, words), cells))
    return CardComparison(tuple(one_line(card.judge, LONGEST_NAME) for card in cards), tuple(rows))
