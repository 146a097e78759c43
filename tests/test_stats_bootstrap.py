"""Resampling: the ends of the library's own method, clusters kept whole, and that 95 % means 95 %."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from steelyard.stats import agreement, wilson
from steelyard.stats.bootstrap import Resampled, bca, gather

# People's label → how often the judge gives which: right in 0.84 of cases.
LABELS = np.array([0.6, 0.3, 0.1])
HABITS = np.array([[0.9, 0.07, 0.03], [0.1, 0.85, 0.05], [0.2, 0.2, 0.6]])
TRUTH = (LABELS[:, None] * HABITS).T


def draw(rng: np.random.Generator, clusters: int, per_cluster: int) -> np.ndarray:
    return rng.multinomial(per_cluster, TRUTH.ravel(), size=clusters).reshape(clusters, 3, 3).astype(float)


def test_ends_are_those_of_scipy() -> None:
    """The bias-corrected ends agree with scipy's, up to the chance of resampling."""
    values = np.random.default_rng(5).gamma(2.0, 1.0, size=40)
    mine = Resampled(np.stack([values, np.ones(40)], axis=1), resamples=20_000)
    replicates, without = (sums[..., 0] / sums[..., 1] for sums in (mine.resampled, mine.without))
    found = bca(values.mean(), replicates, without)
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=1).confidence_interval
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.03)


def test_without_skew_the_ends_are_percentiles() -> None:
    """Where nothing needs correcting, the ends are the plain percentiles of the replicates."""
    replicates = np.linspace(-1, 1, 2001)
    low, high = bca(0.0, replicates, np.array([-0.1, 0.1]))
    assert (low, high) == pytest.approx((-0.95, 0.95), abs=2e-3)


def test_the_same_data_give_the_same_interval() -> None:
    """Nothing depends on the moment: two calculations agree to the last digit."""
    tables = draw(np.random.default_rng(6), 30, 2)
    assert Resampled(tables).figure(agreement.cohen_kappa) == Resampled(tables).figure(agreement.cohen_kappa)


def test_repeating_items_within_clusters_does_not_narrow() -> None:
    """Ten copies of each cluster's items are no new evidence."""
    tables = draw(np.random.default_rng(7), 40, 1)
    once, often = (Resampled(t).figure(agreement.raw_agreement) for t in (tables, 10 * tables))
    assert once.interval is not None
    assert often.interval == pytest.approx(once.interval)


def test_no_error_seen_is_not_certainty() -> None:
    """Full agreement on 20 samples leaves room for errors, on the scale of κ as well."""
    tables = np.zeros((20, 2, 2))
    tables[:12, 0, 0] = tables[12:, 1, 1] = 1
    data = Resampled(tables)
    low = wilson(20, 20)[0]  # type: ignore[index]
    assert data.figure(agreement.raw_agreement).interval == pytest.approx((low, 1.0))
    chance = 0.6**2 + 0.4**2
    found = data.figure(agreement.cohen_kappa, chance=agreement.chance_agreement, bounds=(-1.0, 1.0))
    assert found.interval == pytest.approx(((low - chance) / (1 - chance), 1.0))


def test_only_clusters_that_bear_on_it_count() -> None:
    """A label that three samples hold is known from three samples, however many there are."""
    tables = np.zeros((50, 2, 2))
    tables[:, 0, 0] = 1
    tables[:3, 1, 1] = 1
    found = Resampled(tables).figure(lambda t: agreement.recall(t, 1), counts=lambda t: t[..., :, 1].sum(axis=-1))
    assert (found.value, found.clusters) == (1.0, 3)
    assert found.interval == pytest.approx(wilson(3, 3))


@pytest.mark.parametrize("clusters", [0, 1])
def test_too_few_clusters_have_no_interval(clusters: int) -> None:
    """Nothing gives no value; one cluster gives a value without an interval."""
    found = Resampled(draw(np.random.default_rng(8), clusters, 5)).figure(agreement.raw_agreement)
    assert found.interval is None
    assert (found.value is None) == (clusters == 0)


def test_gather_sums_by_cluster() -> None:
    """Values of the same cluster are added up, wherever they stand."""
    values = np.array([[1.0], [2.0], [4.0]])
    assert gather(values, np.array([1, 0, 1])).tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize(("clusters", "per_cluster"), [(100, 1), (60, 4)])
def test_coverage(clusters: int, per_cluster: int) -> None:
    """95 % intervals of agreement, κ and balanced accuracy hold the truth in 93 to 97 % of simulated runs."""
    rng = np.random.default_rng(21)
    figures = (agreement.raw_agreement, agreement.cohen_kappa, agreement.balanced_accuracy)
    truths = [float(statistic(TRUTH)) for statistic in figures]
    repeats, hits = 500, np.zeros(3)
    for repeat in range(repeats):
        data = Resampled(draw(rng, clusters, per_cluster), resamples=400, seed=repeat)
        for n, (statistic, truth) in enumerate(zip(figures, truths, strict=True)):
            interval = data.figure(statistic, bounds=(-1.0, 1.0)).interval
            hits[n] += interval is not None and interval[0] <= truth <= interval[1]
    assert np.all((hits / repeats >= 0.93) & (hits / repeats <= 0.97)), hits / repeats


def test_coverage_where_samples_have_a_mood() -> None:
    """Items of one sample that succeed or fail together: resampling whole samples still covers; items would not."""
    rng = np.random.default_rng(22)
    repeats, by_sample, by_item, also_by_item = 500, 0, 0, 100
    for repeat in range(repeats):
        ease = rng.beta(3, 1, size=50)
        right = rng.random((50, 6)) < ease[:, None]
        tables = np.zeros((50, 6, 2, 2))
        tables[..., 0, 0], tables[..., 0, 1] = right, ~right
        for whole, data in ((True, tables.sum(axis=1)), (False, tables.reshape(-1, 2, 2))):
            if not whole and repeat >= also_by_item:
                continue
            low, high = Resampled(data, resamples=400, seed=repeat).figure(agreement.raw_agreement).interval or (1, 0)
            by_sample += whole and low <= 0.75 <= high
            by_item += not whole and low <= 0.75 <= high
    assert 0.93 <= by_sample / repeats <= 0.97
    assert by_item / also_by_item < 0.92


def test_few_clusters_are_less_sure() -> None:
    """The ends move out as Student's t does: by much with 5 clusters, hardly at all with 5,000."""
    replicates = np.linspace(-1, 1, 2001)
    plain, few, many = (bca(0.0, replicates, np.array([-0.1, 0.1]), n) for n in (None, 5, 5000))
    assert few[1] > plain[1] + 0.04
    assert many == pytest.approx(plain, abs=2e-3)
