"""Bradley–Terry strengths: a closed form, an independent implementation, and that 95 % means 95 %."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm

from steelyard.stats.intervals import t_quantile
from steelyard.stats.ranking import Compared, strengths


def test_two_contestants_by_hand() -> None:
    """30 points of 40: odds of 3 to 1, so the strengths are ± ½ log 3; the error is that of the log odds."""
    met = [Compared(0, 1, float(n < 30), 1, n) for n in range(40)]
    found = strengths(2, met)
    assert found is not None
    assert [one.value for one in found] == pytest.approx([math.log(3) / 2, -math.log(3) / 2])
    error = math.sqrt(1 / (40 * 0.75 * 0.25) * 40 / 39) / 2
    assert found[0].interval is not None
    assert found[0].interval[1] - found[0].value == pytest.approx(t_quantile(0.975, 39) * error)


def drawn(values: list[float], questions: int, seed: int) -> list[Compared]:
    """Every two contestants compared on every question; answers to one question rise and fall together."""
    rng = np.random.default_rng(seed)
    found = []
    for question in range(questions):
        moved = np.array(values) + rng.normal(0, 0.7, len(values))
        for i, j in combinations(range(len(values)), 2):
            chance = 1 / (1 + math.exp(moved[j] - moved[i]))
            points = 0.5 if rng.random() < 0.2 else float(rng.random() < chance)
            found.append(Compared(i, j, points, 1, question))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_like_a_logistic_regression_with_clustered_errors(seed: int) -> None:
    """The same strengths and errors as statsmodels' binomial regression on differences, clusters and ties included."""
    met = drawn([0.8, 0.1, -0.3, -0.6], 40, seed)
    design = np.zeros((len(met), 4))
    for row, one in enumerate(met):
        design[row, one.first], design[row, one.second] = 1, -1
    points, groups = np.array([one.points for one in met]), np.array([one.cluster for one in met])
    model = sm.GLM(points, design[:, :3], family=sm.families.Binomial())
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}, tol=1e-12)
    centre = (np.eye(4) - 0.25)[:, :3]
    theirs = centre @ fit.params
    errors = np.sqrt(np.diag(centre @ fit.cov_params() @ centre.T) * 40 / 39)
    found = strengths(4, met)
    assert found is not None
    assert [one.value for one in found] == pytest.approx(list(theirs), abs=1e-6)
    reach = t_quantile(0.975, 39)
    assert [one.interval for one in found] == [
        pytest.approx((value - reach * error, value + reach * error), abs=1e-5)
        for value, error in zip(theirs, errors, strict=True)
    ]


def test_counts_say_the_same_as_single_comparisons() -> None:
    """Comparisons of one cluster may come summed."""
    single = [Compared(0, 1, points, 1, cluster) for cluster in range(6) for points in (1.0, 0.5, float(cluster % 2))]
    summed = [Compared(0, 1, 1.5 + cluster % 2, 3, cluster) for cluster in range(6)]
    one, other = strengths(2, single), strengths(2, summed)
    assert one is not None
    assert other is not None
    assert [s.value for s in one] == pytest.approx([s.value for s in other])
    assert one[0].interval == pytest.approx(other[0].interval)


def test_what_cannot_be_ranked() -> None:
    """One who never lost, or two groups that never met, have no finite strengths; one who did not play neither."""
    assert strengths(2, [Compared(0, 1, 5.0, 5, 0)]) is None
    apart = [Compared(0, 1, 1.0, 2, 0), Compared(2, 3, 1.0, 2, 1)]
    assert strengths(4, apart) is None
    assert strengths(3, [Compared(0, 1, 1.0, 2, 0)]) is None
    assert strengths(1, []) is None


def test_ties_alone_are_no_certainty() -> None:
    """Where every comparison is a tie all are equally strong, and the interval still has a width."""
    found = strengths(3, [Compared(i, j, 0.5, 1, n) for n in range(5) for i, j in combinations(range(3), 2)])
    assert found is not None
    for one in found:
        assert one.value == pytest.approx(0)
        assert one.interval is not None
        assert one.interval[1] > 0.5
    [alone, _] = strengths(2, [Compared(0, 1, 1.0, 2, 0)]) or []
    assert alone.interval is None


def test_intervals_hold_the_truth() -> None:
    """Over many draws with independent comparisons, nearly 95 % of the intervals hold the true strength."""
    truth, held = [0.5, 0.0, -0.5], 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        met = [
            Compared(i, j, float(rng.random() < 1 / (1 + math.exp(truth[j] - truth[i]))), 1, 100 * n + 10 * i + j)
            for n in range(40)
            for i, j in combinations(range(3), 2)
        ]
        found = strengths(3, met)
        assert found is not None
        held += sum(
            one.interval is not None and one.interval[0] <= value <= one.interval[1]
            for one, value in zip(found, truth, strict=True)
        )
    assert 0.92 <= held / 450 <= 0.98
