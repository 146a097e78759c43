"""Intervals: table values, edge cases, and that 95 % means 95 %."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.stats import Interval, Mean, Ratio, t_cdf, t_quantile, wilson

# Two-sided 95 % and 99 % points as printed in tables of Student's distribution.
TABLE_975 = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    8: 2.306,
    10: 2.228,
    15: 2.131,
    20: 2.086,
    30: 2.042,
    60: 2.000,
    120: 1.980,
}
TABLE_995 = {1: 63.657, 2: 9.925, 5: 4.032, 10: 3.169, 30: 2.750, 120: 2.617}


@pytest.mark.parametrize(("df", "printed"), TABLE_975.items())
def test_t_quantile_975(df: int, printed: float) -> None:
    """The 97.5 % point agrees with the printed table."""
    assert t_quantile(0.975, df) == pytest.approx(printed, abs=6e-4)


@pytest.mark.parametrize(("df", "printed"), TABLE_995.items())
def test_t_quantile_995(df: int, printed: float) -> None:
    """The 99.5 % point agrees with the printed table."""
    assert t_quantile(0.995, df) == pytest.approx(printed, abs=6e-4)


def test_t_quantile_becomes_normal() -> None:
    """With many degrees of freedom the quantile is the normal one, also beyond a million."""
    assert t_quantile(0.975, 10**6) == pytest.approx(1.959964, abs=1e-5)
    assert t_quantile(0.975, 10**8) == pytest.approx(1.959964, abs=1e-6)


@example(0.4999603102608344, 4096)
@example(0.5000000001, 1_000_000)
@given(st.floats(0.001, 0.999), st.integers(1, 5000))
def test_t_quantile_inverts_the_distribution(p: float, df: int) -> None:
    """The probability below the quantile is the one asked for."""
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-9)


@given(st.floats(0.5, 0.999), st.integers(1, 500))
def test_t_quantile_is_symmetric(p: float, df: int) -> None:
    """The lower quantile mirrors the upper one."""
    assert t_quantile(1 - p, df) == pytest.approx(-t_quantile(p, df), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("p", "df"), [(0.0, 5), (1.0, 5), (0.5, 0), (float("nan"), 5)])
def test_t_quantile_refuses_nonsense(p: float, df: int) -> None:
    """A quantile that does not exist is an error, not a number."""
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(p, df)


def test_wilson_golden() -> None:
    """Values that can be checked by hand: 8 of 10, none of 10, all of 10."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)


