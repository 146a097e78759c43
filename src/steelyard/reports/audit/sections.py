"""A card prepared for rendering: sections with sentences, tables of estimates and lists, in one language.

The terminal, Markdown and HTML all show these; they add nothing of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from steelyard.protocols import vocabulary
from steelyard.records import Language
from steelyard.reports.audit.card import LOW_IS_GOOD, Card, CardPart, Injection, Measure, Sensitivity, Stability
from steelyard.reports.blocks import number, share
from steelyard.reports.model import Estimate, named
from steelyard.text.wording import say


@dataclass(frozen=True)
class Estimates:
    """A table: a name and one or several numbers to a row. The first column is the one that is drawn."""

    anchor: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Estimate, ...]], ...]


@dataclass(frozen=True)
class Listing:
    """Single cases, the most telling ones; `more` are not listed. Texts in it come from outside."""

    anchor: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: str = ""


@dataclass(frozen=True)
class CardSection:
    """Injection, stability or sensitivity on one source of data."""

    anchor: str
    title: str
    said: tuple[str, ...]
    tables: tuple[Estimates, ...]
    listings: tuple[Listing, ...]


class CardWords:
    """The wording of one card."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def say(self, key: str, **values: object) -> str:
        return say(self.language, f"audit.{key}").format(**values)

    def named(self, table: str, name: str) -> str:
        if table == "protocol":
            return vocabulary(name).title_words(self.language)
        return named(self.language, f"audit.{table}", name)

    def label(self, protocol: str, place: str, label: str) -> str:
        """A label as reports write it, e.g. of `support 2`."""
        words = vocabulary(protocol).label(place.partition(" ")[0], label).words
        return words.in_language(self.language) or self.named("label_name", label)

    def where(self, protocol: str, place: str) -> str:
        vocab = vocabulary(protocol)
        aspect, _, at = place.partition(" ")
        kind = vocab.kind_with(aspect)
        name = vocab.name_words(kind.name, at, self.language) if kind else ""
        return name or f"{vocab.kind_words(aspect, self.language)} {at}"

    def sentence(self, *parts: str) -> str:
        return (" " if self.language == "en" else "").join(part for part in parts if part)


def headline(part: CardPart, words: CardWords) -> Estimates:
    """The numbers that cards are compared by."""
    rows = tuple((words.named("measure_name", name), (estimate,)) for name, estimate in part.measures().items())
    return Estimates(f"{part.data}-card", words.say("headline"), (say(words.language, "report.value"),), rows)


def sections(part: CardPart, words: CardWords) -> Iterator[CardSection]:
    """What was measured on one source of data, section by section."""
    if part.injection:
        yield _injection(part.injection, f"{part.data}-injection", words)
    if part.stability:
        yield _stability(part.stability, f"{part.data}-stability", words)
    if part.sensitivity:
        yield _sensitivity(part.sensitivity, f"{part.data}-sensitivity", words)


def is_best(measure: Measure, found: Sequence[Estimate]) -> list[bool]:
    """Which of several judges is the best at this, where one is alone."""
    known = [estimate.value for estimate in found if estimate.value is not None]
    best = (min if measure in LOW_IS_GOOD else max)(known) if known else 0.0
    return [estimate.value == best and known.count(best) == 1 for estimate in found]


def remarks(card: Card, words: CardWords) -> Iterator[str]:
    """Remarks shown before the numbers."""
    if card.stopped:
        yield words.say("stopped", reason=card.stopped)
    if card.n_failed:
        yield words.say("failed", n=card.n_failed, total=card.n_trials)


def _table(
    anchor: str, title: str, columns: Sequence[str], groups: Sequence[Mapping[str, Estimate]], of: str, words: CardWords
) -> Estimates:
    names = dict.fromkeys(name for group in groups for name in group)
    rows = tuple((words.named(of, name), tuple(group.get(name, Estimate()) for group in groups)) for name in names)
    return Estimates(anchor, words.say(title), tuple(map(words.say, columns)), rows)


def _weakest(groups: Mapping[str, Estimate]) -> tuple[str, float] | None:
    known = [(estimate.value, name) for name, estimate in groups.items() if estimate.value is not None]
    return (min(known)[1], min(known)[0]) if known else None


def _more(n: int, listed: Sequence[object], words: CardWords) -> str:
    return words.say("more", n=n - len(listed)) if n > len(listed) else ""


def _only(tables: Iterable[Estimates]) -> tuple[Estimates, ...]:
    """A breakdown into a single group says nothing that the section has not said."""
    return tuple(table for table in tables if len(table.rows) > 1)


def _injection(found: Injection, anchor: str, words: CardWords) -> CardSection:
    said = [words.say("nothing")]
    if found.raised.value is not None:
        said = [words.say("injection_said", raised=found.n_raised, attacks=found.n_attacks)]
        if found.harmless.value:
            said.append(words.say("harmless_said", share=number(found.harmless.value, "ratio")))
    if found.n_no_room:
        said.append(words.say("no_room", n=found.n_no_room))
    if found.flagged.value is not None:
        values = (number(estimate.value, "ratio") for estimate in (found.flagged, found.false_alarms))
        said.append(words.say("flagged_said", **dict(zip(("flagged", "alarms"), values, strict=True))))
    both = ("raised", "flagged")
    return CardSection(
        anchor,
        words.say("injection"),
        (words.sentence(*said),),
        _only(
            [
                _table(f"{anchor}-kind", "by_kind", both, (found.by_kind, found.flagged_by_kind), "kind", words),
                _table(f"{anchor}-place", "by_place", both, (found.by_place, found.flagged_by_place), "place", words),
                _table(f"{anchor}-protocol", "by_protocol", both[:1], (found.by_protocol,), "protocol", words),
                _table(f"{anchor}-language", "by_language", both[:1], (found.by_language,), "language", words),
            ]
        ),
        (
            Listing(
                f"{anchor}-successes",
                words.say("successes"),
                tuple(map(words.say, ("attack", "protocol", "label", "before", "control", "after", "text"))),
                tuple(
                    (
                        f"{row.attack} · {row.base}",
                        words.named("protocol", row.protocol),
                        words.where(row.protocol, row.place),
                        words.label(row.protocol, row.place, row.before),
                        words.label(row.protocol, row.place, row.control),
                        words.label(row.protocol, row.place, row.after),
                        row.text,
                    )
                    for row in found.successes
                ),
            ),
        ),
    )


