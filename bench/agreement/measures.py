"""Agreement in numbers: balanced accuracy, accuracy, macro-F1, AUC, abstentions, each with a 95 % interval.

Intervals resample whole documents, since rows that share one are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agreement.cases import Answer, abstains, score_of, verdict_of
from steelyard.stats.agreement import balanced_accuracy, f1, raw_agreement
from steelyard.stats.bootstrap import Resampled, gather

Array = Any
SUPPORT = ("supported", "not supported")
LEVELS = ("1", "2", "3")
RESAMPLES = 2000
AUC_RESAMPLES = 400
SEED = 1


class Figure(NamedTuple):
    """A number, the ends of its interval, and how many labelled things stand behind it."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    def as_dict(self) -> dict[str, float | int | None]:
        places = {name: None if end is None else round(float(end), 4) for name, end in self._asdict().items()}
        return {**places, "n": self.n}


class Outcome(NamedTuple):
    """One labelled thing: what people said, what the judge said, and what it shares with others."""

    truth: str
    said: str
    document: str
    abstained: bool = False
    score: float | None = None


def support_outcomes(answers: Sequence[Answer]) -> list[Outcome]:
    """Supported or not. A judge that abstains has not found support: undetermined counts as not supported."""
    return [
        Outcome(a.wanted.truth, verdict_of(a.said), a.wanted.document, abstains(a.said), score_of(a.said))
        for a in answers
        if a.said
    ]


def level_outcomes(answers: Sequence[Answer]) -> list[Outcome]:
    return [
        Outcome(a.wanted.truth, str(a.said[0].level), a.wanted.document)
        for a in answers
        if a.said and a.said[0].level is not None
    ]


def support_figures(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """All figures of one set, over everything and over what the judge decided."""
    decided = [outcome for outcome in outcomes if not outcome.abstained]
    figures = {
        "balanced accuracy": figure(outcomes, SUPPORT, balanced_accuracy),
        "accuracy": figure(outcomes, SUPPORT, raw_agreement),
        "macro-F1": figure(outcomes, SUPPORT, macro_f1),
        "AUC": auc(outcomes),
        "abstained": share(outcomes, lambda outcome: outcome.abstained),
        "balanced accuracy, decided": figure(decided, SUPPORT, balanced_accuracy),
        "accuracy, decided": figure(decided, SUPPORT, raw_agreement),
    }
    return {name: found for name, found in figures.items() if found.value is not None}


def figure(outcomes: Sequence[Outcome], labels: Sequence[str], statistic: Callable[[Array], Array]) -> Figure:
    """A statistic of the table of labels: a row per label of the judge, a column per label of people."""
    n = len(outcomes)
    if not n:
        return Figure(None, None, None, 0)
    counts = np.zeros((n, len(labels), len(labels)))
    for one, outcome in zip(counts, outcomes, strict=True):
        one[labels.index(outcome.said), labels.index(outcome.truth)] = 1
    found = Resampled(gather(counts, documents(outcomes)), RESAMPLES, SEED).figure(statistic)
    low, high = found.interval or (None, None)
    return Figure(found.value, low, high, n)


def share(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> Figure:
    """How many of them, out of all."""
    n = len(outcomes)
    if not n:
        return Figure(None, None, None, 0)
    counts = np.array([[float(holds(outcome)), 1.0] for outcome in outcomes])
    clusters = gather(counts, documents(outcomes))
    found = Resampled(clusters, RESAMPLES, SEED).figure(lambda sums: sums[..., 0] / np.maximum(sums[..., 1], 1))
    low, high = found.interval or (None, None)
    return Figure(found.value, low, high, n)


def macro_f1(table: Array) -> Array:
    """The plain mean of F1 over the labels that people used."""
    each = np.stack([f1(table, label) for label in range(table.shape[-1])], axis=-1)
    used = table.sum(axis=-2) > 0
    # A label that only people used has F1 0, which `f1` gives; one that nobody used is left out.
    return np.where(used, np.nan_to_num(each), 0.0).sum(axis=-1) / np.maximum(used.sum(axis=-1), 1)


def auc(outcomes: Sequence[Outcome]) -> Figure:
    """How often a supported one gets a higher probability than an unsupported one; ties count half."""
    scores = np.array([np.nan if outcome.score is None else outcome.score for outcome in outcomes])
    truths = np.array([outcome.truth == SUPPORT[0] for outcome in outcomes], dtype=bool)
    if not len(scores) or np.isnan(scores).any() or truths.all() or not truths.any():
        return Figure(None, None, None, 0)
    place = documents(outcomes)
    rng = np.random.default_rng(SEED)
    clusters = int(place.max()) + 1
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=AUC_RESAMPLES)[:, place]
    value = weighted_auc(scores, truths, np.ones((1, len(scores))))[0]
    found = weighted_auc(scores, truths, weights)
    low, high = np.nanquantile(found, [0.025, 0.975])
    return Figure(float(value), float(low), float(high), len(scores))


def weighted_auc(scores: Array, truths: Array, weights: Array) -> Array:
    """The AUC under each row of weights."""
    order = np.argsort(scores, kind="stable")
    scores, truths, weights = scores[order], truths[order], weights[:, order]
    negatives = np.cumsum(np.where(truths, 0, weights), axis=1)
    first = np.searchsorted(scores, scores, side="left")
    last = np.searchsorted(scores, scores, side="right") - 1
    below = np.where(first > 0, negatives[:, np.maximum(first - 1, 0)], 0)
    wins = np.where(truths, weights, 0) * (below + negatives[:, last]) / 2
    pairs = np.where(truths, weights, 0).sum(axis=1) * negatives[:, -1]
    with np.errstate(invalid="ignore"):
        return np.where(pairs > 0, wins.sum(axis=1) / np.maximum(pairs, 1), np.nan)


def documents(outcomes: Sequence[Outcome]) -> Array:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(outcome.document, len(numbers)) for outcome in outcomes])
