"""Streaming counts behind a report: each takes verdicts one by one and holds sums, never the verdicts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby, pairwise
from typing import Generic, TypeVar
from zlib import crc32

from steelyard.protocols.counts import AtomCounts, turn_rates, turn_satisfied
from steelyard.protocols.scoring import band_of_score
from steelyard.protocols.vocabulary import BOUNDS, UNJUDGED, Metric, Vocabulary, name_of
from steelyard.records import Atom, Criterion, Language, RagSample, Sample, Verdict
from steelyard.reports.model import (
    OTHERS,
    AtomGroup,
    AtomSummary,
    BandCount,
    Bin,
    CheckRate,
    Contestant,
    DialogueSummary,
    Estimate,
    Group,
    Outcome,
    Spread,
    TurnSummary,
    described,
)
from steelyard.stats import GROUPS, Cluster, Interval, Mean, Ratio

MOST_GROUPS = 100
GROUPS_PER_TAG = 512


# --- means of scores -------------------------------------------------------------------------------


class ScoreTally:
    """One score over many samples."""

    def __init__(self, bounds: Interval = BOUNDS["ratio"], groups: int = GROUPS) -> None:
        low, high = bounds
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

    def __init__(self, words: Vocabulary, groups: int = GROUPS) -> None:
        self.n = 0
        self._words, self._groups = words, groups
        self._scores: dict[str, ScoreTally] = {}

    def add(self, verdict: Verdict, cluster: Cluster | None) -> None:
        self.n += 1
        for name, value in verdict.scores.items():
            if (score := self._scores.get(name)) is None:
                score = self._scores[name] = ScoreTally(self._words.metric(name).bounds, self._groups)
            if value is not None and math.isfinite(value):
                score.mean.add(value, cluster)
            elif value is not None or self._words.is_open(name, verdict):
                score.n_unjudged += 1
            else:
                score.n_null += 1

    def scores(self) -> dict[str, Estimate]:
        return {name: score.estimate() for name, score in self._scores.items()}

    def group(self) -> Group:
        return Group(n=self.n, scores=self.scores())


Tally = TypeVar("Tally")


class BoundedTallies(Generic[Tally]):
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
    """How often items of a name passed, per group."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._rates: dict[tuple[str, str], ScoreTally] = {}

    def add(self, verdict: Verdict, cluster: Cluster | None) -> None:
        for item in verdict.items:
            if not (name := name_of(item)):
                continue
            place = getattr(item, "group", ""), name
            if (rate := self._rates.get(place)) is None:
                rate = self._rates[place] = ScoreTally()
            _, label = self._words.kind_of(item).shown(item)
            if label.name == UNJUDGED:
                rate.n_unjudged += 1
            elif label.tone in ("good", "bad"):
                rate.mean.add(label.tone == "good", cluster)
            else:
                rate.n_null += 1

    def summary(self) -> tuple[CheckRate, ...]:
        return tuple(
            CheckRate(group=group, name=name, passed=rate.estimate()) for (group, name), rate in self._rates.items()
        )


class OutcomesTally:
    """The outcome of each sample, by the label that declares it."""

    def __init__(self, words: Vocabulary) -> None:
        self._aspect, self._kind = words.aspect(words.outcome), words.kind_with(words.outcome)
        self._counts = Counter[str]()
        self._shares = {label: ScoreTally() for label in self._aspect.names}

    def add(self, verdict: Verdict, cluster: Cluster | None) -> None:
        items = (item for item in verdict.items if self._kind and item.kind == self._kind.name)
        label = next((getattr(item, self._aspect.field, None) for item in items), None)
        if label in self._shares:
            self._counts[label] += 1
        for name, share in self._shares.items():
            if label in self._shares:
                share.mean.add(name == label, cluster)
            elif label == UNJUDGED or verdict.status == "failed":
                share.n_unjudged += 1
            else:
                share.n_null += 1

    def summary(self) -> tuple[Outcome, ...]:
        """Those that occur most come first; those that say that all is well come last."""
        found = [
            Outcome(label=name, n=self._counts[name], share=share.estimate()) for name, share in self._shares.items()
        ]
        return tuple(sorted(found, key=lambda one: (self._aspect.label(one.label).tone == "good", -one.n)))


