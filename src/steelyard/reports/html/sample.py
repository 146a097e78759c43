"""One judged sample made ready for a page: marked texts, and items with their quotes, leading to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from markupsafe import Markup

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Kind, Label, Vocabulary, parts_of, turn_of
from steelyard.records import AnyItem, Criterion, DialogueSample, Language, RagSample, Sample, Verdict
from steelyard.reports.blocks import clean
from steelyard.reports.html.items import Items, cut, key_of
from steelyard.reports.html.richtext import RichText, rendered, with_markup
from steelyard.reports.html.views import (
    SEVERITY,
    Badge,
    Chip,
    ItemGroup,
    PassageView,
    Piece,
    SampleView,
    Tone,
    TurnView,
    ViewLimits,
    chip,
    tone_of,
)
from steelyard.reports.marking import LONGEST_SEARCHED, Searched, Segment, Span, TextMark, segments, shortened
from steelyard.reports.model import named
from steelyard.reports.sample import SamplePage, coverage_reasoning
from steelyard.text import language_of
from steelyard.text.likeness import fine_word_pieces, likeness

Numbered = tuple[int, AnyItem]
# The sign of a label that only a flag gives, such as one within a tolerance.
FLAGGED_SIGNS = ("≈",)


def sample_view(
    verdict: Verdict, sample: Sample | None, language: Language, anchor: str = "s", limits: ViewLimits | None = None
) -> SampleView:
    """The view of one judged sample; without the sample itself, of its items alone."""
    return _ViewBuilder(verdict, sample, language, anchor, limits or ViewLimits()).view()


def readable(text: str) -> str:
    """A text without invisible characters, as far as anybody looks into it."""
    return clean(text[:LONGEST_SEARCHED])


def kept(items: list[Numbered], most: int, vocab: Vocabulary) -> list[Numbered]:
    """At most so many items, in order; those that count against the answer are dropped last."""
    if len(items) <= most:
        return items
    graded = sorted(items, key=lambda pair: not vocab.against(pair[1]))
    return sorted(graded[:most], key=lambda pair: pair[0])


class _ViewBuilder:
    def __init__(
        self, verdict: Verdict, sample: Sample | None, language: Language, anchor: str, limits: ViewLimits
    ) -> None:
        self.verdict, self.sample, self.language, self.anchor, self.limits = verdict, sample, language, anchor, limits
        self.page = SamplePage(verdict, language)
        self.badges: dict[str, tuple[str, Tone, str]] = {}
        self.source_badges: dict[str, tuple[str, Tone, str]] = {}
        self.places: set[str] = set()
        self.quotes: set[str] = set()
        self.items = Items(self.page, limits, self.places, self.quotes)
        numbered = list(enumerate(verdict.items))
        self.vocab = vocabulary(verdict.protocol)
        names = dict.fromkeys((*(kind.name for kind in self.vocab.kinds), *(item.kind for item in verdict.items)))
        self.all = {name: [pair for pair in numbered if pair[1].kind == name] for name in names}
        self.shown = {name: kept(found, limits.items, self.vocab) for name, found in self.all.items()}

    def view(self) -> SampleView:
        texts = self._spoken()
        spoken = language_of(*texts) if any(texts) else self.language
        view = SampleView(
            anchor=self.anchor,
            id=self.verdict.id,
            language=spoken if spoken != self.language else None,
            facts=self.page.facts(self.sample),
            scores=tuple(self.page.score_rows()),
            flags=tuple((flag, self.page.flag(flag)) for flag in self.verdict.flags),
            remarks=self._remarks(),
        )
        if isinstance(self.sample, DialogueSample):
            return self._dialogue(view, self.sample)
        if isinstance(self.sample, RagSample):
            view = self._rag(view, self.sample)
        if own := str(self.verdict.notes.get("own_answer") or ""):
            view = replace(view, texts=(*view.texts, self._rendered(self.page.say("own_answer"), own)))
        return replace(view, groups=tuple(self._groups()))

    def _rag(self, view: SampleView, sample: RagSample) -> SampleView:
        say = self.page.say
        (title, text), *other = self.page.answers(sample)
        answer = self._answer(title, text)
        given = sample.reference_answer
        passages = self._passages(sample)
        return replace(
            view,
            question=self._plain(say("question"), sample.question) if sample.question.strip() else None,
            answer=answer,
            other_answer=self._rendered(*other[0]) if other else None,
            texts=(self._rendered(say("reference_answer"), given),) if given else (),
            passages=passages,
            passages_hidden=len(sample.references) - len(passages),
            legend=tuple(self._legend()),
        )

    def _spoken(self) -> list[str]:
        if isinstance(self.sample, RagSample):
            return [self.sample.question, self.sample.answer, self.sample.other_answer or ""]
        if self.sample:
            return [self.sample.system_prompt, *(turn.prompt for turn in self.sample.turns[:3])]
        return [item.text for item in self.verdict.items[:3]]

    def _remarks(self) -> tuple[tuple[str, str], ...]:
        if "reasoning" not in self.vocab.sections:
            return ()
        *_, summary = coverage_reasoning(self.verdict, self.language).split("\n")
        return ((self.page.say("reasoning"), cut(summary)),) if summary else ()

    # --- places ------------------------------------------------------------------------------------

    def _answer(self, title: str, text: str) -> PassageView:
        """The answer with its marks: its Markdown rendered, unless a mark finds its place in the raw text alone."""
        raw = self._answer_marks(readable(text))
        rich = rendered(readable(text))
        marks = self._answer_marks(rich.searched) if rich else []
        if rich and {mark.key for mark in raw} <= {mark.key for mark in marks}:
            return self._rich(self._marked(title, text, raw, "t"), rich, marks)
        self.places.intersection_update(mark.key for mark in raw)
        return self._marked(title, text, raw, "t")

    def _answer_marks(self, answer: str) -> list[TextMark]:
        """Where in the answer each sentence and each statement lies."""
        searched, marks = Searched(answer), []
        after: dict[str, int] = {}
        for key, text, _, label, number in self._placed():
            kind = key[0]
            find = searched.statement if kind == "a" else searched.sentence
            spans = find(clean(text), after.get(kind, 0))
            marks += [TextMark(key, *span) for span in spans]
            if spans:
                # Two statements may share a clause; a sentence never begins before the last one ended.
                after[kind] = spans[-1][0] if kind == "a" else spans[-1][1]
                self.places.add(key)
            self.badges[key] = badge(number, label)
        return marks

    def _kinds(self) -> list[Kind]:
        """The kinds whose items have a place in the answer: parts, then sentences, then statements."""
        kinds = [self.vocab.kind_named(name) for name in self.shown]
        order = ("", "sentence", "statement")
        return sorted((kind for kind in kinds if kind.place or kind.parts), key=lambda kind: order.index(kind.place))

    def _placed(self) -> Iterator[tuple[str, str, str, Label, str]]:
        """What has a place in the answer: key, text, the aspect and the label that colour it, number."""
        for kind in self._kinds():
            for index, item in self.shown[kind.name]:
                if kind.place:
                    yield key_of(kind, index), item.text, *kind.shown(item), self.items.number(item)
                for number, part in enumerate(parts_of(item)[: self.limits.items] if kind.parts else ()):
                    assert kind.parts is not None
                    label = kind.parts.label(part.label)
                    yield f"p{index}-{number}", part.text, kind.parts.name, label, str(number + 1)

    def _passages(self, sample: RagSample) -> tuple[PassageView, ...]:
        marks: dict[int, list[TextMark]] = {}
        searched: dict[int, Searched] = {}
        for kind, index, item in ((of, *pair) for of in self._kinds() for pair in self.shown[of.name]):
            evidence = getattr(item, "evidence", None)
            at = evidence.reference if evidence and evidence.verified else None
            if evidence is None or at is None or not 0 <= at < len(sample.references):
                continue
            key = key_of(kind, index)
            if at not in searched:
                searched[at] = Searched(readable(sample.references[at]))
            if spans := searched[at].quote(clean(evidence.quote)):
                self.quotes.add(key)
                leading = kind.leading
                if kind.shown(item)[0] != leading.name and len(kind.aspects) > 1:
                    # Beside its source an off-topic sentence is one that the source supports.
                    self.source_badges[key] = badge(str(item.id), leading.label(getattr(item, leading.field)))
                marks.setdefault(at, []).extend(TextMark(key, *span) for span in spans)
        for key, text in self._parts():
            if found := self._closest(text, sample.references, searched):
                self.quotes.add(key)
                marks.setdefault(found[0], []).extend(TextMark(key, *span) for span in found[1])
        return tuple(
            self._marked(self.page.say("passage").format(n=at + 1), text, marks.get(at, []), "q")
            for at, text in enumerate(sample.references)
            if at < self.limits.passages or at in marks
        )

    def _parts(self) -> Iterator[tuple[str, str]]:
        """The parts of items. No judge quotes for them, so what the passages say about them is looked for."""
        return ((key, text) for key, text, *_ in self._placed() if key.startswith("p"))

    def _closest(
        self, text: str, references: Sequence[str], searched: dict[int, Searched]
    ) -> tuple[int, tuple[Span, ...]] | None:
        """The passage, and the place in it, that shares most of a text's wording; none where no place is close."""
        wanted = fine_word_pieces(text)
        best: tuple[float, int, tuple[Span, ...]] | None = None
        for at, reference in enumerate(references[: self.limits.passages]):
            if at not in searched:
                searched[at] = Searched(readable(reference))
            spans = searched[at].statement(clean(text))
            said = set().union(*(fine_word_pieces(searched[at].text[slice(*span)]) for span in spans))
            if spans and (best is None or likeness(said, wanted) > best[0]):
                best = likeness(said, wanted), at, spans
        return best and best[1:]

    def _marked(self, title: str, text: str, marks: Sequence[TextMark], place: Literal["t", "q"]) -> PassageView:
        pieces = shortened(segments(readable(text), marks), self.limits.text)
        if len(text) > LONGEST_SEARCHED:
            pieces.append(Segment("", hidden=len(text) - LONGEST_SEARCHED))
        return PassageView(title, tuple(self._piece(piece, place) for piece in pieces), len(text), bool(marks))

    def _plain(self, title: str, text: str) -> PassageView:
        return self._marked(title, text, (), "t")

    def _rendered(self, title: str, text: str) -> PassageView:
        """A text that is nobody's answer here, or an answer without marks."""
        rich, plain = rendered(readable(text)), self._plain(title, text)
        return self._rich(plain, rich, ()) if rich else plain

    def _rich(self, raw: PassageView, rich: RichText, marks: Sequence[TextMark]) -> PassageView:
        parts = with_markup(segments(rich.text, marks), rich)
        pieces = tuple(Piece("", markup=one) if isinstance(one, Markup) else self._piece(one, "t") for one in parts)
        return replace(raw, pieces=pieces, raw=raw.pieces)

    def _piece(self, segment: Segment, place: Literal["t", "q"]) -> Piece:
        badges = self.badges | self.source_badges if place == "q" else self.badges
        tones = {badges[key][1] for key in segment.keys}
        return Piece(
            segment.text,
            segment.keys,
            min(tones, key=SEVERITY.index, default="plain"),
            tuple(Badge(key, place, *badges[key]) for key in segment.ends if self._shows_badge(key, place)),
            segment.hidden,
        )

    def _shows_badge(self, key: str, place: str) -> bool:
        # Where sentences carry the numbers, a right statement inside them would only add noise.
        quiet = self.items.crowded and key[0] == "a" and place == "t"
        return not quiet or self.badges[key][1] not in ("good", "plain") or self.badges[key][2] in FLAGGED_SIGNS

    def _legend(self) -> Iterator[Chip]:
        """The labels that occur in the answer, each once."""
        found = {(aspect, label): None for key, _, aspect, label, _ in self._placed() if key in self.places}
        for aspect, label in found:
            yield chip(self.language, self.vocab, aspect, label.name)

    # --- lists of items ----------------------------------------------------------------------------

    def _groups(self) -> Iterator[ItemGroup]:
        say = self.page.say
        for name, shown in self.shown.items():
            title, hidden = self.vocab.kind_words(name, self.language), len(self.all[name]) - len(shown)
            if self.vocab.kind_named(name).identity == "name":
                for group, members in groupby(shown, key=lambda pair: getattr(pair[1], "group", "")):
                    yield self._group(f"{title} · {self.vocab.group_words(group, self.language)}", list(members))
            elif shown:
                derived = any(getattr(item, "keypoints_source", "") == "derived" for _, item in shown)
                yield self._group(title, shown, say("key_points_derived") if derived else "", hidden)

    def _group(self, title: str, shown: Sequence[Numbered], note: str = "", hidden: int = 0) -> ItemGroup:
        return ItemGroup(title, tuple(self.items.view(index, item) for index, item in shown), note, hidden)

    # --- dialogue ----------------------------------------------------------------------------------

    def _dialogue(self, view: SampleView, sample: DialogueSample) -> SampleView:
        of_turns = [(index, item) for shown in self.shown.values() for index, item in shown if turn_of(item)]
        searched = Searched(readable(sample.system_prompt))
        marks: list[TextMark] = []
        for index, item in of_turns:
            kind = self.vocab.kind_of(item)
            key = key_of(kind, index)
            self.badges[key] = badge(f"{turn_of(item)}.{item.id}", kind.shown(item)[1])
            quoted = isinstance(item, Criterion) and item.quote_verified
            if quoted and (spans := searched.quote(clean(getattr(item, "quote", "")))):
                self.quotes.add(key)
                marks += [TextMark(key, *span) for span in spans]
        totals = Counter(turn_of(item) for item in self.verdict.items)
        turns = [
            TurnView(
                self.page.say("turn").format(n=number),
                self._plain(self.page.say("prompt"), turn.prompt),
                self._rendered(self.page.say("answer"), turn.answer),
                self._of_turn([(index, item) for index, item in of_turns if turn_of(item) == number], totals[number]),
            )
            for number, turn in enumerate(sample.turns[: self.limits.items], start=1)
        ]
        prompt = self._marked(self.page.say("system_prompt"), sample.system_prompt, marks, "q")
        left = len(sample.turns) - len(turns)
        rest = (ItemGroup(named(self.language, "report", "turn"), (), hidden=left),) if left else ()
        return replace(view, passages=(prompt,), turns=tuple(turns), groups=rest)

    def _of_turn(self, shown: Sequence[Numbered], total: int) -> ItemGroup:
        note = "" if total else self.page.say("no_criteria")
        kinds = dict.fromkeys(item.kind for _, item in shown) or [kind.name for kind in self.vocab.kinds[:1]]
        title = " · ".join(self.vocab.kind_words(name, self.language) for name in kinds)
        return self._group(title, shown, note, total - len(shown))


def badge(number: str, label: Label) -> tuple[str, Tone, str]:
    return number, tone_of(label), label.shown_sign.strip()
