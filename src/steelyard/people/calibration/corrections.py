"""Scores and label rates of a whole run, corrected by the human labels on a part of it."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from steelyard.people.calibration.majority import Majority, Place, counted_metrics, needs_labels, scores_by_people
from steelyard.people.calibration.matching import Rated
from steelyard.people.label_targets import slots_of
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import UNJUDGED, Vocabulary
from steelyard.records import Verdict
from steelyard.reports.calibration.model import CorrectedRate, CorrectedScore
from steelyard.stats import Interval, Mean
from steelyard.stats.correction import Units, clusters_for_width, corrected
from steelyard.stats.libraries import Array, np

# A gap this many standard errors wide between labelled samples and all is no accident of a random draw.
SUSPICIOUS = 3.0
LEAST_TO_SUSPECT = 10


@dataclass
class _Column:
    """One score over all samples. NaN is null: the sample has the score, but nothing to measure."""

    judge: array[float] = field(default_factory=lambda: array("d"))
    cluster: array[int] = field(default_factory=lambda: array("q"))
    facts: list[int] = field(default_factory=list)
    """Where there is nothing to label, so that the score is known without people."""


class Scores:
    """Takes every sample of the run with its human labels."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = defaultdict(_Column)
        self._labelled: list[tuple[Verdict, list[Rated], dict[str, int]]] = []

    def add(self, verdict: Verdict, rated: list[Rated], cluster: int) -> None:
        places: dict[str, int] = {}
        for name in counted_metrics(verdict):
            score = verdict.scores.get(name)
            if name not in verdict.scores or (score is None and vocabulary(verdict.protocol).is_open(name, verdict)):
                continue
            column = self._columns[name]
            places[name] = len(column.judge)
            column.judge.append(math.nan if score is None else score)
            column.cluster.append(cluster)
            if score is not None and not needs_labels(verdict, name):
                column.facts.append(places[name])
        if rated:
            self._labelled.append((verdict, rated, places))

    def results(self, majority: Majority, vocab: Vocabulary, width: float) -> tuple[CorrectedScore, ...]:
        """`width` is that of the wanted interval, as a share of the scale."""
        people, weights = self._people(majority)
        return tuple(
            _corrected_score(name, column, people.get(name, {}), weights, vocab.metric(name).bounds, width)
            for name, column in self._columns.items()
        )

    def _people(self, majority: Majority) -> tuple[dict[str, dict[int, float]], dict[str, dict[int, float]]]:
        """Scores from human labels by metric and place, with the weights of their samples."""
        people: dict[str, dict[int, float]] = defaultdict(dict)
        weights: dict[str, dict[int, float]] = defaultdict(dict)
        for verdict, rated, places in self._labelled:
            given: dict[Place, str] = {
                (item.slot.kind, item.slot.turn, item.slot.item): majority.label(item) for item in rated
            }
            for name, score in scores_by_people(verdict, given).items():
                if name in places:
                    people[name][places[name]] = math.nan if score is None else score
                    weights[name][places[name]] = rated[0].weight
        return people, weights

    def is_skewed(self, majority: Majority) -> bool:
        """Whether the judge scores the labelled samples otherwise than the whole run."""
        _, weights = self._people(majority)
        return any(_is_skewed(np.array(column.judge), weights[name]) for name, column in self._columns.items())


def _is_skewed(judge: Array, weights: dict[int, float]) -> bool:
    places = [place for place in weights if not math.isnan(judge[place])]
    known = judge[~np.isnan(judge)]
    if len(places) < LEAST_TO_SUSPECT or len(places) == len(known):
        return False
    share = np.array([weights[place] for place in places])
    share /= share.sum()
    left = 1 - len(places) / len(known)
    error = float(known.std()) * math.sqrt(float(share @ share) * left)
    return error > 0 and abs(float(share @ judge[places]) - float(known.mean())) > SUSPICIOUS * error