class RankingTally:
    """Who won how much against whom, by the main score of samples that compare two answers."""

    def __init__(self, words: Vocabulary) -> None:
        self._metric = words.main
        self._numbers: dict[str, int] = {}
        self._rates: list[ScoreTally] = []
        self._points: dict[tuple[int, int, int], tuple[float, int]] = {}

    def add(self, verdict: Verdict, sample: Sample | None, cluster: Cluster | None) -> None:
        names = sample.contestants if isinstance(sample, RagSample) else None
        if names is None:
            return
        first, second = (self._number(name) for name in names)
        points = verdict.scores.get(self._metric)
        if first == second:
            return
        if points is None:
            self._rates[first].n_unjudged += 1
            self._rates[second].n_unjudged += 1
            return
        self._rates[first].mean.add(points, cluster)
        self._rates[second].mean.add(1 - points, cluster)
        # Without a cluster a sample stands alone; some share one by chance, and a union of clusters is again one.
        shared = crc32(verdict.id.encode("utf-8", "surrogatepass")) if cluster is None else int(cluster)
        key = first, second, shared % GROUPS_PER_TAG
        won, n = self._points.get(key, (0.0, 0))
        self._points[key] = won + points, n + 1

    def _number(self, name: str) -> int:
        if name not in self._numbers and len(self._numbers) >= MOST_GROUPS:
            name = OTHERS
        if name not in self._numbers:
            self._rates.append(ScoreTally(groups=GROUPS_PER_TAG))
        return self._numbers.setdefault(name, len(self._numbers))

    def summary(self) -> tuple[Contestant, ...]:
        if not self._points:
            return ()
        from steelyard.stats.ranking import Compared, strengths

        met = [Compared(i, j, won, n, cluster) for (i, j, cluster), (won, n) in self._points.items()]
        found = strengths(len(self._numbers), met)
        listed = []
        for name, at in self._numbers.items():
            rate = self._rates[at].estimate()
            one = found[at] if found else None
            strength = Estimate(value=one and one.value, interval=one and one.interval, n=rate.n)
            listed.append(Contestant(name=name, win_rate=rate, strength=strength))
        return tuple(sorted(listed, key=lambda one: (-(one.strength.value or 0), -(one.win_rate.value or 0), one.name)))


class BandsTally:
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._counts = {metric.name: [0] * 10 for metric in metrics if metric.banded}

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
    """How the scores of all samples spread: ten steps of the scale, or two for a score that is a yes or a no. A score
    without two ends has no steps."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._counts: dict[str, list[int]] = {}

    def add(self, verdict: Verdict) -> None:
        for name, value in verdict.scores.items():
            metric = self._words.metric(name)
            low, high = metric.bounds
            if not math.isfinite(high - low):
                continue
            counts = self._counts.setdefault(name, [0] * (2 if metric.scale == "binary" else 10))
            if value is not None and low <= value <= high:
                share = (value - low) / (high - low)
                # 0.3 * 10 is 3 and a little less; the tiny addition keeps round tenths in their own step.
                counts[min(int(share * len(counts) + 1e-9), len(counts) - 1)] += 1

    def summary(self) -> dict[str, tuple[Bin, ...]]:
        return {
            name: tuple(
                Bin(low=self._edge(name, n, counts), high=self._edge(name, n + 1, counts), n=count)
                for n, count in enumerate(counts)
            )
            for name, counts in self._counts.items()
        }

    def _edge(self, name: str, n: int, counts: list[int]) -> float:
        low, high = self._words.metric(name).bounds
        return low + (high - low) * n / len(counts)


class SpendingTally:
    """The cost per sample: seconds, tokens, money. Amounts lie far apart, so their logarithms are counted."""

    STEPS = 100
    """To a factor of ten."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[int]] = {}
        self._sums: dict[str, float] = {}
        self._most: dict[str, float] = {}

    def add(self, verdict: Verdict) -> None:
        usage = verdict.usage
        if not usage.calls:
            return
        amounts = {"seconds": verdict.notes.get("seconds"), "cost": usage.cost}
        amounts["tokens"] = usage.prompt_tokens + usage.completion_tokens
        for name, amount in amounts.items():
            if isinstance(amount, (int, float)) and 0 < amount < math.inf:
                self._counts.setdefault(name, Counter())[math.floor(math.log10(amount) * self.STEPS)] += 1
                self._sums[name] = self._sums.get(name, 0.0) + amount
                self._most[name] = max(amount, self._most.get(name, 0.0))

    def summary(self) -> dict[str, Spread]:
        return {name: self._spread(name) for name in ("seconds", "cost", "tokens") if name in self._counts}

    def _spread(self, name: str) -> Spread:
        counts, n = self._counts[name], self._counts[name].total()
        ordered = sorted(counts)
        edges = _round_edges(self._amount(ordered[0]), self._most[name])
        bins = [Bin(low=low, high=high, n=0) for low, high in pairwise(edges)]
        for step in ordered:
            at = min(len(bins) - 1, max(0, bisect_right(edges, self._amount(step + 0.5)) - 1))
            bins[at] = bins[at].model_copy(update={"n": bins[at].n + counts[step]})
        median, p95 = (self._quantile(ordered, counts, share * n, self._most[name]) for share in (0.5, 0.95))
        return Spread(n=n, mean=self._sums[name] / n, median=median, p95=p95, most=self._most[name], bins=tuple(bins))

    def _quantile(self, ordered: list[int], counts: Counter[int], wanted: float, most: float) -> float:
        for step in ordered:
            wanted -= counts[step]
            if wanted <= 0:
                return min(most, self._amount(step + 0.5))
        return most

    def _amount(self, step: float) -> float:
        return float(10 ** (step / self.STEPS))


