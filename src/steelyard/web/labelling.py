"""Labelling in the browser: which items, in which order, and what a person sees of one. Never what the judge said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Annotated, Any, NamedTuple

from markupsafe import Markup
from pydantic import Field
from starlette.datastructures import ImmutableMultiDict

from steelyard.people.label_targets import Slot
from steelyard.people.labelling import Stratify, asked_slots, candidates, draw
from steelyard.protocols.vocabulary import Kind, Vocabulary
from steelyard.records import DialogueSample, Language, RagSample, Record, Sample, Verdict
from steelyard.reports.blocks import clean
from steelyard.reports.html.richtext import rendered, with_markup
from steelyard.reports.marking import LONGEST_SEARCHED, Searched, TextMark, segments
from steelyard.reports.model import named
from steelyard.store.label_table import ItemKey
from steelyard.store.labels import digest

Verdicts = Callable[[], Iterable[tuple[Sample, Verdict]]]
# Nobody labels against a text that takes an hour to read.
LONGEST_SHOWN = 60_000


class LabelPlan(Record):
    """Which items to label: so many samples drawn at random (0: all), only of these kinds, under which policy."""

    n: int = Field(default=50, ge=0, le=1_000_000)
    seed: int = Field(default=0, ge=0, le=2**31)
    stratify: Stratify | None = None
    kind: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...]
    policy: str = Field(default="1", min_length=1, max_length=100)

    @classmethod
    def of(cls, given: ImmutableMultiDict[str, Any]) -> LabelPlan:
        """As an address or a form says it."""
        named_ones = {name: given[name] for name in ("n", "seed", "stratify", "policy") if given.get(name)}
        return cls.model_validate({**named_ones, "kind": tuple(given.getlist("kind"))})

    @property
    def query(self) -> dict[str, object]:
        """The same as parameters of an address, so that a second person can be given the same draw."""
        given = {"n": str(self.n), "seed": str(self.seed), "stratify": self.stratify}
        return {**given, "kind": list(self.kind), "policy": self.policy}


class LabelTask(NamedTuple):
    """One label to give."""

    sample: str
    kind: str
    turn: int | None
    item: int | None
    weight: float


def tasks(verdicts: Verdicts, plan: LabelPlan) -> tuple[LabelTask, ...]:
    """The labels to give in the order of the run: that of the draw would tell how the judge scored."""
    weights = None
    if plan.n:
        found = list(candidates(verdicts(), stratify=plan.stratify, kinds=plan.kind))
        weights = draw(found, plan.n, seed=plan.seed).weights if found else {}
    return tuple(
        LabelTask(verdict.id, slot.kind, slot.turn, slot.item, weights[verdict.id] if weights is not None else 1.0)
        for _, verdict in verdicts()
        if weights is None or verdict.id in weights
        for slot in asked_slots(verdict, plan.kind)
    )


# --- what a person sees ----------------------------------------------------------------------------


class Choice(Record):
    """A label that can be given, and the key that gives it."""

    key: str
    label: str
    text: str


class Text(Record):
    """A text in pieces; the marked ones are what the item is about."""

    title: str
    pieces: tuple[tuple[str, bool], ...]
    hidden: int = Field(default=0, description="so many characters at its end are left out")


class LabelItem(Record):
    """One item without anything that the judge said about it."""

    sample: str
    kind: str
    turn: int | None
    item: int | None
    name: str
    ask: str
    text: str
    choices: tuple[Choice, ...]
    question: Text | None
    answer: Text | None
    other_answer: Text | None = Field(default=None, description="where two answers are compared")
    passages: tuple[Text, ...]
    earlier: tuple[tuple[str, str], ...] = Field(default=(), description="the turns before this one")
    seen: str = Field(description="digest of all that it is about: a label is kept only for what was shown")


def slot_of(task: LabelTask, verdict: Verdict) -> Slot | None:
    where = (task.kind, task.turn, task.item)
    return next(
        (slot for slot in asked_slots(verdict, (task.kind,)) if (slot.kind, slot.turn, slot.item) == where), None
    )


def seen(task: LabelTask, slot: Slot, sample: Sample) -> str:
    """What a label is about, in short: the judged text, which item of it, and what that item says."""
    about = (digest(sample), *(str(part) for part in task[:4]), slot.text)
    return hashlib.sha256("\0".join(about).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def item_of(task: LabelTask, slot: Slot, sample: Sample, vocab: Vocabulary, language: Language) -> LabelItem:
    """The item as an annotator sees it, without anything that the judge said."""
    aspect, kind = vocab.aspect(task.kind), vocab.kind_with(task.kind)
    _, _, name = slot.task.partition(".")
    choices = tuple(
        Choice(key=str(number), label=label, text=vocab.label_words(task.kind, label, language))
        for number, label in enumerate(slot.choices, start=1)
    )
    shown = LabelItem(
        sample=task.sample,
        kind=task.kind,
        turn=task.turn,
        item=task.item,
        name=vocab.aspect_words(task.kind, language),
        ask=aspect.ask.in_language(language),
        text=(vocab.name_words(kind.name, name, language) if kind else "") or slot.text,
        choices=choices,
        question=None,
        answer=None,
        passages=(),
        seen=seen(task, slot, sample),
    )
    match sample:
        case RagSample():
            return shown.model_copy(update=_rag(sample, kind, slot, language))
        case DialogueSample():
            return shown.model_copy(update=_dialogue(sample, task, language))


def _rag(sample: RagSample, kind: Kind | None, slot: Slot, language: Language) -> dict[str, object]:
    passages = [
        _plain(named(language, "sample", "passage").format(n=number), text)
        for number, text in enumerate(sample.references, start=1)
    ]
    if sample.reference_answer and (kind is None or kind.place != "sentence"):
        passages.append(_plain(named(language, "sample", "reference_answer"), sample.reference_answer))
    question = _plain(named(language, "sample", "question"), sample.question)
    if sample.other_answer is not None:
        # Whose the answers are would sway a person as it would a judge.
        return {
            "question": question,
            "answer": _plain(named(language, "sample", "answer_a"), sample.answer),
            "other_answer": _plain(named(language, "sample", "answer_b"), sample.other_answer),
            "passages": tuple(passages),
        }
    return {
        "question": question,
        "answer": _placed(named(language, "sample", "answer"), sample.answer, kind.place if kind else "", slot.text),
        "passages": tuple(passages),
    }


def _dialogue(sample: DialogueSample, task: LabelTask, language: Language) -> dict[str, object]:
    at = (task.turn or 1) - 1
    turn = sample.turns[at] if at < len(sample.turns) else None
    return {
        "question": _plain(named(language, "sample", "prompt"), turn.prompt) if turn else None,
        "answer": _plain(named(language, "sample", "answer"), turn.answer) if turn else None,
        "passages": (_plain(named(language, "sample", "system_prompt"), sample.system_prompt),),
        "earlier": tuple((earlier.prompt, earlier.answer) for earlier in sample.turns[:at]),
    }


def _plain(title: str, text: str) -> Text:
    return Text(title=title, pieces=((clean(text[:LONGEST_SHOWN]), False),), hidden=max(0, len(text) - LONGEST_SHOWN))


def _placed(title: str, text: str, place: str, item: str) -> Text:
    """The answer with the place that the item is about."""
    shown, rest = clean(text[:LONGEST_SEARCHED]), clean(text[LONGEST_SEARCHED:LONGEST_SHOWN])
    searched = Searched(shown)
    find = {"statement": searched.statement, "sentence": searched.sentence}.get(place)
    marks = [TextMark("i", *span) for span in find(clean(item), 0)] if find else []
    pieces = [(segment.text, bool(segment.keys)) for segment in segments(shown, marks)]
    hidden = max(0, len(text) - LONGEST_SHOWN)
    return Text(title=title, pieces=(*pieces, (rest, False)) if rest else tuple(pieces), hidden=hidden)


def pieces_of(text: Text, item: str) -> list[tuple[str | Markup, bool]]:
    """A text as a page shows it: its Markdown rendered, unless the place of the item is found in the raw text alone."""
    rich = None if text.hidden else rendered("".join(piece for piece, _ in text.pieces))
    if rich is None:
        return list(text.pieces)
    marks: list[TextMark] = []
    if any(is_marked for _, is_marked in text.pieces):
        searched = Searched(rich.searched)
        spans = searched.statement(clean(item), 0) or searched.sentence(clean(item), 0)
        marks = [TextMark("i", *span) for span in spans]
        if not marks:
            return list(text.pieces)
    parts = with_markup(segments(rich.text, marks), rich)
    return [(one, False) if isinstance(one, Markup) else (one.text, bool(one.keys)) for one in parts]


# --- where a person is -----------------------------------------------------------------------------


class DrawnTasks(NamedTuple):
    """The tasks of a plan, what they are about, and the samples that these are of."""

    tasks: tuple[LabelTask, ...]
    keys: frozenset[ItemKey]
    samples: tuple[str, ...]

    @classmethod
    def of(cls, every: tuple[LabelTask, ...]) -> DrawnTasks:
        samples = dict.fromkeys(task.sample for task in every)
        return cls(every, frozenset(task[:4] for task in every), tuple(samples))


class Progress(NamedTuple):
    """What one person has labelled of a plan."""

    drawn: DrawnTasks
    labelled: set[ItemKey]

    @property
    def tasks(self) -> tuple[LabelTask, ...]:
        return self.drawn.tasks

    def has(self, at: int) -> bool:
        return self.tasks[at][:4] in self.labelled

    @property
    def done(self) -> int:
        return len(self.labelled & self.drawn.keys)

    def next_open(self, after: int) -> int | None:
        """The first task without a label behind this one, then from the beginning."""
        order = chain(range(after + 1, len(self.tasks)), range(min(after + 1, len(self.tasks))))
        return next((at for at in order if not self.has(at)), None)

    def last_given(self, before: int) -> int | None:
        """The nearest labelled task before this one: what undo takes back."""
        return next((at for at in range(min(before, len(self.tasks)) - 1, -1, -1) if self.has(at)), None)
