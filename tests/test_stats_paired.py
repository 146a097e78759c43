"""Paired differences: independent implementations, exactness, and that 95 % means 95 %."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from steelyard.stats import paired
from steelyard.stats.paired import PairedDifference, difference, holm, samples_to_decide, sign_test, swap_test


def diff(a: np.ndarray, b: np.ndarray, cluster: np.ndarray | None = None, span: float = 1.0) -> PairedDifference:
    found = difference(
        np.asarray(a, float), np.asarray(b, float), np.arange(len(a)) if cluster is None else cluster, span
    )
    assert found is not None
    return found


def test_mean_and_interval_by_hand() -> None:
    """Five differences 1, 2, 3, 4, 5: mean 3, t interval 3 ± 2.776 · √(2.5 / 5), d = 3 / √2.5."""
    found = diff(np.zeros(5), np.arange(1, 6), span=10)
    assert found.value == 3
    assert found.interval == pytest.approx((3 - 2.776 * math.sqrt(0.5), 3 + 2.776 * math.sqrt(0.5)), abs=1e-3)
    assert found.dz == pytest.approx(3 / math.sqrt(2.5))
    assert (found.rose, found.fell, found.balance) == (5, 0, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_interval_like_scipys_paired_t(seed: int) -> None:
    """Without clusters the interval is that of scipy's paired t test."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(30), rng.random(30)
    theirs = scipy_stats.ttest_rel(b, a).confidence_interval(0.95)
    assert diff(a, b).interval == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_swaps_like_scipys_permutation_test() -> None:
    """Small: the exact p of scipy's paired permutation test. Larger: the same p up to the chance of swapping."""
    rng = np.random.default_rng(2)
    for n, tolerance in ((9, 1e-12), (60, 0.012)):
        sums = rng.normal(0.25, 1, n)
        theirs = scipy_stats.permutation_test(
            (sums, np.zeros(n)),
            lambda x, y, axis: np.sum(x - y, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=20_000,
        ).pvalue
        p, method = swap_test(sums)
        assert method == ("exact" if n == 9 else "random")
        assert p == pytest.approx(theirs, abs=tolerance)


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 40))
def test_yes_no_scores_are_mcnemars_exact_test(rose: int, fell: int) -> None:
    """Scores of 0 and 1: the p of statsmodels' exact McNemar test."""
    apart = np.concatenate([np.ones(rose), -np.ones(fell), np.zeros(5)])
    theirs = float(mcnemar([[0, rose], [fell, 0]], exact=True).pvalue) if rose + fell else 1.0
    assert swap_test(apart)[0] == pytest.approx(min(1.0, theirs), abs=1e-9)


