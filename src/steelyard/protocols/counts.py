"""The scores of the shipped protocols, counted from labels. Pure.

Every function takes labelled items and returns what can be said about them; where nothing can be said (an empty
denominator, all items unjudged) that is `None`, never 0 and never 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from steelyard.protocols.scoring import Number, band_score, conjunction, plain, ratio
from steelyard.records import AnyItem, Atom, Check, Criterion, KeyPoint, Sentence

# --- atomic ----------------------------------------------------------------------------------------


class AtomCounts(NamedTuple):
    """How many atoms carry each label."""

    n_correct: int = 0
    n_wrong: int = 0
    n_undetermined: int = 0
    n_exempt: int = 0
    n_unjudged: int = 0

    @classmethod
    def of(cls, atoms: Iterable[Atom]) -> AtomCounts:
        labels = [atom.label for atom in atoms]
        return cls(*(labels.count(name.removeprefix("n_")) for name in cls._fields))  # type: ignore[arg-type]

    @property
    def accuracy(self) -> Fraction | None:
        return ratio(self.n_correct, self.n_correct + self.n_wrong)

    @property
    def accuracy_strict(self) -> Fraction | None:
        return ratio(self.n_correct, self.n_correct + self.n_wrong + self.n_undetermined)

    @property
    def coverage(self) -> Fraction | None:
        decided = self.n_correct + self.n_wrong
        return ratio(decided, decided + self.n_undetermined)


def atomic_scores(items: Iterable[AnyItem], fallback: Number) -> dict[str, Number]:
    counts = AtomCounts.of(item for item in items if isinstance(item, Atom))
    return {
        "accuracy": plain(counts.accuracy),
        "accuracy_strict": plain(counts.accuracy_strict),
        "coverage": plain(counts.coverage),
        "fallback": fallback,
    }


# --- grounded --------------------------------------------------------------------------------------


def grounded_scores(items: Iterable[AnyItem]) -> dict[str, Number]:
    checks = [item for item in items if isinstance(item, Check)]
    relevance = conjunction(c.label for c in checks if c.group == "relevance")
    truthfulness = conjunction(c.label for c in checks if c.group == "truthfulness")
    return {
        "relevance": relevance,
        "truthfulness": truthfulness,
        "accuracy": conjunction((relevance, truthfulness)),
    }


# --- scorecard -------------------------------------------------------------------------------------


ONE, HALF, ZERO = 2, 1, 0


class CountedRow(NamedTuple):
    """One row of the scorecard: which label of which items it reads, and what each label weighs, in halves.

    Labels without a weight do not count.
    """

    of: type[AnyItem]
    field: str
    weights: Mapping[str, int]

    def read(self, item: AnyItem) -> str | None:
        return getattr(item, self.field) if isinstance(item, self.of) else None

    def ratio(self, items: Iterable[AnyItem]) -> Fraction | None:
        labels = [getattr(item, self.field) for item in items if isinstance(item, self.of)]
        counted = [self.weights[label] for label in labels if label in self.weights]
        return ratio(sum(counted), 2 * len(counted))


ROWS: dict[str, CountedRow] = {
    "relevance": CountedRow(Sentence, "on_topic", {"on_topic": ONE, "off_topic": ZERO}),
    "completeness": CountedRow(KeyPoint, "label", {"covered": ONE, "partial": HALF, "missing": ZERO}),
    "accuracy": CountedRow(Atom, "label", {"correct": ONE, "wrong": ZERO}),
    "faithfulness": CountedRow(Sentence, "support", {"supported": ONE, "partial": ZERO, "unsupported": ZERO}),
    "faithfulness_soft": CountedRow(Sentence, "support", {"supported": ONE, "partial": HALF, "unsupported": ZERO}),
}

SHALLOW_CAP = 89


def shallow(items: Iterable[AnyItem]) -> bool:
    """More than half of the key points that were hit are bare mentions."""
    hits = [i for i in items if isinstance(i, KeyPoint) and i.label in ("covered", "partial")]
    return 2 * sum(point.depth == "bare" for point in hits) > len(hits)


def scorecard_scores(items: Sequence[AnyItem], *, empty_answer: bool = False, asked: bool = True) -> dict[str, Number]:
    """The metrics from 0 to 100. An empty answer is off topic and covers nothing: 0, not null. Where nothing was
    `asked` there is no topic."""
    scores: dict[str, Number] = {}
    for name, row in ROWS.items():
        value = row.ratio(items)
        scores[name] = None if value is None else band_score(value)
    if empty_answer:
        scores |= {"relevance": 0 if asked else None, "completeness": 0}
    elif shallow(items) and scores["completeness"] is not None:
        scores["completeness"] = min(scores["completeness"], SHALLOW_CAP)
    return scores


# --- dialogue --------------------------------------------------------------------------------------


class TurnRates(NamedTuple):
    """The counts behind CSR, ISR and SSR. A turn is known once no open criterion could change it."""

    satisfied: int
    decided: int
    full_turns: int
    known_turns: int
    leading_turns: int

    @property
    def csr(self) -> Fraction | None:
        return ratio(self.satisfied, self.decided)

    @property
    def isr(self) -> Fraction | None:
        return ratio(self.full_turns, self.known_turns)

    @property
    def ssr(self) -> Fraction | None:
        return ratio(self.leading_turns, self.known_turns)


def turn_satisfied(criteria: Iterable[Criterion]) -> bool | None:
    """Whether a turn met all its criteria that count; None where none counts or one is still open."""
    labels = {c.label for c in criteria} - {"undetermined"}
    if "violated" in labels:
        return False
    return True if labels == {"satisfied"} else None


def turn_rates(criteria: Sequence[Criterion]) -> TurnRates:
    ordered = sorted(criteria, key=lambda c: c.turn)
    turns = [turn_satisfied(group) for _, group in groupby(ordered, key=lambda c: c.turn)]
    known = [turn for turn in turns if turn is not None]
    satisfied = sum(c.label == "satisfied" for c in criteria)
    return TurnRates(
        satisfied=satisfied,
        decided=satisfied + sum(c.label == "violated" for c in criteria),
        full_turns=sum(known),
        known_turns=len(known),
        leading_turns=known.index(False) if False in known else len(known),
    )


def dialogue_scores(items: Iterable[AnyItem]) -> dict[str, Number]:
    rates = turn_rates([item for item in items if isinstance(item, Criterion)])
    return {"csr": plain(rates.csr), "isr": plain(rates.isr), "ssr": plain(rates.ssr)}
