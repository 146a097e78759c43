"""Streaming counts behind a report: each takes verdicts one by one and holds sums, never the verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Generic, TypeVar

from steelyard.protocols.counts import AtomCounts, turn_rates, turn_satisfied
from steelyard.records import AnyItem, Atom, Check, Criterion, Language, Sentence, Verdict
from steelyard.reports.model import (
    BOUNDS,
    OTHERS,
    AtomGroup,
    AtomSummary,
    BandCount,
    Bin,
    CheckRate,
    DialogueSummary,
    Estimate,
    Group,
    Scale,
    TurnSummary,
    described,
)
from steelyard.scoring import band_of_score
from steelyard.stats import GROUPS, Cluster, Mean, Ratio

MOST_GROUPS = 100
GROUPS_PER_TAG = 512
BANDED = ("relevance", "completeness", "accuracy", "faithfulness")
REPEATED_CHECK = ("truthfulness", "not_fallback")
WITHIN = "within_tolerance"
UNJUDGED_LIST = "unjudged:"
"""Protocols flag a whole list that could not be had as `unjudged:LIST:REASON`."""


def labels_of(item: AnyItem) -> tuple[tuple[str, str], ...]:
    """Every label an item carries, with the name of its kind in the wording."""
    if isinstance(item, Sentence):
        topic = () if item.on_topic is None else (("on_topic", item.on_topic),)
        return *topic, ("support", item.support)
    if isinstance(item, Criterion):
        return ("criterion", item.label), ("validity", item.validity)
    return ((item.kind, str(getattr(item, "label", "unjudged"))),)


# --- which null scores are open rather than not applicable -----------------------------------------

LISTS = {
    "relevance": "sentences",
    "completeness": "key_points",
    "accuracy": "atoms",
    "accuracy_strict": "atoms",
    "coverage": "atoms",
    "fallback": "fallback",
    "faithfulness": "sentences",
    "faithfulness_soft": "sentences",
}

KIND_OF_METRIC = {
    "relevance": "on_topic",
    "completeness": "key_point",
    "accuracy": "atom",
    "faithfulness": "support",
    "faithfulness_soft": "support",
}


def is_open(name: str, verdict: Verdict) -> bool:
    """Whether a null score is unjudged (something that it needs has no label) or simply does not apply."""
    if verdict.status == "failed" or verdict.protocol == "grounded" or name == "fallback":
        return True
    if any(flag.startswith(f"{UNJUDGED_LIST}{LISTS.get(name)}:") for flag in verdict.flags):
        return True
    # Each metric of the scorecard reads one kind of label; elsewhere any open one leaves a score open.
    read = KIND_OF_METRIC.get(name) if verdict.protocol == "scorecard" else None
    return any(
        label == "unjudged" and read in (None, kind) for item in verdict.items for kind, label in labels_of(item)
    )


# --- means of scores -------------------------------------------------------------------------------


class ScoreTally:
    """One score over many samples."""

    def __init__(self, scale: Scale = "ratio", groups: int = GROUPS) -> None:
        low, high = BOUNDS[scale]
        self.mean = Mean(low=low, high=high, groups=groups)
        self.n_null = self.n_unjudged = 0

    def estimate(self) -> Estimate:
        return Estimate(
            value=self.mean.value,
            interval=self.mean.interval,
            n=self.mean.n,
            clusters=self.mean.clusters,
            n_null=self.n_null,
            n_unjudged=self.n_unjudged,
        )


class GroupTally:
    """The scores of a group of samples."""

    def __init__(self, scale: Scale, groups: int = GROUPS) -> None:
        self.n = 0
        self._scale, self._groups = scale, groups
        self._scores: dict[str, ScoreTally] = {}

    def add(self, verdict: Verdict, cluster: Cluster | None) -> None:
        self.n += 1
        for name, value in verdict.scores.items():
            if (score := self._scores.get(name)) is None:
                score = self._scores[name] = ScoreTally(self._scale, self._groups)
            if value is not None and math.isfinite(value):
                score.mean.add(value, cluster)
            elif value is not None or is_open(name, verdict):
                score.n_unjudged += 1
            else:
                score.n_null += 1

    def scores(self) -> dict[str, Estimate]:
        return {name: score.estimate() for name, score in self._scores.items()}

    def group(self) -> Group:
        return Group(n=self.n, scores=self.scores())


Tally = TypeVar("Tally")


class Bounded(Generic[Tally]):
    """Tallies by a name that comes from the data: at most `MOST_GROUPS`, the rest together."""

    def __init__(self, make: Callable[[], Tally]) -> None:
        self._make = make
        self.tallies: dict[str, Tally] = {}

    def __getitem__(self, name: str) -> Tally:
        if name not in self.tallies and len(self.tallies) >= MOST_GROUPS:
            name = OTHERS
        if (tally := self.tallies.get(name)) is None:
            tally = self.tallies[name] = self._make()
        return tally

    def sorted(self) -> list[tuple[str, Tally]]:
        """By name, numbers in their order, the gathered rest last."""
        return sorted(self.tallies.items(), key=lambda entry: _name_order(entry[0]))


def _name_order(name: str) -> tuple[bool, float, str]:
    number = int(name) if name.isdecimal() and len(name) < 10 else math.inf
    return name == OTHERS, number, name


def count_bounded(counter: Counter[str], name: str) -> None:
    counter[name if name in counter or len(counter) < MOST_GROUPS else OTHERS] += 1


# --- pooled rates ----------------------------------------------------------------------------------


class RateTally:
    """Items pooled over samples: a ratio with what was left out of it."""

    def __init__(self) -> None:
        self.ratio = Ratio()
        self.n_null = self.n_unjudged = 0

    def add(self, part: int, whole: int, cluster: Cluster | None = None, *, null: int = 0, unjudged: int = 0) -> None:
        self.ratio.add(part, whole, cluster)
        self.n_null += null
        self.n_unjudged += unjudged

    def estimate(self) -> Estimate:
        return Estimate(
            value=self.ratio.value,
            interval=self.ratio.interval,
            n=int(self.ratio.n),
            clusters=self.ratio.clusters,
            n_null=self.n_null,
            n_unjudged=self.n_unjudged,
        )


class AtomTally:
    """Atoms of one relevance level, or of all."""

    def __init__(self) -> None:
        self.counts = AtomCounts()
        self.accuracy, self.strict, self.coverage = RateTally(), RateTally(), RateTally()

    def add(self, c: AtomCounts, cluster: Cluster | None) -> None:
        self.counts = AtomCounts(*(a + b for a, b in zip(self.counts, c, strict=True)))
        decided = c.n_correct + c.n_wrong
        checkable, unjudged = decided + c.n_undetermined, c.n_unjudged
        undecided = c.n_exempt + c.n_undetermined
        self.accuracy.add(c.n_correct, decided, cluster, null=undecided, unjudged=unjudged)
        self.strict.add(c.n_correct, checkable, cluster, null=c.n_exempt, unjudged=unjudged)
        self.coverage.add(decided, checkable, cluster, null=c.n_exempt, unjudged=unjudged)

    def group(self) -> AtomGroup:
        return AtomGroup(
            counts=self.counts._asdict(),
            accuracy=self.accuracy.estimate(),
            accuracy_strict=self.strict.estimate(),
            coverage=self.coverage.estimate(),
        )


class AtomsTally:
    def __init__(self) -> None:
        self._overall = AtomTally()
        self._levels = {level: AtomTally() for level in (1, 2, 3)}

    def add(self, verdict: Verdict, cluster: Cluster | None) -> None:
        atoms = [item for item in verdict.items if isinstance(item, Atom)]
        self._overall.add(AtomCounts.of(atoms), cluster)
        for level, tally in self._levels.items():
            tally.add(AtomCounts.of(atom for atom in atoms if atom.level == level), cluster)

    def summary(self) -> AtomSummary:
        levels = {str(level): tally.group() for level, tally in self._levels.items()}
        return AtomSummary(overall=self._overall.group(), levels=levels)


class ChecksTally:
    def __init__(self) -> None:
        self._rates: dict[tuple[str, str], ScoreTally] = {}

    def add(self, verdict: Verdict, cluster: Cluster | None) -> None:
        for check in verdict.items:
            if not isinstance(check, Check):
                continue
            if (rate := self._rates.get((check.group, check.name))) is None:
                rate = self._rates[check.group, check.name] = ScoreTally()
            if check.label == "unjudged":
                rate.n_unjudged += 1
            else:
                rate.mean.add(check.label, cluster)

    def summary(self) -> tuple[CheckRate, ...]:
        return tuple(
            CheckRate(group=group, name=name, passed=rate.estimate()) for (group, name), rate in self._rates.items()
        )


class BandsTally:
    def __init__(self) -> None:
        self._counts = {metric: [0] * 10 for metric in BANDED}

    def add(self, verdict: Verdict) -> None:
        for metric, counts in self._counts.items():
            score = verdict.scores.get(metric)
            if score is not None and 0 <= score <= 100:
                counts[band_of_score(int(score))] += 1

    def summary(self, language: Language) -> dict[str, tuple[BandCount, ...]]:
        return {
            metric: tuple(described(metric, band, counts[band], language) for band in range(9, -1, -1))
            for metric, counts in self._counts.items()
        }


class DistributionTally:
    """How the scores of all samples spread: ten steps of the scale, or two for a score that is a yes or a no."""

    def __init__(self, protocol: str, scale: Scale) -> None:
        self._protocol, (self._low, self._high) = protocol, BOUNDS[scale]
        self._counts: dict[str, list[int]] = {}

    def add(self, verdict: Verdict) -> None:
        if not math.isfinite(self._high):
            return
        for name, value in verdict.scores.items():
            counts = self._counts.setdefault(name, [0] * (2 if is_yes_or_no(self._protocol, name) else 10))
            if value is not None and self._low <= value <= self._high:
                share = (value - self._low) / (self._high - self._low)
                # 0.3 * 10 is 3 and a little less; the tiny addition keeps round tenths in their own step.
                counts[min(int(share * len(counts) + 1e-9), len(counts) - 1)] += 1

    def summary(self) -> dict[str, tuple[Bin, ...]]:
        return {
            name: tuple(
                Bin(low=self._edge(n, counts), high=self._edge(n + 1, counts), n=count)
                for n, count in enumerate(counts)
            )
            for name, counts in self._counts.items()
        }

    def _edge(self, n: int, counts: list[int]) -> float:
        return self._low + (self._high - self._low) * n / len(counts)


def is_yes_or_no(protocol: str, score: str) -> bool:
    """Whether one sample's score can only be 0 or 1."""
    return protocol == "grounded" or score == "fallback"


