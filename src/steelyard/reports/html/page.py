"""A report made ready for a page: the headline, where it fails, tables, figures, and the samples in full."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from steelyard.protocols.scoring import band_of_score
from steelyard.protocols.vocabulary import BOUNDS, Metric, Scale
from steelyard.reports.blocks import NOT_APPLICABLE, interval, number, one_line, score, share
from steelyard.reports.build import most_telling, shown_flags
from steelyard.reports.html import charts
from steelyard.reports.html.figures import Figures
from steelyard.reports.html.sample import sample_view
from steelyard.reports.html.selection import ChosenSample
from steelyard.reports.html.tables import Breakdown, Tables
from steelyard.reports.html.views import SampleView, ViewLimits
from steelyard.reports.html.words import LONGEST_NAME, PageWords
from steelyard.reports.model import (
    Estimate,
    Report,
    agreement_notes,
    is_broken_down,
    named,
    reason_in,
    routing_notes,
    self_judged_note,
    tolerance_note,
    votes_notes,
    why,
)
from steelyard.text.wording import band_description

# A group of three says little, however low it is; one is named only where no larger one exists.
ENOUGH_TO_NAME = 5
LONGEST_FACT = 400


@dataclass(frozen=True)
class Headline:
    """A headline number with its chart and its meaning."""

    name: str
    value: str
    about: str
    interval: str
    n: int
    n_null: int
    n_unjudged: int
    chart: Markup


@dataclass(frozen=True)
class WeakSpot:
    """A label or group with its failure rate."""

    kind: str
    name: str
    share: float
    detail: str
    href: str

    @property
    def value(self) -> str:
        return number(self.share, "ratio")


@dataclass(frozen=True)
class LowestLine:
    """One of the lowest samples, as a line that leads to it."""

    id: str
    score: str
    tone: str
    why: str
    href: str


class PageLinks:
    """Link targets of a page: in a file, the section with details; in the viewer, the samples."""

    def label(self, kind: str, label: str) -> str:
        return "#labels"

    def group(self, what: str, name: str) -> str:
        return {"level": "#levels", "named_item": "#checks", "type": "#types", "turn": "#turns", "tag": "#tags"}[what]

    def flag(self, flag: str) -> str:
        return ""


@dataclass(frozen=True)
class ListedSample:
    """One sample of the list: what its closed line says, and the whole of it."""

    view: SampleView
    metric: str
    score: str
    tone: str
    why: str
    flags: tuple[str, ...]


class ReportPage:
    """The data of the templates, section by section, in the report's language."""

    def __init__(
        self,
        report: Report,
        chosen: Sequence[ChosenSample] = (),
        limits: ViewLimits | None = None,
        places: PageLinks | None = None,
    ) -> None:
        self.report, self.chosen, self.limits = report, chosen, limits or ViewLimits()
        self.places = places or PageLinks()
        self.words = PageWords(report)
        self.tables, self.figures = Tables(self.words), Figures(self.words)

    @property
    def title(self) -> str:
        return self.words.vocab.title_words(self.words.language)

    @property
    def about(self) -> str:
        """Which run this is and who judged, in one line."""
        run = [self.report.run.id] if self.report.run else []
        return " · ".join([*run, *(one_line(judge, LONGEST_NAME) for judge in self.report.judges)])

    @property
    def agreement(self) -> list[str]:
        """Notes on the judges: measured agreement with people, agreement with each other, self-judging."""
        notes = agreement_notes(self.report.judges, self.words.language).values()
        further = tolerance_note(self.report), self_judged_note(self.report)
        return [note for note in (*notes, *votes_notes(self.report), *routing_notes(self.report), *further) if note]

    # --- the first ten seconds ---------------------------------------------------------------------

    def headlines(self) -> list[Headline]:
        return [self._headline(name, self.report.scores[name]) for name in self.words.main]

    def _headline(self, name: str, estimate: Estimate) -> Headline:
        scale = self.report.scale_of(name)
        about = self.words.metric_about(name)
        if name in self.report.bands and estimate.value is not None:
            about = band_description(name, band_of_score(int(estimate.value)), self.words.language)
        metric, value = self.words.metric(name), number(estimate.value, scale)
        ends = interval(estimate.interval, scale)
        desc = f"{value}, {self.words.say('report.interval')} {ends}, n = {estimate.n}"
        chart = charts.beam(estimate, scale, metric, desc)
        return Headline(metric, value, about, ends, estimate.n, estimate.n_null, estimate.n_unjudged, chart)

    def outcomes(self) -> Breakdown | None:
        """The outcomes with links to their samples; None if the protocol declares no such label."""
        return self.tables.outcomes(self.places.label)

    @property
    def is_measured(self) -> bool:
        """Whether a main score exists; without one, the absence of failures means nothing."""
        return any(self.report.scores[name].value is not None for name in self.words.main)

    def weak_spots(self) -> list[WeakSpot]:
        """The labels that most often count against an answer, and the lowest group of each breakdown: each by the share
        that fails, the largest first."""
        return sorted((*self._worst_labels(), *self._weak_groups()), key=lambda spot: -spot.share)

    def _worst_labels(self) -> Iterator[WeakSpot]:
        """Per kind of item the gravest label that occurs, as a share of the items that could have passed."""
        listed = set[str]()
        for kind, label in self._gravest():
            # The named items have a breakdown of their own.
            decided = [one.name for one in self.words.vocab.aspect(kind).labels if one.tone in ("good", "half", "bad")]
            counts = {name: self.report.labels[kind].get(name, 0) for name in decided}
            if kind in listed or not counts.get(label) or (self.report.checks and is_broken_down(self.report, kind)):
                continue
            listed.add(kind)
            total = sum(counts.values())
            detail = self.words.say("html.share_of").format(n=f"{counts[label]:,}", total=f"{total:,}")
            shown = self.words.vocab.label_words(kind, label, self.words.language)
            href = self.places.label(kind, label)
            yield WeakSpot(self.words.kind(kind), shown, counts[label] / total, detail, href)

    def _gravest(self) -> list[tuple[str, str]]:
        """The labels that count against a sample, the gravest first."""
        vocab = self.words.vocab
        # Outcomes have a table of their own.
        aspects = [aspect for aspect in self.report.labels if aspect != vocab.outcome]
        found = [(aspect, label) for aspect in aspects for label in vocab.aspect(aspect).names]
        against = [pair for pair in found if vocab.label(*pair).is_against]
        return sorted(against, key=lambda pair: vocab.severity(*pair))

    def _weak_groups(self) -> Iterator[WeakSpot]:
        report, words = self.report, self.words
        if report.atoms:
            levels = [
                (level, words.named("level", level), group.accuracy) for level, group in report.atoms.levels.items()
            ]
            yield from self._weakest("level", levels)
        checks = [(check.name, words.check(check), check.passed) for check in report.checks]
        yield from self._weakest("named_item", checks)
        if report.dialogue:
            types = [(name, words.constraint(name), rate) for name, rate in report.dialogue.by_type.items()]
            yield from self._weakest("type", types)
            turns = [(name, words.group(name), turn.csr) for name, turn in report.dialogue.by_turn.items()]
            yield from self._weakest("turn", turns)
        if any(words.vocab.metric(name).direction != "up" for name in words.main):
            return
        tags = [
            (tag, words.group(tag) if len(words.main) == 1 else f"{words.group(tag)} · {words.metric(name)}", estimate)
            for tag, group in report.tags.items()
            for name in words.main
            if (estimate := group.scores.get(name))
        ]
        yield from self._weakest("tag", tags, report.scale)

    def _weakest(
        self, what: str, groups: Iterable[tuple[str, str, Estimate]], scale: Scale = "ratio"
    ) -> Iterator[WeakSpot]:
        """The lowest of some groups, each with its own name, its name on the page, and its estimate."""
        known = [(e.value, own, name, e) for own, name, e in groups if e.value is not None]
        large = [entry for entry in known if entry[3].n >= ENOUGH_TO_NAME]
        if len(known) < 2:
            return
        top = BOUNDS[scale][1]
        value, own, name, estimate = min(large or known, key=lambda entry: entry[0])
        if value < top < math.inf:
            ends = estimate.interval and ((top - estimate.interval[1]) / top, (top - estimate.interval[0]) / top)
            behind = f"{interval(ends, 'ratio')} · " * bool(ends) + self.words.counts(estimate)
            group = self.words.say(f"report.{what}")
            yield WeakSpot(group, name, (top - value) / top, behind, self.places.group(what, own))

    # --- samples -----------------------------------------------------------------------------------

    def samples(self) -> Iterator[ListedSample]:
        for place, chosen in enumerate(self.chosen, start=1):
            yield self._listed(chosen, f"s{place}")

    def lowest(self, listed: Iterable[ListedSample]) -> list[LowestLine]:
        """The first lines of the list, where they are low."""
        low = [s for s in listed if s.tone not in ("good", "open")]
        return [LowestLine(s.view.id, s.score, s.tone, s.why, f"#{s.view.anchor}") for s in low]

    def _listed(self, chosen: ChosenSample, anchor: str) -> ListedSample:
        verdict, scale = chosen.verdict, self.report.scale_of(chosen.metric or "")
        telling = most_telling(verdict, chosen.metric)
        flags = shown_flags(verdict)
        reason = why(telling, flags, self.words.language, self.words.vocab)
        if not reason and verdict.status == "failed":
            reason = reason_in(self.words.language, str(verdict.notes.get("failure") or ""))
        return ListedSample(
            sample_view(verdict, chosen.sample, self.words.language, anchor, self.limits),
            self.words.metric(chosen.metric) if chosen.metric and len(self.words.main) > 1 else "",
            score(chosen.score, scale),
            score_tone(chosen.score, self.words.vocab.metric(chosen.metric or "")),
            one_line(reason, 240),
            flags,
        )

    # --- the rest ----------------------------------------------------------------------------------

    def flags(self) -> list[tuple[str, int, str, str, str]]:
        return [
            (
                self.words.group(flag),
                group.n,
                share(group.n, self.report.n),
                named(self.words.language, "flag", flag, ""),
                self.places.flag(flag),
            )
            for flag, group in sorted(self.report.flags.items(), key=lambda entry: -entry[1].n)
        ]

    def unjudged(self) -> list[tuple[str, int]]:
        return [
            (self.words.named("unjudged", self.words.group(reason)), n) for reason, n in self.report.unjudged.items()
        ]

    def costs(self) -> list[tuple[str, str]]:
        """The cost of judging: calls, tokens, money and time."""
        usage, run = self.report.usage, self.report.run
        facts = []
        if usage.calls:
            names = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")
            facts += [(self.words.say(f"report.{name}"), f"{getattr(usage, name):,}") for name in names]
            cost = NOT_APPLICABLE if usage.cost is None else f"{usage.cost:.4f}"
            facts.append((self.words.say("report.cost"), cost))
        if run:
            facts.append((self.words.say("html.started"), clock(run.started)))
            facts.append((self.words.say("html.finished"), clock(run.finished or NOT_APPLICABLE)))
            facts.append((self.words.say("html.duration"), duration(run.seconds)))
        return facts

    def manifest(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """How the run came about: each entry with its parts, what is empty left out."""
        found = []
        for key, value in (self.report.manifest or {}).items():
            if isinstance(value, list):
                parts = [("", _flat(entry)) for entry in value]
            elif isinstance(value, dict):
                parts = [(str(name), _flat(entry)) for name, entry in value.items()]
            else:
                parts = [("", _flat(value))]
            if parts := [(name, one_line(text, LONGEST_FACT)) for name, text in parts if text]:
                found.append((one_line(key, LONGEST_NAME), parts))
        return found


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return " · ".join(f"{key} {_flat(entry)}" for key, entry in value.items() if entry not in (None, ""))
    if isinstance(value, str):
        return value
    return "" if value is None or value == [] else json.dumps(value, ensure_ascii=False, default=str)


def score_tone(value: float | None, metric: Metric) -> str:
    """How a sample's score is coloured in a list: full marks, none, or in between."""
    low, high = metric.bounds
    if value is None or not math.isfinite(high - low):
        return "good" if value == metric.best else "open"
    if value == metric.best:
        return "good"
    return "bad" if abs(value - metric.best) > (high - low) / 2 else "half"


def clock(moment: str) -> str:
    """2026-03-02T10:11:12+00:00 as people write it."""
    return moment.replace("T", " ").replace("+00:00", " UTC")


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NOT_APPLICABLE
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.0f} s"