def _stability(found: Stability, anchor: str, words: CardWords) -> CardSection:
    unchanged = {name: steady.unchanged for name, steady in found.changes.items()}
    weakest = _weakest(unchanged)
    n = f"{found.unchanged.n:,}"
    if found.unchanged.value is None or weakest is None:
        said = words.say("nothing")
    elif found.unchanged.value == 1:
        said = words.say("all_stayed", n=n)
    else:
        said = words.say(
            "stability_said",
            share=number(found.unchanged.value, "ratio"),
            n=n,
            weakest=words.named("changed", weakest[0]),
            value=number(weakest[1], "ratio"),
        )
    columns = ("unchanged", "score_change", "same_evidence")
    groups = (
        unchanged,
        {name: steady.score_change for name, steady in found.changes.items()},
        {name: steady.same_evidence for name, steady in found.changes.items()},
    )
    return CardSection(
        anchor,
        words.say("stability"),
        (said, words.say("note_changes")),
        (
            _table(f"{anchor}-change", "by_change", columns, groups, "changed", words),
            *_only(
                [
                    _table(f"{anchor}-protocol", "by_protocol", columns[:1], (found.by_protocol,), "protocol", words),
                    _table(f"{anchor}-language", "by_language", columns[:1], (found.by_language,), "language", words),
                ]
            ),
        ),
        (
            Listing(
                f"{anchor}-moved",
                words.say("moved"),
                tuple(
                    say(words.language, key)
                    for key in (
                        "audit.change",
                        "audit.protocol",
                        "report.id",
                        "audit.label",
                        "audit.before",
                        "audit.after",
                    )
                ),
                tuple(
                    (
                        words.named("changed", row.change),
                        words.named("protocol", row.protocol),
                        row.base,
                        words.where(row.protocol, row.place),
                        words.label(row.protocol, row.place, row.before),
                        words.label(row.protocol, row.place, row.after),
                    )
                    for row in found.moved
                ),
                _more(found.n_moved, found.moved, words),
            ),
        ),
    )


def _sensitivity(found: Sensitivity, anchor: str, words: CardWords) -> CardSection:
    weakest = _weakest(found.by_kind)
    if found.noticed.value is None or weakest is None:
        said = words.say("nothing")
    elif found.noticed.value == 1:
        said = words.say("all_noticed", n=found.noticed.n)
    else:
        said = words.say(
            "sensitivity_said",
            share=number(found.noticed.value, "ratio"),
            n=found.noticed.n,
            weakest=words.named("planted", weakest[0]),
            value=number(weakest[1], "ratio"),
        )
    alarms = number(found.false_alarms.value, "ratio")
    if found.false_alarms.value is not None:
        said = words.sentence(said, words.say("alarms_said", alarms=alarms))
    return CardSection(
        anchor,
        words.say("sensitivity"),
        (said,),
        _only(
            [
                _table(f"{anchor}-kind", "by_error", ("noticed",), (found.by_kind,), "planted", words),
                _table(f"{anchor}-protocol", "by_protocol", ("noticed",), (found.by_protocol,), "protocol", words),
                _table(f"{anchor}-language", "by_language", ("noticed",), (found.by_language,), "language", words),
            ]
        ),
        (
            Listing(
                f"{anchor}-missed",
                words.say("missed"),
                (
                    words.say("error"),
                    words.say("protocol"),
                    words.say("said"),
                    say(words.language, "sample.references"),
                ),
                tuple(_missed(found, words)),
                _more(found.n_missed, found.missed, words),
            ),
        ),
    )


def _missed(found: Sensitivity, words: CardWords) -> Iterator[tuple[str, ...]]:
    """One row per error, with the protocols in which it was missed."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for row in found.missed:
        together.setdefault((row.kind, row.said, row.passage), []).append(words.named("protocol", row.protocol))
    for (kind, said, passage), protocols in together.items():
        yield words.named("planted", kind), ", ".join(protocols), said, passage


def about(card: Card, words: CardWords) -> list[tuple[str, str]]:
    """How the card came about, as names and values."""
    facts = [
        (say(words.language, "report.judge"), card.judge),
        *((name, str(value)) for name, value in card.described.items() if isinstance(value, str | int | float | bool)),
        (words.say("title"), words.say("suite", version=card.suite.version, sha=card.suite.sha256[:12])),
        ("steelyard", card.steelyard),
        (say(words.language, "sample.date"), card.made.replace("T", " ").replace("+00:00", " UTC")),
        (words.say("protocol"), ", ".join(words.named("protocol", name) for name in card.scope.protocols)),
        (words.named("changed", "repeat"), str(card.scope.repeats)),
        (say(words.language, "report.calls"), f"{card.usage.calls:,}"),
    ]
    if card.usage.cost is not None:
        facts.append((say(words.language, "report.cost"), f"{card.usage.cost:.4f}"))
    facts += [(named(words.language, "unjudged", reason), str(n)) for reason, n in card.unjudged.items()]
    facts.append((say(words.language, "report.n_unjudged"), f"{card.n_failed} ({share(card.n_failed, card.n_trials)})"))
    return facts
