"""Agreement: published worked examples, independent implementations, and what must hold for any counts."""

from __future__ import annotations

import math
import random

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from statsmodels.stats.inter_rater import cohens_kappa as statsmodels_kappa

from steelyard.stats import agreement

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: four observers, twelve units, with gaps.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def table_of(judge: list[int], people: list[int], labels: int) -> np.ndarray:
    table = np.zeros((labels, labels))
    for row, column in zip(judge, people, strict=True):
        table[row, column] += 1
    return table


def alpha_of(observers: list[list[int | None]], labels: int) -> float:
    units = [[row[n] - 1 for row in observers if row[n] is not None] for n in range(len(observers[0]))]
    return float(agreement.krippendorff_alpha(agreement.coincidences(units, labels).sum(axis=0)))


def test_alpha_as_published() -> None:
    """The worked example with missing data gives the published 0.743."""
    assert alpha_of(PUBLISHED, 5) == pytest.approx(0.743, abs=5e-4)


def test_alpha_of_two_observers_as_published() -> None:
    """The worked example of binary data, two observers, ten units (section A) gives the published 0.095."""
    meg = [1, 2, 1, 1, 1, 1, 1, 1, 2, 1]
    owen = [2, 2, 2, 1, 1, 2, 1, 1, 1, 1]
    assert alpha_of([meg, owen], 2) == pytest.approx(0.095, abs=5e-4)


def test_kappa_as_published() -> None:
    """Cohen's arithmetic on a table of 20, 5, 10, 15: agreement 0.7, chance 0.5, kappa 0.4."""
    table = np.array([[20.0, 5.0], [10.0, 15.0]])
    assert agreement.raw_agreement(table) == pytest.approx(0.7)
    assert agreement.chance_agreement(table) == pytest.approx(0.5)
    assert agreement.cohen_kappa(table) == pytest.approx(0.4)


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60)


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_like_other_libraries(given_pairs: list[tuple[int, int]]) -> None:
    """Kappa, precision, recall, F1 and balanced accuracy are those of scikit-learn and statsmodels."""
    judge, people = [a for a, _ in given_pairs], [b for _, b in given_pairs]
    table = table_of(judge, people, 4)
    assert agreement.raw_agreement(table) == pytest.approx(metrics.accuracy_score(people, judge))
    kappa = float(agreement.cohen_kappa(table))
    if len(set(judge) | set(people)) > 1 and agreement.chance_agreement(table) < 1 - 1e-9:
        assert kappa == pytest.approx(metrics.cohen_kappa_score(judge, people), abs=1e-9)
        assert kappa == pytest.approx(float(statsmodels_kappa(table, return_results=False)), abs=1e-9)
    else:
        assert math.isnan(kappa)
    recalls = [float(agreement.recall(table, k)) for k in sorted(set(people))]
    theirs = metrics.recall_score(people, judge, labels=sorted(set(people)), average=None, zero_division=0)
    assert recalls == pytest.approx(list(theirs))
    assert agreement.balanced_accuracy(table) == pytest.approx(float(np.mean(theirs)))
    for k in sorted(set(judge)):
        expected = metrics.precision_score(people, judge, labels=[k], average=None, zero_division=0)[0]
        assert agreement.precision(table, k) == pytest.approx(expected)
        f1 = metrics.f1_score(people, judge, labels=[k], average=None, zero_division=0)[0]
        assert agreement.f1(table, k) == pytest.approx(f1)


@pytest.mark.parametrize("seed", range(8))
def test_alpha_like_the_krippendorff_package(seed: int) -> None:
    """Any number of people, a third of the labels missing: the same α as the package of that name."""
    rng = random.Random(seed)
    observers = [[rng.choice([1, 2, 3, None, rng.randint(1, 3)]) for _ in range(25)] for _ in range(rng.randint(2, 6))]
    data = [[math.nan if label is None else label for label in row] for row in observers]
    theirs = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    assert alpha_of(observers, 3) == pytest.approx(theirs, abs=1e-9)


def test_what_is_undefined_is_not_a_number() -> None:
    """Without items, or with one label only, nothing is claimed: neither 0 nor 1."""
    empty, single = np.zeros((2, 2)), np.array([[9.0, 0.0], [0.0, 0.0]])
    assert math.isnan(agreement.raw_agreement(empty))
    assert math.isnan(agreement.cohen_kappa(single))
    assert math.isnan(agreement.krippendorff_alpha(single))
    assert math.isnan(agreement.precision(single, 1))
    assert math.isnan(agreement.recall(single, 1))
    assert agreement.raw_agreement(single) == 1


def test_an_item_with_one_label_pairs_with_nothing() -> None:
    """A lone label adds nothing to the coincidences, so it cannot move α."""
    found = agreement.coincidences([[0], [], [0, 1]], 2)
    assert found[0].sum() == found[1].sum() == 0
    assert found[2].tolist() == [[0, 1], [1, 0]]


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_many_tables_at_once(given_pairs: list[tuple[int, int]]) -> None:
    """A stack of tables gives each table's own figures."""
    one = table_of([a for a, _ in given_pairs], [b for _, b in given_pairs], 4)
    stack = np.stack([one, np.zeros((4, 4)), 2 * one])
    for statistic in (agreement.raw_agreement, agreement.cohen_kappa, agreement.balanced_accuracy):
        both = statistic(stack)
        assert both[0] == pytest.approx(float(statistic(one)), nan_ok=True)
        assert both[2] == pytest.approx(float(statistic(one)), nan_ok=True)
        assert math.isnan(both[1])
