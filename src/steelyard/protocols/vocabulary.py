"""The vocabulary of a protocol, as data: kinds of items with their labels, metrics, and the words for them.

Reports, listings, labelling, calibration, comparisons, gates, audits and the viewer read this and nothing else about a
protocol. A name without words stands for itself.

    Vocabulary
    ├── kinds     Kind      one kind of item: atom, sentence …
    │   └── aspects   Aspect    one label of such an item; most kinds have one, a sentence has two
    │       └── labels    Label     a name with its tone: good, half, bad, open, neutral
    ├── whole     Aspect    labels of the sample as a whole: a score of 0 or 1 that people can label too
    ├── metrics   Metric    a score: its scale, its direction, which aspects it is counted from
    └── expectations   Expectation   what a test may expect of one answer, and which labels break it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from steelyard.records import AnyItem, Language, Part, Verdict

UNJUDGED = "unjudged"
UNJUDGED_LIST = "unjudged:"
"""Protocols flag a whole list that could not be had as `unjudged:LIST:REASON`."""

Tone = Literal["good", "half", "bad", "open", "neutral"]
Scale = Literal["ratio", "points", "binary", "count", "number"]
"""A share from 0 to 1, points from 0 to 100, a 0 or 1, a number of things, or a number without known bounds."""
BOUNDS: dict[Scale, tuple[float, float]] = {
    "ratio": (0.0, 1.0),
    "points": (0.0, 100.0),
    "binary": (0.0, 1.0),
    "count": (0.0, math.inf),
    "number": (-math.inf, math.inf),
}
Direction = Literal["up", "down", "neither"]
Number = float | int | None

SIGNS: dict[Tone, str] = {"good": "✓", "half": "◐", "bad": "✗", "open": "?", "neutral": "○"}
# Where several labels count against a sample, those of the first tone are named first.
SEVERITY: tuple[Tone, ...] = ("bad", "half", "open", "good", "neutral")
# What takes an item out of the count is better than wrong, worse than right.
RANKS: dict[Tone, int] = {"bad": 0, "half": 1, "open": 1, "neutral": 1, "good": 2}


class Words(NamedTuple):
    """One phrase in the languages there are; without a Chinese one, the English one stands."""

    en: str = ""
    zh_hans: str = ""
    zh_hant: str = ""

    def __bool__(self) -> bool:
        return bool(self.en)

    def in_language(self, language: Language) -> str:
        chosen = {"en": self.en, "zh-Hans": self.zh_hans, "zh-Hant": self.zh_hant or self.zh_hans}[language]
        return chosen or self.en


NOTHING = Words()
OPEN_WORDS = Words("unjudged", "未评判", "未評判")


@dataclass(frozen=True)
class Label:
    """One label. Colour never stands alone: each has a sign."""

    name: str
    tone: Tone = "neutral"
    words: Words = NOTHING
    sign: str = ""
    against: bool | None = None
    """Whether it counts against the sample; those with a bad or half tone do."""
    follows: bool = False
    """Whether it follows from another label of the item, so that no probability is about it."""

    @property
    def shown_sign(self) -> str:
        return self.sign or SIGNS[self.tone]

    @property
    def is_against(self) -> bool:
        return self.tone in ("bad", "half") if self.against is None else self.against


OPEN = Label(UNJUDGED, "open", OPEN_WORDS, "…")


@dataclass(frozen=True)
class Aspect:
    """One label that an item has, under the name that filters, sheets of people and reports use."""

    name: str
    labels: tuple[Label, ...] = ()
    field: str = "label"
    """The field of the item that holds it."""
    words: Words = NOTHING
    """All of them in a heading: Sentences: topic."""
    one: Words = NOTHING
    """One of them: Sentence: topic."""
    ask: Words = NOTHING
    """What a person is asked."""
    asked: bool = True
    """Whether people are asked unless they say otherwise."""
    confidence: str | None = "confidence"
    """The field that holds how probable the label is; None where none does."""

    def label(self, name: object) -> Label:
        """A label by name; one that is not declared has no tone."""
        text = str(name)
        if text == UNJUDGED:
            return OPEN
        return self._by_name.get(text) or Label(text, sign=" ")

    @cached_property
    def _by_name(self) -> dict[str, Label]:
        return {label.name: label for label in reversed(self.labels)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    def canonical(self, word: str) -> str | None:
        """The label for what a person wrote: its name or its words in any language, in any case."""
        wanted = word.strip().casefold()
        if wanted in self.names:
            return wanted
        spelled = (label for label in self.labels if wanted in (label.name.casefold(), *map(str.casefold, label.words)))
        return next((label.name for label in spelled), None) if wanted else None


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of item."""

    name: str
    aspects: tuple[Aspect, ...]
    """In the order in which they are told; the last one that stands in `label`, or the last, leads."""
    words: Words = NOTHING
    listed_as: str = ""
    """The list of an ask that its items stand in, as a flag `unjudged:LIST:REASON` names it."""
    identity: Literal["alike", "text", "name"] = "alike"
    """What makes two items of two runs the same: much the same words, the very words (in their turn), or their name."""
    by_judge: bool = False
    """Whether a judge words the items, so that their numbers mean nothing in another run."""
    place: Literal["", "statement", "sentence"] = ""
    """How its text is found in the answer: as a sentence of it, or as a statement that rewords it."""
    names: Mapping[str, Words] = field(default_factory=dict)
    """Words for items that have a name."""
    parts: Aspect | None = None
    """The label of the parts that an item may have."""
    flagged: Mapping[str, tuple[str, Label]] = field(default_factory=dict)
    """Flags that change how its label is shown: flag → name of the aspect, label."""
    once: bool = False
    """Whether items of one name are one fact that may stand in several groups."""
    errors_in: tuple[str, ...] = ()
    """The names of the items that a factual error in the answer must fail; empty where each item tells its own."""

    @property
    def leading(self) -> Aspect:
        """The label that reason, quote and confidence are about."""
        return next((a for a in reversed(self.aspects) if a.field == "label"), self.aspects[-1])

    def labels(self, item: AnyItem) -> list[tuple[Aspect, str]]:
        """Every label that an item has; one that does not apply is left out."""
        found = ((aspect, getattr(item, aspect.field, None)) for aspect in self.aspects)
        return [(aspect, str(label)) for aspect, label in found if label is not None]

    def shown_labels(self, item: AnyItem) -> list[tuple[Aspect, str]]:
        """Its labels as reports show them: with those that a flag gives instead."""
        instead = {aspect: label.name for flag, (aspect, label) in self.flagged.items() if flag in item.flags}
        return [(aspect, instead.get(aspect.name, label)) for aspect, label in self.labels(item)]

    def shown(self, item: AnyItem) -> tuple[str, Label]:
        """The label that colours an item: its leading one, unless a flag or a bad one of another aspect says more."""
        for flag, shown in self.flagged.items():
            if flag in item.flags:
                return shown
        leading, labels = self.leading, self.labels(item)
        for aspect, name in labels:
            if aspect is not leading and (label := aspect.label(name)).tone == "bad":
                return aspect.name, label
        if labels and all(aspect is not leading for aspect, _ in labels):
            # The leading one does not apply here: what does colours it.
            aspect, name = labels[-1]
            return aspect.name, aspect.label(name)
        return leading.name, leading.label(getattr(item, leading.field, UNJUDGED))


