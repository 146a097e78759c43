"""One sample in full: what was asked and answered, every item with its label, reason and evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from steelyard.protocols import vocabulary
from steelyard.protocols.counts import shallow
from steelyard.protocols.scoring import band_of_score
from steelyard.protocols.vocabulary import UNJUDGED, Kind, parts_of, turn_of
from steelyard.records import (
    AnyItem,
    Atom,
    Criterion,
    DialogueSample,
    Evidence,
    Item,
    KeyPoint,
    Language,
    Part,
    RagSample,
    Sample,
    Verdict,
)
from steelyard.reports.blocks import Block, Entry, Heading, Lines, Passage, Table, Tone, TonedText, score
from steelyard.reports.markdown import document
from steelyard.reports.marking import evidence_marks
from steelyard.reports.model import agreement_notes, bracketed, named, reason_in
from steelyard.text.wording import band_description, say

if TYPE_CHECKING:
    from rich.console import RenderableType

HIGH, MIDDLE = 80, 50


def render_sample(verdict: Verdict, sample: Sample | None, language: Language) -> RenderableType:
    """The sample for a terminal."""
    from steelyard.reports.terminal import renderable

    return renderable(sample_blocks(verdict, sample, language))


def sample_markdown(verdict: Verdict, sample: Sample | None, language: Language) -> str:
    """The sample as a Markdown document."""
    return document(sample_blocks(verdict, sample, language))


def sample_blocks(verdict: Verdict, sample: Sample | None, language: Language) -> Iterator[Block]:
    """The sample as a page, in reading order."""
    view = SamplePage(verdict, language)
    yield Heading(f"{view.vocab.title_words(language)} · {verdict.id}", 1)
    yield view.summary(sample)
    yield from view.scores()
    yield from view.flags()
    if isinstance(sample, RagSample):
        yield from view.rag(sample)
    if verdict.notes.get("own_answer"):
        yield from view.quoted("own_answer", str(verdict.notes["own_answer"]))
    yield from view.items()
    yield from view.turns(sample if isinstance(sample, DialogueSample) else None)


def confidence_text(item: AnyItem | Part) -> str:
    """The probability that a judge gives to its label, in two digits; only a full 1 reads as one."""
    if item.confidence is None or (isinstance(item, Item) and item.confidence_kind == "votes"):
        return ""
    return f"{item.confidence if item.confidence == 1 else min(item.confidence, 0.99):.2f}"


class SamplePage:
    """The texts about one sample in one language, shared by all output formats."""

    def __init__(self, verdict: Verdict, language: Language) -> None:
        self.verdict, self.language, self.vocab = verdict, language, vocabulary(verdict.protocol)

    def say(self, key: str) -> str:
        return say(self.language, f"sample.{key}")

    def label(self, kind: str, label: object) -> TonedText:
        found = self.vocab.label(kind, str(label))
        tone: Tone = "good" if found.tone == "good" else "bad" if found.tone == "bad" else "open"
        return TonedText(found.words.in_language(self.language) or found.name, tone)

    def fact(self, key: str, text: str) -> tuple[tuple[str, str], ...]:
        """A named line, left out where there is nothing to say."""
        return ((self.say(key) + say(self.language, "report.colon"), text),) if text else ()

    def reason(self, text: str, key: str = "reason") -> tuple[tuple[str, str], ...]:
        return self.fact(key, reason_in(self.language, text))

    def beside(self, item: AnyItem) -> tuple[tuple[str, str], ...]:
        """What stands beside an item's labels: how sure they are, who gave them, what they were at first, its flags."""
        sure = self.fact("confidence", confidence_text(item))
        return sure + self.by_whom(item) + self.opinions(item)

    def by_whom(self, item: AnyItem | Part) -> tuple[tuple[str, str], ...]:
        """Which judge of a routed one gave the label, and what the second said where it was asked too."""
        facts = self.fact("judge", item.judge or "")
        if second := item.second_opinion:
            of_parts = (kind.parts for kind in self.vocab.kinds if kind.parts)
            aspect = next(of_parts) if isinstance(item, Part) else self.vocab.kind_of(item).leading
            label = self.vocab.label_words(aspect.name, str(second.label), self.language)
            # A judge may be called anything, also `{label}`.
            parts = {"{judge}": second.judge, "{label}": label}
            text = re.sub(r"{\w+}", lambda found: parts[found[0]], self.say("second_opinion_told"))
            facts += self.fact("second_opinion", text)
        return facts

    def opinions(self, item: AnyItem) -> tuple[tuple[str, str], ...]:
        """How many of several judges gave the labels, what they were before a second pass, and the item's flags."""
        voted = item.confidence is not None and item.confidence_kind == "votes"
        votes = f"{100 * item.confidence:.0f}%" if voted and item.confidence is not None else ""
        names = {aspect.field: aspect.name for aspect in self.vocab.kind_of(item).aspects}
        first = say(self.language, "report.comma").join(
            self.vocab.label_words(names.get(field, field), str(label), self.language)
            for field, label in (item.first or {}).items()
        )
        return self.fact("votes", votes) + self.fact("first", first) + self.flagged(item.flags)

    def flagged(self, flags: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple(pair for flag in flags for pair in self.fact("notes", self.flag(flag)))

    def flag(self, flag: str) -> str:
        _, found, rest = flag.partition("unjudged:")
        if found:
            what, _, reason = rest.partition(":")
            listed = named(self.language, "list", what)
            return f"{listed}{say(self.language, 'report.colon')}{reason_in(self.language, reason)}"
        return named(self.language, "flag", flag)

    # --- the frame ---------------------------------------------------------------------------------

    def summary(self, sample: Sample | None) -> Lines:
        lines = [name + text for name, text in self.facts(sample)]
        return Lines((*lines, *agreement_notes([self.verdict.judge], self.language).values()))

    def facts(self, sample: Sample | None) -> tuple[tuple[str, str], ...]:
        """What is known about the sample as a whole, name and value."""
        facts = self.fact("status", named(self.language, "status", self.verdict.status))
        facts += self.fact("judge", self.verdict.judge)
        if sample:
            models = (sample.model, getattr(sample, "other_model", None))
            facts += self.fact("model", " / ".join(filter(None, models)))
            facts += self.fact("tags", say(self.language, "report.comma").join(sample.tags))
        if isinstance(sample, RagSample):
            facts += self.fact("date", sample.date or "") + self.fact("place_given", sample.place or "")
        for note in ("failure", "reason"):
            facts += self.reason(str(self.verdict.notes.get(note) or ""))
        return facts

    def score_rows(self) -> Iterator[tuple[str, str, str]]:
        """Each score: its name, its value, and what the value means."""
        for name, value in self.verdict.scores.items():
            metric, meaning = self.vocab.metric(name), self.vocab.metric_about(name, self.language)
            if metric.banded and value is not None:
                meaning = band_description(name, band_of_score(int(value)), self.language)
            if value is None:
                unjudged = self.vocab.is_open(name, self.verdict)
                meaning = say(self.language, "report.n_unjudged" if unjudged else "report.not_applicable")
            # One sample's yes or no is a 1 or a 0, not a percentage.
            shown = score(value, "points" if metric.scale == "binary" else metric.scale)
            yield self.vocab.metric_words(name, self.language), shown, meaning

    def scores(self) -> Iterator[Block]:
        yield Heading(self.say("scores"))
        header = (say(self.language, f"report.{key}") for key in ("score", "value", "meaning"))
        yield Table(tuple(header), "lrl", tuple(self.score_rows()))
        if "reasoning" in self.vocab.sections:
            yield Heading(self.say("reasoning"), 3)
            yield Lines(tuple(coverage_reasoning(self.verdict, self.language).split("\n")))

    def flags(self) -> Iterator[Block]:
        if self.verdict.flags:
            yield Heading(self.say("flags"))
            colon = say(self.language, "report.colon")
            lines = (f"{flag}{colon}{self.flag(flag)}" for flag in self.verdict.flags)
            yield Lines(tuple(lines), listed=True)

    def passage_named(self, index: int) -> str:
        return self.say("passage").format(n=index + 1)

    def quoted(self, key: str, text: str) -> Iterator[Block]:
        yield Heading(self.say(key))
        yield Passage(text)

    def answers(self, sample: RagSample) -> tuple[tuple[str, str], ...]:
        """The answer; of two that are compared, each with whose it is."""
        if sample.other_answer is None:
            return ((self.say("answer"), sample.answer),)
        names = sample.contestants or ("", "")
        texts = (("answer_a", sample.answer), ("answer_b", sample.other_answer))
        return tuple(
            (self.say(key) + (f" · {name}" if name else ""), text)
            for (key, text), name in zip(texts, names, strict=True)
        )

    def rag(self, sample: RagSample) -> Iterator[Block]:
        if sample.question.strip():
            yield from self.quoted("question", sample.question)
        for title, text in self.answers(sample):
            yield Heading(title)
            yield Passage(text)
        if sample.reference_answer:
            yield from self.quoted("reference_answer", sample.reference_answer)
        if sample.references:
            yield Heading(self.say("references"))
        for index, passage in enumerate(sample.references):
            marks = evidence_marks(passage, index, self.verdict)
            yield Passage(passage, self.passage_named(index), marks)

    # --- the items ---------------------------------------------------------------------------------

    def evidence(self, evidence: Evidence | None) -> tuple[tuple[str, str], ...]:
        if evidence is None:
            return ()
        parts = []
        if evidence.reference is not None:
            parts.append(self.passage_named(evidence.reference))
        parts.append(named(self.language, "source", evidence.source))
        if evidence.quote:
            parts.append(self.say("verified" if evidence.verified else "unverified"))
        about = bracketed(self.language, say(self.language, "report.comma").join(parts))
        return self.fact("evidence", f"{evidence.quote}{about}".strip())

    def difference(self, atom: Atom) -> tuple[tuple[str, str], ...]:
        """The claimed and the stated value, where they differ."""
        if atom.difference is None:
            return ()
        claimed, stated = atom.difference.claimed, atom.difference.stated
        kind = named(self.language, "difference", atom.difference.kind)
        template = self.say("difference_told")
        # Judged text is never a template: what it holds in braces stays as it is.
        parts = {"{claimed}": claimed, "{stated}": stated, "{kind}": kind}
        return self.fact("difference", re.sub(r"{\w+}", lambda found: parts[found[0]], template))

    def items(self) -> Iterator[Block]:
        """The items that belong to no turn, kind by kind."""
        found = [item for item in self.verdict.items if not turn_of(item)]
        names = dict.fromkeys((*(kind.name for kind in self.vocab.kinds), *(item.kind for item in found)))
        for name in names:
            of_kind = [item for item in found if item.kind == name]
            for group, members in groupby(of_kind, key=lambda item: getattr(item, "group", "")):
                title = self.vocab.kind_words(name, self.language)
                about = (
                    say(self.language, "report.colon") + self.vocab.group_words(group, self.language) if group else ""
                )
                yield Heading(title + about)
                if any(getattr(item, "keypoints_source", "") == "derived" for item in of_kind):
                    yield Lines((self.say("key_points_derived"),))
                yield from map(self.entry, members)

    def entry(self, item: AnyItem) -> Entry:
        """One item with its labels and all that is known about it."""
        kind = self.vocab.kind_of(item)
        labels = tuple(self.label(aspect.name, label) for aspect, label in kind.shown_labels(item))
        text = self.vocab.item_words(item, self.language)
        further: tuple[TonedText, ...] = ()
        facts = self.reason(item.reason)
        match item:
            case Atom():
                further = (TonedText(named(self.language, "level", str(item.level))),) if item.level else ()
                if item.causal_of is not None:
                    further += (TonedText(self.say("causal_of").format(n=item.causal_of)),)
                facts += self.reason(item.level_reason, "level_reason")
                facts += self.evidence(item.evidence) + self.difference(item)
            case KeyPoint():
                further = (TonedText(named(self.language, "depth", item.depth)),) if item.depth else ()
            case Criterion():
                facts = self._of_criterion(item)
            case _:
                facts += self._of_parts(kind, item) + self.evidence(getattr(item, "evidence", None))
        return Entry(item.id, text, labels + further, facts + self.beside(item))

    def _of_parts(self, kind: Kind, item: AnyItem) -> tuple[tuple[str, str], ...]:
        colon = say(self.language, "report.colon")
        return tuple(
            (
                f"{self.label(kind.parts.name, part.label).text} {confidence_text(part)}".strip() + colon,
                part.text + (bracketed(self.language, reason_in(self.language, part.reason)) if part.reason else ""),
            )
            for part in parts_of(item)
            if kind.parts
        )

    def turns(self, sample: DialogueSample | None) -> Iterator[Block]:
        found = [item for item in self.verdict.items if turn_of(item)]
        if sample:
            yield from self.quoted("system_prompt", sample.system_prompt)
        given = range(1, len(sample.turns) + 1) if sample else ()
        for number in sorted({*given, *(turn_of(item) or 0 for item in found)}):
            of_turn = [item for item in found if turn_of(item) == number]
            yield Heading(self.say("turn").format(n=number))
            if sample and number in given:
                yield Passage(sample.turns[number - 1].prompt, self.say("prompt"))
                yield Passage(sample.turns[number - 1].answer, self.say("answer"))
            if not of_turn:
                yield Lines((self.say("no_criteria"),))
            yield from map(self.entry, of_turn)

    def _of_criterion(self, c: Criterion) -> tuple[tuple[str, str], ...]:
        mark = self.say("verified" if c.quote_verified else "unverified")
        quote = c.quote + bracketed(self.language, mark) if c.quote else ""
        decided = self.fact("decided_by", named(self.language, "decided_by", c.decided_by))
        return (
            self.fact("place", c.place)
            + self.fact("basis", quote)
            + self.reason(c.validity_reason, "validity_reason")
            + (self.reason(c.reason) if c.reason != c.validity_reason else ())
            + (decided if c.label != UNJUDGED else ())
        )


# --- the reasoning behind coverage -----------------------------------------------------------------


def coverage_reasoning(verdict: Verdict, language: Language) -> str:
    """Hit, partial and missing points, the depth of each, and one summary in a human tone at the end."""
    points = [item for item in verdict.items if isinstance(item, KeyPoint)]
    lines = [] if points else [say(language, "reasoning.no_points")]
    vocab = vocabulary(verdict.protocol)
    tones = {point.id: vocab.kind_of(point).leading.label(point.label).tone for point in points}
    for tone, key in {"good": "hit", "half": "partly", "bad": "left_out", "open": "open"}.items():
        of_tone = [point for point in points if tones[point.id] == tone]
        if points and (of_tone or tone != "open"):
            lines.append(say(language, f"reasoning.{key}").format(n=len(of_tone)) + _list(of_tone, tone, language))
    covered = sum(tone == "good" for tone in tones.values())
    return "\n".join([*lines, _summary(verdict, points, covered, language)]).strip()


def _list(points: Sequence[KeyPoint], tone: str, language: Language) -> str:
    colon = say(language, "report.colon")
    if not points:
        return colon + say(language, "reasoning.none")
    mark = "; " if language == "en" else "；"
    return colon + mark.join(_point(point, tone, language) for point in points)


def _point(point: KeyPoint, tone: str, language: Language) -> str:
    about = []
    if point.depth:
        about.append(say(language, "reasoning.depth").format(depth=named(language, "depth", point.depth)))
    elif tone in ("good", "half"):
        about.append(say(language, "reasoning.depth_unknown"))
    if point.reason:
        about.append(reason_in(language, point.reason))
    text = " ".join(point.text.split())
    return text + bracketed(language, " ".join(" · ".join(about).split())) if about else text


def _summary(verdict: Verdict, points: Sequence[KeyPoint], covered: int, language: Language) -> str:
    """The judge's own summary; without one, a sentence that follows from the counts."""
    given = " ".join(str(verdict.notes.get("summary") or "").split())
    if given or not points:
        return given
    completeness = verdict.scores.get("completeness")
    if completeness is None:
        return say(language, "reasoning.summary_open")
    key = "high" if completeness >= HIGH else "middle" if completeness >= MIDDLE else "low"
    if shallow(points) and key != "low":
        key = "shallow"
    return say(language, f"reasoning.summary_{key}").format(covered=covered, total=len(points))
