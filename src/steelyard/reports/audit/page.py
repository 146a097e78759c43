"""A card for the terminal and as Markdown, alone or beside those of other judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.records import Language
from steelyard.reports.audit.card import Card, CardPart
from steelyard.reports.audit.sections import CardWords, Estimates, Listing, headline, is_best, remarks, sections
from steelyard.reports.blocks import (
    Block,
    Heading,
    Lines,
    Table,
    TonedText,
    estimate_cells,
    interval,
    number,
    one_line,
)
from steelyard.reports.model import Estimate
from steelyard.text.wording import say

BRIEF_LISTED = 5
LONGEST_CELL = 60


def blocks(
    card: Card, others: Sequence[Card] = (), *, language: Language | None = None, brief: bool = False
) -> Iterator[Block]:
    """The page; `brief` is what a terminal shows."""
    words = CardWords(language or card.language)
    yield Heading(f"{words.say('title')} · {one_line(card.judge, LONGEST_CELL)}", 1)
    facts = words.say("suite", version=card.suite.version, sha=card.suite.sha256[:12])
    yield Lines((f"{facts} · steelyard {card.steelyard} · {card.made[:10]}",))
    if warnings := tuple(remarks(card, words)):
        yield Lines(warnings)
    for place, part in enumerate(card.parts):
        yield from _part(part, [other.parts[place] for other in others], [card, *others], words, brief)


def _part(
    part: CardPart, beside: Sequence[CardPart], cards: Sequence[Card], words: CardWords, brief: bool
) -> Iterator[Block]:
    yield Heading(words.say(part.data))
    if beside:
        yield Table(*_beside([part, *beside], cards, words))
    else:
        yield _estimates(headline(part, words), words)
    for section in sections(part, words):
        yield Heading(section.title)
        yield Lines(section.said[:1] if brief else section.said)
        for table in section.tables[:1] if brief else section.tables:
            if not brief:
                yield Heading(table.title, 3)
            yield _estimates(table, words)
        for listing in section.listings:
            if listing.rows:
                yield Heading(f"{listing.title}", 3)
                yield from _listing(listing, brief, words)


def _beside(
    parts: Sequence[CardPart], cards: Sequence[Card], words: CardWords
) -> tuple[tuple[str, ...], str, tuple[tuple[str | TonedText, ...], ...]]:
    """One row per measure, one column per judge, the best of them marked where it is alone."""
    columns = (words.say("measure"), *(one_line(card.judge, LONGEST_CELL) for card in cards))
    rows: list[tuple[str | TonedText, ...]] = []
    for name in parts[0].measures():
        found = [part.measures().get(name, Estimate()) for part in parts]
        rows.append(
            (
                words.named("measure_name", name),
                *(
                    TonedText(_with_interval(estimate), "good" if best else "plain")
                    for estimate, best in zip(found, is_best(name, found), strict=True)
                ),
            )
        )
    return columns, "l" + "r" * len(cards), tuple(rows)


def _with_interval(estimate: Estimate) -> str:
    shown = number(estimate.value, "ratio")
    return shown if estimate.interval is None else f"{shown} ({interval(estimate.interval, 'ratio')})"


def _estimates(table: Estimates, words: CardWords) -> Table:
    """One number with all that stands behind it, or several with their intervals."""
    if len(table.columns) == 1:
        names = ("interval", "n", "n_null", "n_unjudged")
        return Table(
            (words.say("group"), table.columns[0], *(say(words.language, f"report.{name}") for name in names)),
            "lrrrrr",
            tuple((name, *estimate_cells(estimates[0], "ratio")) for name, estimates in table.rows),
        )
    first, *rest = table.columns
    return Table(
        (words.say("group"), first, say(words.language, "report.interval"), "n", *rest),
        "lrrr" + "r" * len(rest),
        tuple(
            (
                name,
                *estimate_cells(estimates[0], "ratio")[:3],
                *(number(estimate.value, "ratio") for estimate in estimates[1:]),
            )
            for name, estimates in table.rows
        ),
    )


def _listing(listing: Listing, brief: bool, words: CardWords) -> Iterator[Block]:
    rows = listing.rows[:BRIEF_LISTED] if brief else listing.rows
    yield Table(
        listing.columns, "l" * len(listing.columns), tuple(tuple(one_line(cell, 120) for cell in row) for row in rows)
    )
    hidden = len(listing.rows) - len(rows)
    if hidden:
        yield Lines((words.say("more", n=hidden),), listed=True)
    elif listing.more:
        yield Lines((listing.more,), listed=True)