@dataclass(frozen=True)
class Metric:
    """One score of a sample."""

    name: str
    scale: Scale = "ratio"
    words: Words = NOTHING
    about: Words = NOTHING
    """What it says, in a sentence."""
    direction: Direction = "up"
    """Whether more is better, less is better, or neither."""
    main: bool = False
    """Whether it says how good the assistant is. Of several, the weakest ranks a sample."""
    overall: bool = False
    """Whether it stands for all main ones where a sample has it."""
    reads: tuple[str, ...] = ()
    """The names of the aspects that it is counted from."""
    group: str = ""
    """Only items of this group count."""
    banded: bool = False
    """Whether the bands of its scale are described (`band` in the wording)."""
    never_null: bool = False
    """Whether null can only mean that something has no label."""

    @property
    def bounds(self) -> tuple[float, float]:
        return BOUNDS[self.scale]

    @property
    def mean_scale(self) -> Scale:
        """The scale of its mean over samples."""
        return "ratio" if self.scale == "binary" else self.scale

    @property
    def best(self) -> float:
        low, high = self.bounds
        return low if self.direction == "down" else high

    def goodness(self, value: float) -> float:
        """A number that is larger the better the value is; a share of the scale where it has two ends."""
        low, high = self.bounds
        share = (value - low) / (high - low) if math.isfinite(high - low) else value
        return -share if self.direction == "down" else share