@given(st.integers(2, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_proportion(counts: tuple[int, int]) -> None:
    """The interval lies in [0, 1], has a width, and contains the proportion."""
    successes, n = counts
    interval = wilson(successes, n)
    assert interval is not None
    assert 0 <= interval[0] <= successes / n <= interval[1] <= 1
    assert interval[0] < interval[1]


def test_wilson_refuses_what_is_no_proportion() -> None:
    """More successes than trials is an error; a single trial has no interval."""
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(3, 2)
    assert wilson(1, 1) is None


# --- means -----------------------------------------------------------------------------------------


def mean_of(values: list[float], high: float = 1.0) -> Mean:
    mean = Mean(high=high)
    for value in values:
        mean.add(value)
    return mean


def test_mean_golden() -> None:
    """Mean and t interval of five scores, worked by hand: 60 ± 2.776 · √(250 / 5)."""
    mean = mean_of([40, 50, 60, 70, 80], high=100)
    assert mean.value == 60
    assert mean.interval == pytest.approx((60 - 19.63, 60 + 19.63), abs=0.01)


def test_empty_and_single() -> None:
    """Nothing gives no value; one score gives a value without an interval."""
    assert (Mean().value, Mean().interval, Mean().n) == (None, None, 0)
    one = mean_of([0.5])
    assert (one.value, one.interval, one.n) == (0.5, None, 1)


def test_yes_no_scores_are_a_proportion() -> None:
    """Scores of 0 and 1 get Wilson's interval; full marks throughout are not certainty."""
    assert mean_of([1, 1, 1, 1, 0]).interval == pytest.approx(wilson(4, 5))
    assert mean_of([1.0] * 10).interval == pytest.approx(wilson(10, 10))
    assert mean_of([100.0] * 10, high=100).interval == pytest.approx((72.25, 100), abs=0.01)


def test_one_question_asked_often_is_one_observation() -> None:
    """Samples of a single question give no interval; repeating each question does not narrow it."""
    single = Mean()
    for value in (0.2, 0.4, 0.9):
        single.add(value, "same")
    assert single.value == pytest.approx(0.5)
    assert single.interval is None
    once, often = Mean(), Mean()
    for n, value in enumerate((0.2, 0.4, 0.9, 0.7)):
        once.add(value, f"q{n}")
        for _ in range(25):
            often.add(value, f"q{n}")
    assert often.interval == pytest.approx(once.interval)


def test_repeated_yes_no_scores_do_not_narrow() -> None:
    """Yes/no scores that only repeat their question's first one are not counted as independent."""
    independent, repeated = Mean(), Mean()
    for n in range(40):
        independent.add(n % 4 > 0, f"q{n}")
        repeated.add((n % 8) % 4 > 0, f"q{n % 8}")
    assert width(repeated.interval) > 1.8 * width(independent.interval)


def width(interval: Interval | None) -> float:
    assert interval is not None
    return interval[1] - interval[0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_a_number_is_refused(bad: float) -> None:
    """NaN and infinity raise instead of spoiling the mean in silence."""
    with pytest.raises(ValueError, match="not a number"):
        Mean().add(bad)


scores = st.lists(st.floats(0, 1), min_size=2, max_size=60)


@given(scores, st.lists(st.integers(0, 5), min_size=60, max_size=60))
def test_interval_lies_on_the_scale_and_holds_the_mean(values: list[float], keys: list[int]) -> None:
    """Whatever the scores and however they share clusters: low ≤ mean ≤ high, inside [0, 1]."""
    mean = Mean()
    for value, key in zip(values, keys, strict=False):
        mean.add(value, None if key == 0 else key)
    assert mean.value == pytest.approx(math.fsum(values) / len(values), abs=1e-9)
    if mean.interval is not None:
        low, high = mean.interval
        assert 0 <= low <= mean.value + 1e-9
        assert mean.value - 1e-9 <= high <= 1


@given(scores)
def test_clusters_of_one_are_no_clusters(values: list[float]) -> None:
    """Giving every sample its own key changes nothing."""
    keyed = Mean()
    for n, value in enumerate(values):
        keyed.add(value, f"key {n}")
    assert keyed.interval == pytest.approx(mean_of(values).interval, abs=1e-6)


# --- ratios ----------------------------------------------------------------------------------------


def test_ratio_golden() -> None:
    """Three dialogues with 3/4, 1/2 and 4/4 criteria met, worked by hand."""
    ratio = Ratio()
    for part, whole in ((3, 4), (1, 2), (4, 4)):
        ratio.add(part, whole)
    assert ratio.value == pytest.approx(0.8)
    assert ratio.n == 10
    error = math.sqrt((0.2**2 + 0.6**2 + 0.8**2) * 3 / 2) / 10
    assert ratio.error == pytest.approx(error)
    assert ratio.interval == pytest.approx((0.8 - 4.303 * error, 1.0), abs=1e-3)


def test_ratio_without_content() -> None:
    """Dialogues without a decided criterion say nothing and are not observations."""
    ratio = Ratio()
    ratio.add(0, 0)
    ratio.add(0, 0)
    assert (ratio.value, ratio.interval, ratio.n, ratio.clusters) == (None, None, 0, 0)


def test_ratio_of_full_marks_is_not_certain() -> None:
    """Twenty dialogues without a breach leave room for breaches; none met leaves room for some."""
    full, none = Ratio(), Ratio()
    for _ in range(20):
        full.add(5, 5)
        none.add(0, 5)
    assert full.interval == pytest.approx(wilson(20, 20))
    assert none.interval == pytest.approx(wilson(0, 20))


def test_parts_of_one_cluster_are_summed() -> None:
    """Adding a cluster in pieces is the same as adding it whole, in any order."""
    pieces, whole = Ratio(), Ratio()
    for key, parts in {"a": [(1, 2), (2, 2)], "b": [(0, 3), (1, 1)], "c": [(5, 6)]}.items():
        whole.add(sum(p for p, _ in parts), sum(w for _, w in parts))
        for part, size in parts:
            pieces.add(part, size, key)
    assert pieces.interval == pytest.approx(whole.interval)
    assert pieces.clusters == whole.clusters == 3


def test_memory_is_bounded() -> None:
    """A hundred thousand distinct questions leave at most `groups` sums, and the interval hardly moves."""
    rng = random.Random(3)
    keyed, plain = Ratio(groups=512), Ratio()
    for n in range(100_000):
        part = rng.random() < 0.7
        keyed.add(part, 1, n * 2654435761 % 2**61)
        plain.add(part, 1)
    assert keyed.clusters <= 512
    assert keyed.value == plain.value
    assert width(keyed.interval) == pytest.approx(width(plain.interval), rel=0.15)


def test_text_keys_are_grouped_the_same_in_every_process() -> None:
    """Merging by key does not depend on Python's randomised string hash."""
    code = (
        "from steelyard.stats import Ratio; r = Ratio(groups=8)\n"
        "for n in range(50): r.add(n % 3 == 0, 1, f'question {n}')\n"
        "print(r.clusters, r.interval)"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert printed[0].startswith("8 (0.")


# --- does 95 % mean 95 %? --------------------------------------------------------------------------

REPEATS = 3000


def covered(truth: float, interval: Interval | None) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]


def test_coverage_of_a_proportion() -> None:
    """Wilson's interval covers the true proportion in 93 to 97 % of simulated runs.

    The proportion is drawn anew each time: for a single one, coverage jumps with the grid of possible counts.
    """
    rng = random.Random(11)
    hits = 0
    for _ in range(REPEATS):
        p = rng.uniform(0.05, 0.95)
        hits += covered(p, mean_of([float(rng.random() < p) for _ in range(60)]).interval)
    assert 0.93 <= hits / REPEATS <= 0.97


def test_coverage_of_a_mean() -> None:
    """The t interval covers the true mean of bounded scores in 93 to 97 % of simulated runs of 15 samples."""
    rng = random.Random(12)
    hits = 0
    for _ in range(REPEATS):
        hits += covered(0.6, mean_of([rng.betavariate(3, 2) for _ in range(15)]).interval)
    assert 0.93 <= hits / REPEATS <= 0.97


def dialogues(rng: random.Random, n: int) -> list[tuple[int, int]]:
    """Dialogues of different length whose criteria share the assistant's mood of the day; 0.75 on average."""
    found = []
    for _ in range(n):
        size = rng.randint(3, 12)
        mood = rng.betavariate(6, 2)
        found.append((sum(rng.random() < mood for _ in range(size)), size))
    return found


def test_coverage_of_a_pooled_ratio() -> None:
    """The clustered interval covers the true rate; treating criteria as independent would not."""
    rng = random.Random(13)
    clustered = naive = 0
    for _ in range(REPEATS):
        ratio = Ratio()
        found = dialogues(rng, 40)
        for part, whole in found:
            ratio.add(part, whole)
        clustered += covered(0.75, ratio.interval)
        naive += covered(0.75, wilson(sum(p for p, _ in found), sum(w for _, w in found)))
    assert 0.93 <= clustered / REPEATS <= 0.97
    assert naive / REPEATS < 0.92


def test_coverage_after_merging_clusters() -> None:
    """The interval stays honest when there are more clusters than are kept apart."""
    rng = random.Random(14)
    hits, repeats = 0, 1000
    for _ in range(repeats):
        ratio = Ratio(groups=50)
        for part, whole in dialogues(rng, 150):
            ratio.add(part, whole, rng.getrandbits(60))
        hits += covered(0.75, ratio.interval)
    assert 0.93 <= hits / repeats <= 0.97


def test_coverage_of_yes_no_scores_that_share_questions() -> None:
    """Four yes/no scores per question: the interval covers in 93 to 97 % of runs."""
    rng = random.Random(15)
    hits, repeats = 0, 2000
    for _ in range(repeats):
        mean = Mean()
        for question in range(40):
            ease = rng.betavariate(2, 1)
            for _ in range(4):
                mean.add(rng.random() < ease, question)
        hits += covered(2 / 3, mean.interval)
    assert 0.93 <= hits / repeats <= 0.97


@pytest.mark.parametrize("values", [[0.5, 0.5], [0.25] * 4, [50.0] * 3])
def test_scores_that_are_all_alike_are_not_certain(values: list[float]) -> None:
    """Two dialogues of one half each: the interval is as wide as yes and no would make it, not a point."""
    high = 1.0 if max(values) <= 1 else 100.0
    mean = Mean(high=high)
    for value in values:
        mean.add(value)
    assert mean.interval is not None
    low, top = mean.interval
    assert low < values[0] - 0.1 * high
    assert top > values[0] + 0.1 * high
