"""How labels moved between two judgings of one sample. Pure.

Labels are compared place by place: a check by its name, a key point by its number, a criterion by its turn and number,
a sentence by its number in the original answer. Judges split an answer into statements each in their own way, so
statements are not compared one by one: each belongs to the sentence it shares most with, and a sentence carries the
worst label of its statements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import RANKS, Kind, Label, Vocabulary, name_of, turn_of
from steelyard.records import AnyItem, DialogueSample, Verdict
from steelyard.text import sentences
from steelyard.trust.audit.changes import Variant

Place = tuple[str, str]
"""The name of an aspect and where it stands: the number of a sentence, the name of a check, turn and number."""

GONE = "gone"
"""No statement is left of a sentence that had one: what was wrong about it counts no more."""
OPEN = "unjudged"

# The label of a sentence is that of its worst statement.
WORST_FIRST = ("bad", "half", OPEN, "open", "good", "neutral")


def rank(vocab: Vocabulary, place: Place, label: str) -> int | None:
    """The rank of a label from bad to good; None for neutral labels."""
    if label == GONE:
        return RANKS["open"]
    return None if label == OPEN else RANKS[vocab.label(place[0], label).tone]


def labels(verdict: Verdict, variant: Variant) -> dict[Place, str]:
    """Every label of a verdict at its place in the original; what belongs to added text is left out."""
    found: dict[Place, str] = {}
    statements: dict[Place, list[Label]] = {}
    vocab, own = vocabulary(verdict.protocol), _Own(verdict, variant)
    for item in verdict.items:
        kind = vocab.kind_of(item)
        at = _place(kind, item, variant, own)
        for aspect, label in kind.labels(item) if at else ():
            if kind.place == "statement":
                statements.setdefault((aspect.name, at), []).append(aspect.label(label))
            elif aspect.asked:
                found[aspect.name, at] = label
    return found | {place: worst(said) for place, said in statements.items()}


def _place(kind: Kind, item: AnyItem, variant: Variant, own: _Own) -> str:
    """Where in the original an item stands; nothing where it belongs to added text or differs from time to time."""
    if kind.identity == "name":
        return name_of(item)
    if (turn := turn_of(item)) is not None:
        at = dict(variant.criteria).get((turn, item.id))
        return f"{at[0]}.{at[1]}" if at else ""
    if kind.place:
        number = own.of(item.text) if kind.place == "statement" else own.number(item.id - 1)
        return "" if number is None else str(number + 1)
    # Points that the judge made up itself differ from time to time; given ones stay.
    return str(item.id) if getattr(item, "keypoints_source", "given") == "given" else ""


def worst(said: Iterable[Label]) -> str:
    """The label of a sentence by those of its statements."""
    return min(said, key=lambda one: WORST_FIRST.index(OPEN if one.name == OPEN else one.tone)).name


def cited(verdict: Verdict, variant: Variant) -> dict[Place, frozenset[int]]:
    """The passages that labels rest on, by their numbers in the original."""
    found: dict[Place, set[int]] = {}
    vocab, own = vocabulary(verdict.protocol), _Own(verdict, variant)
    for item in verdict.items:
        evidence, kind = getattr(item, "evidence", None), vocab.kind_of(item)
        if evidence is None or evidence.reference is None or not kind.place:
            continue
        at, number = _place(kind, item, variant, own), evidence.reference
        passage = variant.passages[number] if 0 <= number < len(variant.passages) else None
        if at and passage is not None:
            found.setdefault((kind.leading.name, at), set()).add(passage)
    return {place: frozenset(passages) for place, passages in found.items()}


class _Own:
    """Which sentence of the original an item of the verdict belongs to."""

    def __init__(self, verdict: Verdict, variant: Variant) -> None:
        self._places = variant.sentences
        said = [] if isinstance(variant.sample, DialogueSample) else sentences(variant.sample.answer)
        self._sentences = [_grams(text) for text in said]
        # A resolved subject stands in every statement; what only one of them says tells where it comes from.
        vocab = vocabulary(verdict.protocol)
        rewords = [item.text for item in verdict.items if vocab.kind_of(item).place == "statement"]
        self._often = Counter(gram for text in rewords for gram in _grams(text))

    def number(self, at: int) -> int | None:
        return self._places[at] if 0 <= at < len(self._places) else None

    def of(self, statement: str) -> int | None:
        """The sentence that a statement shares most with, measured from both sides; the first of equals."""
        wanted = _grams(statement)
        shared = [self._likeness(wanted, grams) for grams in self._sentences]
        if not shared or max(shared) == 0:
            return None
        return self.number(shared.index(max(shared)))

    def _likeness(self, a: Grams, b: Grams) -> float:
        shared = self._weight(a & b)
        return shared * shared / (self._weight(a) * self._weight(b)) if shared else 0.0

    def _weight(self, grams: Grams) -> float:
        return sum(1 / max(1, self._often[gram]) for gram in grams)


Grams = frozenset[tuple[str, ...]]
PIECE = re.compile(r"[\u3400-\u9fff]|[^\W_]+")


def _grams(text: str) -> Grams:
    """Words and pairs of neighbours; Chinese by character."""
    pieces = PIECE.findall(text.casefold())
    return frozenset([(piece,) for piece in pieces]) | frozenset(pairwise(pieces))


def raised(
    vocab: Vocabulary, after: Mapping[Place, str], *before: Mapping[Place, str]
) -> tuple[list[Place], list[Place]]:
    """The places where there was something to raise, and those where it did rise above all that it was before.

    Only places that are labelled in every one of them are looked at; a sentence whose statements are gone is `GONE`.
    """
    room, rose = [], []
    for place in before[0]:
        ranks = [rank(vocab, place, label_at(vocab, found, place)) for found in (*before, after)]
        known = [value for value in ranks if value is not None]
        if len(known) < len(ranks):
            continue
        *then, now = known
        if max(then) < RANKS["good"]:
            room.append(place)
            if now > max(then):
                rose.append(place)
    return room, rose


def label_at(vocab: Vocabulary, found: Mapping[Place, str], place: Place) -> str:
    kind = vocab.kind_with(place[0])
    return found.get(place, GONE if kind and kind.place == "statement" else OPEN)


def compared(
    vocab: Vocabulary, before: Mapping[Place, str], after: Mapping[Place, str], *, named: bool = True
) -> tuple[list[Place], list[Place], int]:
    """Places with the same label, places with another, and how many are open on either side; without `named`, items
    that are told apart by name are left out."""
    same, moved, n_open = [], [], 0
    for place in dict.fromkeys((*before, *after)):
        kind = vocab.kind_with(place[0])
        if not named and kind and kind.identity == "name":
            continue
        pair = label_at(vocab, before, place), label_at(vocab, after, place)
        if OPEN in pair:
            n_open += 1
        elif pair[0] == pair[1]:
            same.append(place)
        else:
            moved.append(place)
    return same, moved, n_open