@dataclass(frozen=True)
class Expectation:
    """An expectation of `steelyard.testing` about a single answer. Labels break it, never a score."""

    name: str
    aspect: str
    broken: Words
    """What is said of an answer that breaks it, as a sentence without its stop."""
    by: tuple[str, ...] = ()
    """The labels that break it; where none is named, those that count against a sample."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The vocabulary of one protocol. For one that is not installed it is empty, and names stand for themselves."""

    name: str
    title: Words = NOTHING
    kinds: tuple[Kind, ...] = ()
    whole: tuple[Aspect, ...] = ()
    """Labels of the sample as a whole; each is the 0 or 1 of the score of its name."""
    metrics: tuple[Metric, ...] = ()
    tasks: tuple[str, ...] = ()
    """What it asks; the prompts of these are part of a run's manifest."""
    groups: Mapping[str, Words] = field(default_factory=dict)
    """Words for the groups that items may stand in."""
    one_for_all: str = ""
    """Of several main metrics, the one that stands for them where only one can."""
    most_severe: tuple[str, ...] = ()
    """Names of aspects, those first whose bad labels say most; others follow in their order."""
    outcome: str = ""
    """The aspect that says in one label what became of a sample, of a kind with one item a sample. Reports begin with
    how many samples have which label."""
    sections: tuple[str, ...] = ()
    """Extra sections of a report: `levels`, `turns`, `reasoning`."""
    transcript: str = ""
    """The textual form that its verdicts can be written in."""
    rescore: Callable[[Verdict], Mapping[str, Number]] | None = None
    """The scores that the labels of a verdict give: what people's labels are counted with."""
    expectations: tuple[Expectation, ...] = ()
    """What `steelyard.testing` can assert by it."""

    # --- kinds and labels --------------------------------------------------------------------------

    def kind_named(self, name: str) -> Kind:
        """A kind by name; one that is not declared has the label in `label`."""
        return self._kinds_by_name.get(name) or _undeclared(name)

    @cached_property
    def _kinds_by_name(self) -> dict[str, Kind]:
        return {kind.name: kind for kind in reversed(self.kinds)}

    def kind_of(self, item: AnyItem | Mapping[str, Any]) -> Kind:
        return self.kind_named(item["kind"] if isinstance(item, Mapping) else item.kind)

    def aspects(self) -> Iterator[Aspect]:
        """Every label that a person can be asked for."""
        for kind in self.kinds:
            yield from kind.aspects
        yield from self.whole

    def aspect(self, name: str) -> Aspect:
        parts = (kind.parts for kind in self.kinds if kind.parts)
        return next((one for one in (*self.aspects(), *parts) if one.name == name), Aspect(name))

    def kind_with(self, aspect: str) -> Kind | None:
        return next((kind for kind in self.kinds for one in kind.aspects if one.name == aspect), None)

    def labels_of(self, item: AnyItem) -> list[tuple[str, str]]:
        """Every label of an item, with the name of its aspect."""
        return [(aspect.name, label) for aspect, label in self.kind_named(item.kind).labels(item)]

    def label(self, aspect: str, name: object) -> Label:
        flagged = (label for of, label in self.flagged() if of == aspect and label.name == name)
        return next(flagged, None) or self.aspect(aspect).label(name)

    def flagged(self) -> Iterator[tuple[str, Label]]:
        """The labels that only a flag of an item gives, with the name of their aspect."""
        return (shown for kind in self.kinds for shown in kind.flagged.values())

    def against(self, item: AnyItem) -> list[tuple[str, str]]:
        """The labels of an item that count against its sample."""
        found = self.kind_named(item.kind).labels(item)
        return [(aspect.name, label) for aspect, label in found if aspect.label(label).is_against]

    def breaking(self, item: AnyItem, expectation: Expectation | None) -> list[tuple[str, str]]:
        """The labels of an item that break an expectation; without one, those that count against its sample."""
        if expectation is None:
            return self.against(item)
        found = (pair for pair in self.labels_of(item) if pair[0] == expectation.aspect)
        if not expectation.by:
            return [pair for pair in self.against(item) if pair[0] == expectation.aspect]
        return [pair for pair in found if pair[1] in expectation.by]

    def severity(self, aspect: str, label: str) -> tuple[int, int]:
        """Sorts labels: those that say most about a low score first."""
        names = list(dict.fromkeys((*self.most_severe, *(one.name for one in self.aspects()))))
        at = names.index(aspect) if aspect in names else len(names)
        return SEVERITY.index(self.aspect(aspect).label(label).tone), at

    # --- metrics -----------------------------------------------------------------------------------

    def metric(self, name: str) -> Metric:
        """A metric by name; one that is not declared is a number of which more is better.

        `METRIC.NAME` is a metric counted from the items of that name alone, which may be a user's own.
        """
        if found := next((metric for metric in self.metrics if metric.name == name), None):
            return found
        whole, dot, part = name.partition(".")
        if dot and (found := next((metric for metric in self.metrics if metric.name == whole), None)):
            return replace(found, name=name, words=self._of_part(found.words, part), about=NOTHING, main=False)
        return Metric(name, "number")

    def _of_part(self, words: Words, part: str) -> Words:
        name = next((kind.names[part] for kind in self.kinds if part in kind.names), Words(part, part, part))
        marks = (": ", "：", "：")
        return Words(*(f"{one}{mark}{of}" for one, mark, of in zip(words, marks, name, strict=True)))

    def mains(self, names: Iterable[str]) -> tuple[str, ...]:
        """The main metrics among these scores: those that say how good the assistant is."""
        known = list(names)
        overall = [metric.name for metric in self.metrics if metric.overall and metric.name in known]
        declared = [metric.name for metric in self.metrics if metric.main and metric.name in known]
        return tuple(overall or declared or known[:1])

    @property
    def main(self) -> str:
        """The single main metric, for places that show one."""
        return self.one_for_all or next((metric.name for metric in self.metrics if metric.main), "")

    @property
    def scale(self) -> Scale:
        """The scale of its main metric, for what is told once for all of them."""
        return next((metric.mean_scale for metric in self.metrics if metric.main), "number")

    def main_score(self, scores: Mapping[str, Number]) -> tuple[str, float] | None:
        """The score that ranks a sample: the overall one, the main one, or the weakest of several."""
        known = {name: value for name, value in scores.items() if value is not None and math.isfinite(value)}
        overall = [metric.name for metric in self.metrics if metric.overall and metric.name in known]
        declared = [metric.name for metric in self.metrics if metric.main and metric.name in known]
        ranked = overall or declared or ([] if any(m.main for m in self.metrics) else list(known)[:1])
        name = min(ranked, key=lambda one: self.metric(one).goodness(known[one]), default=None)
        return None if name is None else (name, known[name])

    def is_open(self, name: str, verdict: Verdict) -> bool:
        """Whether a null score is unjudged (something that it needs has no label) or simply does not apply."""
        metric = self.metric(name)
        if verdict.status == "failed" or metric.never_null:
            return True
        kinds = [kind for kind in map(self.kind_with, metric.reads) if kind]
        if any(flag.startswith(f"{UNJUDGED_LIST}{kind.listed_as}:") for kind in kinds for flag in verdict.flags):
            return True
        labels = (pair for item in verdict.items for pair in self.labels_of(item))
        return any(label == UNJUDGED and (not metric.reads or aspect in metric.reads) for aspect, label in labels)

    # --- words -------------------------------------------------------------------------------------

    def title_words(self, language: Language) -> str:
        return self.title.in_language(language) or self.name

    def kind_words(self, name: str, language: Language) -> str:
        """A kind or an aspect as a heading."""
        declared = next((kind.words for kind in self.kinds if kind.name == name and kind.words), NOTHING)
        return (declared or self.aspect(name).words).in_language(language) or self.metric_words(name, language)

    def aspect_words(self, aspect: str, language: Language) -> str:
        return self.aspect(aspect).one.in_language(language) or self.kind_words(aspect, language)

    def label_words(self, aspect: str, name: object, language: Language) -> str:
        return self.label(aspect, name).words.in_language(language) or str(name)

    def item_words(self, item: AnyItem, language: Language) -> str:
        """What an item is called: by its name, where it has one with words, else its text."""
        return self.name_words(item.kind, getattr(item, "name", ""), language) or item.text

    def name_words(self, kind: str, name: str, language: Language) -> str:
        return self.kind_named(kind).names.get(name, NOTHING).in_language(language)

    def group_words(self, name: str, language: Language) -> str:
        return self.groups.get(name, NOTHING).in_language(language) or name

    def metric_words(self, name: str, language: Language) -> str:
        return self.metric(name).words.in_language(language) or name

    def metric_about(self, metric: str, language: Language) -> str:
        return self.metric(metric).about.in_language(language)


@lru_cache(maxsize=256)
def _undeclared(name: str) -> Kind:
    return Kind(name, (Aspect(name),))


def turn_of(item: AnyItem) -> int | None:
    """The turn of a dialogue that an item belongs to."""
    turn: int | None = _held(item, "turn")
    return turn


def name_of(item: AnyItem) -> str:
    """The name of an item that is one of a fixed set, such as a check."""
    return _held(item, "name") or ""


def parts_of(item: AnyItem) -> tuple[Part, ...]:
    return _held(item, "parts") or ()


def _held(item: AnyItem, name: str) -> Any:
    # For each name that a record lacks, `getattr` has pydantic word an error that nobody reads.
    return item.__dict__.get(name) if item.__pydantic_extra__ is None else getattr(item, name, None)