def _round_edges(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 … from below the lowest amount to above the highest."""
    edges = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 2):
        edges += [float(f"{digit}e{power}") for digit in (1, 2, 5)]
    first = max(0, bisect_right(edges, low) - 1)
    last = next(at for at, edge in enumerate(edges) if edge > high or (at > first and edge >= high))
    return edges[first : max(last, first + 1) + 1]


class DialogueTally:
    def __init__(self, words: Vocabulary) -> None:
        self._words = words
        self._csr, self._isr, self._ssr = RateTally(), RateTally(), RateTally()
        self._types = BoundedTallies(RateTally)
        self._turns = BoundedTallies(lambda: (RateTally(), ScoreTally()))
        self._rule = RateTally()
        self._undetermined = self._vacuous = 0

    def add(self, verdict: Verdict) -> None:
        # The dialogue is the cluster everywhere, and each comes once: no key is needed to keep it together.
        criteria = sorted((i for i in verdict.items if isinstance(i, Criterion)), key=lambda c: c.turn)
        rates = turn_rates(criteria)
        self._add_criteria(self._csr, criteria)
        null = unjudged = 0
        for turn, group in groupby(criteria, key=lambda c: c.turn):
            of_turn = list(group)
            csr, isr = self._turns[str(turn)]
            satisfied = turn_satisfied(of_turn)
            if satisfied is not None:
                isr.mean.add(satisfied)
            elif any(c.label == UNJUDGED for c in of_turn):
                unjudged, isr.n_unjudged = unjudged + 1, isr.n_unjudged + 1
            else:
                null, isr.n_null = null + 1, isr.n_null + 1
            self._add_criteria(csr, of_turn)
        self._isr.add(rates.full_turns, rates.known_turns, null=null, unjudged=unjudged)
        self._ssr.add(rates.leading_turns, rates.known_turns, null=null, unjudged=unjudged)
        for kind in sorted({c.type or "" for c in criteria}):
            self._add_criteria(self._types[kind], [c for c in criteria if (c.type or "") == kind])
        known = [c for c in criteria if c.label != UNJUDGED]
        by_rule = sum(c.decided_by == "rule" for c in known)
        self._rule.add(by_rule, len(known), unjudged=len(criteria) - len(known))
        self._undetermined += self._tones(criteria)["open"]
        self._vacuous += sum("vacuous" in c.flags for c in criteria)

    def _tones(self, criteria: Iterable[Criterion]) -> Counter[str]:
        """How many have a label of which tone; those without a label under its name."""
        shown = (self._words.kind_of(c).leading.label(c.label) for c in criteria)
        return Counter(label.name if label.name == UNJUDGED else label.tone for label in shown)

    def _add_criteria(self, rate: RateTally, criteria: Iterable[Criterion]) -> None:
        tones = self._tones(criteria)
        good, bad = tones["good"], tones["bad"]
        rate.add(good, good + bad, null=tones["open"], unjudged=tones[UNJUDGED])

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