class DialogueTally:
    def __init__(self) -> None:
        self._csr, self._isr, self._ssr = RateTally(), RateTally(), RateTally()
        self._types = Bounded(RateTally)
        self._turns = Bounded(lambda: (RateTally(), ScoreTally()))
        self._rule = RateTally()
        self._undetermined = self._vacuous = 0

    def add(self, verdict: Verdict) -> None:
        # The dialogue is the cluster everywhere, and each comes once: no key is needed to keep it together.
        criteria = sorted((i for i in verdict.items if isinstance(i, Criterion)), key=lambda c: c.turn)
        rates = turn_rates(criteria)
        _add_criteria(self._csr, criteria)
        null = unjudged = 0
        for turn, group in groupby(criteria, key=lambda c: c.turn):
            of_turn = list(group)
            csr, isr = self._turns[str(turn)]
            satisfied = turn_satisfied(of_turn)
            if satisfied is not None:
                isr.mean.add(satisfied)
            elif any(c.label == "unjudged" for c in of_turn):
                unjudged, isr.n_unjudged = unjudged + 1, isr.n_unjudged + 1
            else:
                null, isr.n_null = null + 1, isr.n_null + 1
            _add_criteria(csr, of_turn)
        self._isr.add(rates.full_turns, rates.known_turns, null=null, unjudged=unjudged)
        self._ssr.add(rates.leading_turns, rates.known_turns, null=null, unjudged=unjudged)
        for kind in sorted({c.type or "" for c in criteria}):
            _add_criteria(self._types[kind], [c for c in criteria if (c.type or "") == kind])
        known = [c for c in criteria if c.label != "unjudged"]
        by_rule = sum(c.decided_by == "rule" for c in known)
        self._rule.add(by_rule, len(known), unjudged=len(criteria) - len(known))
        self._undetermined += sum(c.label == "undetermined" for c in criteria)
        self._vacuous += sum("vacuous" in c.flags for c in criteria)

    def summary(self) -> DialogueSummary:
        return DialogueSummary(
            csr=self._csr.estimate(),
            isr=self._isr.estimate(),
            ssr=self._ssr.estimate(),
            by_type={name: rate.estimate() for name, rate in self._types.sorted()},
            by_turn={
                turn: TurnSummary(csr=csr.estimate(), isr=isr.estimate()) for turn, (csr, isr) in self._turns.sorted()
            },
            by_rule=self._rule.estimate(),
            n_undetermined=self._undetermined,
            n_vacuous=self._vacuous,
        )


def _add_criteria(rate: RateTally, criteria: Iterable[Criterion]) -> None:
    labels = Counter(c.label for c in criteria)
    rate.add(
        labels["satisfied"],
        labels["satisfied"] + labels["violated"],
        null=labels["undetermined"],
        unjudged=labels["unjudged"],
    )