def test_many_clusters_are_tested_by_the_normal_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond some thousands of clusters swapping is not needed: the limit gives the same p."""
    sums = np.random.default_rng(3).normal(0.04, 1, 2000)
    swapped, method = swap_test(sums)
    monkeypatch.setattr(paired, "MANY", 1000)
    limit, other = swap_test(sums)
    assert (method, other) == ("random", "normal")
    assert limit == pytest.approx(swapped, abs=0.012)


@pytest.mark.parametrize("seed", range(5))
def test_holm_like_statsmodels(seed: int) -> None:
    """The adjusted values are those of statsmodels; what was not tested stays untested and costs nothing."""
    rng = np.random.default_rng(seed)
    ps = [None if rng.random() < 0.2 else float(rng.random() ** 3) for _ in range(8)]
    known = [p for p in ps if p is not None]
    assert [p for p in holm(ps) if p is not None] == pytest.approx(list(multipletests(known, method="holm")[1]))
    assert [p is None for p in holm(ps)] == [p is None for p in ps]
    assert holm([]) == []


def test_questions_are_the_unit() -> None:
    """Four samples of each question that move together are no more evidence than one."""
    rng = np.random.default_rng(4)
    a, b = rng.random(25), rng.random(25)
    once = diff(a, b)
    often = diff(np.repeat(a, 4), np.repeat(b, 4), np.repeat(np.arange(25), 4))
    assert often.interval == pytest.approx(once.interval)
    assert often.p == pytest.approx(once.p, abs=0.02)
    assert (often.n, often.clusters) == (100, 25)


def test_no_change_at_all() -> None:
    """Identical scores: no difference, p of 1, and room for changes that so few samples would not show."""
    same = np.linspace(0, 1, 20)
    found = diff(same, same)
    assert (found.value, found.p, found.dz, found.rose, found.fell) == (0, 1.0, None, 0, 0)
    assert found.interval is not None
    assert -0.2 < found.interval[0] < 0 < found.interval[1] < 0.2


def test_one_pair_and_none() -> None:
    """One pair has a difference but nothing to test it with; no pair has nothing."""
    found = diff(np.array([0.2]), np.array([0.5]))
    assert (found.interval, found.p, found.error) == (None, None, None)
    assert difference(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int)) is None


def test_rounding_is_no_change() -> None:
    """0.1 + 0.2 against 0.3 is not an improvement."""
    found = diff(np.array([0.3, 0.5]), np.array([0.1 + 0.2, 0.5]))
    assert (found.rose, found.fell) == (0, 0)


unit = st.floats(0, 1)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(unit, unit, st.integers(0, 6)), min_size=2, max_size=14))
def test_turning_it_round_turns_the_sign(rows: list[tuple[float, float, int]]) -> None:
    """A against B is B against A with the other sign and the same p."""
    a, b, keys = (np.array([row[n] for row in rows]) for n in range(3))
    one, other = diff(a, b, keys.astype(int)), diff(b, a, keys.astype(int))
    assert one.value == pytest.approx(-other.value)
    assert one.p == pytest.approx(other.p)
    if one.interval is not None and other.interval is not None:
        assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]))
        assert -1 <= one.interval[0] <= one.value + 1e-9
        assert one.value - 1e-9 <= one.interval[1] <= 1


def test_as_many_samples_as_it_says_do_decide() -> None:
    """With the number of samples named, a true difference of that size is found about four times in five."""
    rng = np.random.default_rng(5)
    first = diff(np.zeros(100), rng.normal(0.1, 0.5, 100), span=10)
    first = first._replace(value=0.1)
    needed = samples_to_decide(first)
    assert needed is not None
    found = sum(scipy_stats.ttest_1samp(rng.normal(0.1, first.error * 10, needed), 0).pvalue < 0.05 for _ in range(400))
    assert 0.72 <= found / 400 <= 0.88


def test_what_cannot_be_decided_has_no_number() -> None:
    """No difference seen, or one too small for any practical number of samples: no number is named."""
    same = np.zeros(10)
    assert samples_to_decide(diff(same, same)) is None
    rng = np.random.default_rng(6)
    noise = rng.normal(0, 1, 50)
    tiny = diff(np.zeros(50), noise - noise.mean() + 1e-6, span=10)
    assert samples_to_decide(tiny) is None


def test_coverage_of_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval holds the true difference in 93 to 97 % of simulated pairs of runs, with shared questions too."""
    monkeypatch.setattr(paired, "swap_test", lambda _: (None, "none"))  # not what is simulated here, and slow
    rng = np.random.default_rng(7)
    repeats, plain, shared = 2000, 0, 0
    for _ in range(repeats):
        ease = rng.beta(4, 2, size=60)
        a, b = (rng.random(60) < ease).astype(float), (rng.random(60) < ease).astype(float)
        low, high = diff(a, b).interval or (1, 0)
        plain += low <= 0 <= high
        lift = np.repeat(rng.normal(0.05, 0.1, 30), 3)
        before = rng.normal(0.5, 0.1, 90)
        after = before + lift + rng.normal(0, 0.05, 90)
        low, high = diff(before, after, np.repeat(np.arange(30), 3)).interval or (1, 0)
        shared += low <= 0.05 <= high
    assert 0.93 <= plain / repeats <= 0.97
    assert 0.93 <= shared / repeats <= 0.97


def test_false_alarms_of_the_test() -> None:
    """Where nothing differs, the swap test says otherwise in no more than about one run of twenty."""
    rng = np.random.default_rng(8)
    repeats = 1500
    alarms = sum((swap_test(rng.gamma(2, 1, 12) * rng.choice([-1, 1], 12))[0] or 0) <= 0.05 for _ in range(repeats))
    assert alarms / repeats <= 0.065


@pytest.mark.parametrize(("rises", "n"), [(0, 1), (1, 2), (3, 10), (10, 10), (2, 7), (480, 1000), (50_300, 100_000)])
def test_sign_test_like_scipys(rises: int, n: int) -> None:
    """Rises and falls of one size: the exact binomial test."""
    assert sign_test(rises, n) == pytest.approx(scipy_stats.binomtest(rises, n).pvalue, rel=1e-6)
