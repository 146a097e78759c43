"""From labels to numbers: ratios, bands, caps, gates and rates. Exact arithmetic, no I/O, no floats inside.

Every function takes labelled items and returns what can be said about them; where nothing can be said
(an empty denominator, all items unjudged) that is `None`, never 0 and never 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from steelyard.records import AnyItem, Atom, Check, Criterion, KeyPoint, Sentence

Number = float | int | None


def ratio(part: int, whole: int) -> Fraction | None:
    """part / whole, or None where there is nothing to divide by."""
    return Fraction(part, whole) if whole else None


def plain(value: Fraction | None) -> Number:
    """A fraction as JSON can hold it; whole numbers stay whole."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


# --- bands -----------------------------------------------------------------------------------------


def band(value: Fraction) -> int:
    """Which of the ten bands a ratio falls into: 0 (below 0.1) to 9 (0.9 and above)."""
    part, whole = value.as_integer_ratio()
    if not 0 <= part <= whole:
        raise ValueError(f"a ratio lies between 0 and 1, not {value}")
    return min(10 * part // whole, 9)


def band_score(value: Fraction) -> int:
    """The ratio placed linearly inside its band's score range, rounded half up."""
    k, (part, whole) = band(value), value.as_integer_ratio()
    width = 10 if k == 9 else 9
    # 10k + (10·value - k)·width, over a common denominator: whole numbers are ten times as fast as Fractions.
    return (2 * (10 * k * whole + (10 * part - k * whole) * width) + whole) // (2 * whole)


def band_of_score(score: int) -> int:
    """The band a score from 0 to 100 belongs to."""
    return min(score // 10, 9)


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


def atom_counts_by_level(atoms: Sequence[Atom]) -> dict[int, AtomCounts]:
    """The counts of each relevance level, all three always present."""
    return {level: AtomCounts.of(a for a in atoms if a.level == level) for level in (1, 2, 3)}


def atomic_scores(atoms: Iterable[Atom], fallback: int | None) -> dict[str, Number]:
    counts = AtomCounts.of(atoms)
    return {
        "accuracy": plain(counts.accuracy),
        "accuracy_strict": plain(counts.accuracy_strict),
        "coverage": plain(counts.coverage),
        "fallback": fallback,
    }


# --- grounded --------------------------------------------------------------------------------------


def conjunction(labels: Iterable[int | str | None]) -> int | None:
    """AND of 0/1 labels. One 0 settles it; otherwise anything unknown leaves it unknown."""
    known = list(labels)
    if 0 in known:
        return 0
    return 1 if known and all(label == 1 for label in known) else None


def grounded_scores(checks: Sequence[Check]) -> dict[str, Number]:
    relevance = conjunction(c.label for c in checks if c.group == "relevance")
    truthfulness = conjunction(c.label for c in checks if c.group == "truthfulness")
    return {
        "relevance": relevance,
        "truthfulness": truthfulness,
        "accuracy": conjunction((relevance, truthfulness)),
    }


# --- scorecard -------------------------------------------------------------------------------------


ONE, HALF, ZERO = 2, 1, 0


class Metric(NamedTuple):
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


METRICS: dict[str, Metric] = {
    "relevance": Metric(Sentence, "on_topic", {"on_topic": ONE, "off_topic": ZERO}),
    "completeness": Metric(KeyPoint, "label", {"covered": ONE, "partial": HALF, "missing": ZERO}),
    "accuracy": Metric(Atom, "label", {"correct": ONE, "wrong": ZERO}),
    "faithfulness": Metric(Sentence, "support", {"supported": ONE, "partial": ZERO, "unsupported": ZERO}),
    "faithfulness_soft": Metric(Sentence, "support", {"supported": ONE, "partial": HALF, "unsupported": ZERO}),
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
    for name, metric in METRICS.items():
        value = metric.ratio(items)
        scores[name] = None if value is None else band_score(value)
    if empty_answer:
        scores |= {"relevance": 0 if asked else None, "completeness": 0}
    elif shallow(items) and scores["completeness"] is not None:
        scores["completeness"] = min(scores["completeness"], SHALLOW_CAP)
    return scores


def composite(scores: Mapping[str, Number], weights: Mapping[str, float]) -> Number:
    """The weighted mean of the user's metrics; null as soon as one of them is, so that samples stay comparable."""
    exact = {name: Fraction(str(weight)) for name, weight in weights.items() if weight}
    values = {name: scores[name] for name in exact}
    if not exact or any(value is None for value in values.values()):
        return None
    total = sum((exact[n] * Fraction(str(values[n])) for n in exact), Fraction(0))
    return plain(total / sum(exact.values()))


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


def dialogue_scores(criteria: Sequence[Criterion]) -> dict[str, Number]:
    rates = turn_rates(criteria)
    return {"csr": plain(rates.csr), "isr": plain(rates.isr), "ssr": plain(rates.ssr)}
