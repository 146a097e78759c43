"""How labels moved between two judgings of one sample. Pure.

Labels are compared place by place: a check by its name, a key point by its number, a criterion by its turn and number,
a sentence by its number in the original answer. Judges split an answer into statements each in their own way, so
statements are not compared one by one: each belongs to the sentence it shares most with, and a sentence carries the
worst label of its statements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from steelyard.audit.changes import Variant
from steelyard.records import Atom, Check, Criterion, DialogueSample, KeyPoint, Sentence, Verdict
from steelyard.text import sentences

Place = tuple[str, str]
"""The kind of a label and where it stands: ("support", "2"), ("check", "complete"), ("criterion", "1.2")."""

GONE = "gone"
"""No statement is left of a sentence that had one: what was wrong about it counts no more."""
OPEN = "unjudged"

# How good each label is for the answer. What takes an item out of the count is better than wrong, worse than right.
RANKS: Mapping[str, Mapping[str, int]] = {
    "atom": {"wrong": 0, "undetermined": 1, "exempt": 1, GONE: 1, "correct": 2},
    "check": {"0": 0, "1": 1},
    "on_topic": {"off_topic": 0, "on_topic": 1},
    "support": {"unsupported": 0, "partial": 1, "no_claim": 1, "supported": 2},
    "key_point": {"missing": 0, "partial": 1, "covered": 2},
    "criterion": {"violated": 0, "undetermined": 1, "satisfied": 2},
}
BEST = {kind: max(ranks.values()) for kind, ranks in RANKS.items()}
WORST_FIRST = ("wrong", OPEN, "undetermined", "correct", "exempt")


def rank(place: Place, label: str) -> int | None:
    """How good a label is for the answer; None where it says nothing about that."""
    return RANKS.get(place[0], {}).get(label)


def labels(verdict: Verdict, variant: Variant) -> dict[Place, str]:
    """Every label of a verdict at its place in the original; what belongs to added text is left out."""
    found: dict[Place, str] = {}
    criteria = dict(variant.criteria)
    statements: dict[int, list[str]] = {}
    own = _Own(verdict, variant)
    for item in verdict.items:
        match item:
            case Check():
                found["check", item.name] = str(item.label)
            case KeyPoint():
                # Points that the judge made up itself differ from time to time; given ones stay.
                if item.keypoints_source == "given":
                    found["key_point", str(item.id)] = item.label
            case Criterion():
                if at := criteria.get((item.turn, item.id)):
                    found["criterion", f"{at[0]}.{at[1]}"] = item.label
            case Sentence():
                if (number := own.number(item.id - 1)) is not None:
                    if item.on_topic is not None:
                        found["on_topic", str(number + 1)] = item.on_topic
                    found["support", str(number + 1)] = item.support
            case Atom():
                if (number := own.of(item.text)) is not None:
                    statements.setdefault(number, []).append(item.label)
    for number, said in statements.items():
        found["atom", str(number + 1)] = worst(said)
    return found


def worst(said: Iterable[str]) -> str:
    """The label of a sentence by those of its statements."""
    return min(said, key=WORST_FIRST.index)


def cited(verdict: Verdict, variant: Variant) -> dict[Place, frozenset[int]]:
    """The passages that labels rest on, by their numbers in the original."""
    found: dict[Place, set[int]] = {}
    own = _Own(verdict, variant)
    for item in verdict.items:
        if not isinstance(item, Atom | Sentence) or item.evidence is None or item.evidence.reference is None:
            continue
        number = own.of(item.text) if isinstance(item, Atom) else own.number(item.id - 1)
        at = item.evidence.reference
        passage = variant.passages[at] if 0 <= at < len(variant.passages) else None
        if number is not None and passage is not None:
            kind = "atom" if isinstance(item, Atom) else "support"
            found.setdefault((kind, str(number + 1)), set()).add(passage)
    return {place: frozenset(passages) for place, passages in found.items()}


class _Own:
    """Which sentence of the original an item of the verdict belongs to."""

    def __init__(self, verdict: Verdict, variant: Variant) -> None:
        self._places = variant.sentences
        said = [] if isinstance(variant.sample, DialogueSample) else sentences(variant.sample.answer)
        self._sentences = [_grams(text) for text in said]
        # A resolved subject stands in every statement; what only one of them says tells where it comes from.
        self._often = Counter(gram for item in verdict.items if isinstance(item, Atom) for gram in _grams(item.text))

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


def raised(after: Mapping[Place, str], *before: Mapping[Place, str]) -> tuple[list[Place], list[Place]]:
    """The places where there was something to raise, and those where it did rise above all that it was before.

    Only places that are labelled in every one of them are looked at; a sentence whose statements are gone is `GONE`.
    """
    room, rose = [], []
    for place in before[0]:
        ranks = [rank(place, label_at(found, place)) for found in (*before, after)]
        known = [value for value in ranks if value is not None]
        if len(known) < len(ranks):
            continue
        *then, now = known
        if max(then) < BEST[place[0]]:
            room.append(place)
            if now > max(then):
                rose.append(place)
    return room, rose


def label_at(found: Mapping[Place, str], place: Place) -> str:
    return found.get(place, GONE if place[0] == "atom" else OPEN)


def compared(
    before: Mapping[Place, str], after: Mapping[Place, str], leave_out: Sequence[str] = ()
) -> tuple[list[Place], list[Place], int]:
    """Places with the same label, places with another, and how many are open on either side."""
    same, moved, n_open = [], [], 0
    for place in dict.fromkeys((*before, *after)):
        if place[0] in leave_out:
            continue
        pair = label_at(before, place), label_at(after, place)
        if OPEN in pair:
            n_open += 1
        elif pair[0] == pair[1]:
            same.append(place)
        else:
            moved.append(place)
    return same, moved, n_open