def _corrected_score(
    name: str,
    column: _Column,
    people: dict[int, float],
    weights: dict[str, dict[int, float]],
    bounds: Interval,
    width: float,
) -> CorrectedScore:
    judge = np.array(column.judge)
    raw = Mean(low=bounds[0], high=bounds[1])
    for value, cluster in zip(column.judge, column.cluster, strict=True):
        if not math.isnan(value):
            raw.add(value, cluster)
    found = None
    if people:
        found = corrected(_units(judge, column, people, weights[name]), bounds)
    per_cluster = len(people) / found.clusters if found else 1.0
    span = bounds[1] - bounds[0]
    needed = clusters_for_width(found, width * span) if found and found.interval and math.isfinite(span) else None
    return CorrectedScore(
        metric=name,
        judge=raw.value,
        judge_interval=raw.interval,
        value=found.value if found else None,
        interval=found.interval if found else None,
        people=found.people if found else None,
        trust=found.trust if found else None,
        n_labelled=len(people),
        n=raw.n,
        n_needed=None if needed is None else math.ceil(needed * per_cluster),
    )


def _units(judge: Array, column: _Column, people: dict[int, float], weights: dict[int, float]) -> Units:
    """Samples as units of a mean. Labelled ones stand for all that could have been labelled; facts for themselves."""
    n = len(judge)
    weight = np.zeros(n)
    said = np.full(n, math.nan)
    places = list(people)
    said[places] = list(people.values())
    weight[places] = [weights[place] for place in places]
    weight *= (n - len(column.facts)) / weight.sum()
    said[column.facts], weight[column.facts] = judge[column.facts], 1.0
    return Units(
        judge=_counted(judge),
        people=_counted(np.where(weight > 0, said, math.nan)),
        weight=weight,
        cluster=np.array(column.cluster, dtype=np.int64),
    )


def _counted(values: Array) -> Array:
    """What each value adds to the sum and to the count; null adds to neither."""
    known = ~np.isnan(values)
    return np.stack([np.where(known, values, 0.0), known.astype(np.float64)], axis=1)


class Rates:
    """Takes every item of the run: the rate of each label, by the judge and corrected by human labels."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._judge: dict[str, array[int]] = defaultdict(lambda: array("b"))
        self._cluster: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._labelled: dict[str, list[tuple[int, Rated]]] = defaultdict(list)

    def add(self, verdict: Verdict, rated: list[Rated], cluster: int) -> None:
        filled = {(item.slot.kind, item.slot.turn, item.slot.item): item for item in rated}
        for slot in slots_of(verdict) if self._kinds else ():
            if slot.kind not in self._kinds or slot.judge == UNJUDGED:
                continue
            if found := filled.get((slot.kind, slot.turn, slot.item)):
                self._labelled[slot.task].append((len(self._judge[slot.task]), found))
            self._judge[slot.task].append(slot.choices.index(slot.judge))
            self._cluster[slot.task].append(cluster)

    def results(self, majority: Majority) -> Iterator[CorrectedRate]:
        for task, labelled in self._labelled.items():
            judge = np.array(self._judge[task])
            cluster = np.array(self._cluster[task], dtype=np.int64)
            labels = labelled[0][1].slot.choices
            people, weight = np.full(len(judge), -1), np.zeros(len(judge))
            for place, item in labelled:
                people[place] = labels.index(majority.label(item))
                weight[place] = item.weight
            for code, label in enumerate(labels):
                found = corrected(
                    Units(
                        judge=np.stack([judge == code, np.ones(len(judge))], axis=1),
                        people=np.stack([people == code, people >= 0], axis=1).astype(np.float64),
                        weight=weight,
                        cluster=cluster,
                    )
                )
                if found is None or not (np.any(judge == code) or np.any(people == code)):
                    continue
                yield CorrectedRate(
                    task=task,
                    label=label,
                    judge=float(np.mean(judge == code)),
                    value=found.value,
                    interval=found.interval,
                    n_labelled=len(labelled),
                    n=len(judge),
                )
