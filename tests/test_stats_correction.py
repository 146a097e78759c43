"""Corrected scores: the published estimator, what it must never do, and that 95 % means 95 %."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.stats import wilson
from steelyard.stats.correction import Corrected, Units, clusters_for_width, corrected


def units(
    judge: np.ndarray, people: np.ndarray, weight: np.ndarray | None = None, cluster: np.ndarray | None = None
) -> Units:
    """Units of a mean; NaN in `people` is a unit that nobody labelled."""
    labelled = ~np.isnan(people)
    return Units(
        judge=np.stack([judge, np.ones(len(judge))], axis=1),
        people=np.stack([np.where(labelled, people, 0.0), labelled.astype(float)], axis=1),
        weight=labelled.astype(float) if weight is None else weight,
        cluster=np.arange(len(judge)) if cluster is None else cluster,
    )


LABELLED = np.array([1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0], dtype=float)
JUDGED = np.array([1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1], dtype=float)
REST = np.array([1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1], dtype=float)


def example(fixed_trust: float | None = None) -> Corrected:
    people = np.concatenate([LABELLED, np.full(len(REST), np.nan)])
    found = corrected(units(np.concatenate([JUDGED, REST]), people), fixed_trust=fixed_trust)
    assert found is not None
    return found


def test_like_the_authors_own_implementation() -> None:
    """The same estimates as ppi-python 0.2.3 gives for these data: `ppi_mean_pointestimate(Y, F, U, lam=…)`.

    There the judge's mean is taken over unlabelled samples only, here over all; so its λ is 30/42 of ours.
    """
    assert example(fixed_trust=1.0).value == pytest.approx(0.70238095, abs=1e-8)  # lam = 30/42
    assert example(fixed_trust=0.7).value == pytest.approx(0.69166667, abs=1e-8)  # lam = 1/2
    tuned = example()
    assert tuned.value == pytest.approx(0.68392256, abs=2e-3)  # lam tuned there: 0.345, on fewer data
    assert 0 < tuned.trust < 1


def test_without_trust_only_people_count() -> None:
    """λ = 0 is the plain mean of people's labels, with their interval."""
    found = example(fixed_trust=0.0)
    assert found.value == found.people == pytest.approx(LABELLED.mean())


def test_a_useless_judge_is_not_listened_to() -> None:
    """A judge whose labels are noise gets next to no weight; one who is always right gets nearly all."""
    rng = np.random.default_rng(1)
    truth = (rng.random(2000) < 0.7).astype(float)
    people = np.where(np.arange(2000) < 200, truth, np.nan)
    noise = corrected(units((rng.random(2000) < 0.5).astype(float), people))
    perfect = corrected(units(truth, people))
    assert noise is not None
    assert perfect is not None
    assert noise.trust < 0.15
    assert perfect.trust == pytest.approx(1.0)
    assert perfect.value == pytest.approx(truth.mean())
    assert noise.interval is not None
    assert perfect.interval is not None
    assert perfect.interval[1] - perfect.interval[0] < (noise.interval[1] - noise.interval[0]) / 2


def test_labelling_everything_needs_no_judge() -> None:
    """Where people saw it all, their mean stands, whatever the judge said."""
    found = corrected(units(1 - LABELLED, LABELLED))
    assert found is not None
    assert found.value == pytest.approx(LABELLED.mean())


def test_nothing_labelled_is_nothing_known() -> None:
    """No labels, no number; one labelled cluster, a number without an interval."""
    assert corrected(units(JUDGED, np.full(12, np.nan))) is None
    assert corrected(units(np.zeros(0), np.zeros(0))) is None
    lone = corrected(units(JUDGED, np.array([1.0, *[np.nan] * 11])))
    assert lone is not None
    assert lone.interval is None


def test_no_disagreement_seen_is_not_certainty() -> None:
    """Twenty labels that all confirm a judge who finds no fault leave room for faults."""
    people = np.where(np.arange(400) < 20, 1.0, np.nan)
    found = corrected(units(np.ones(400), people))
    assert found is not None
    assert found.value == 1.0
    assert found.interval == pytest.approx(wilson(20, 20))


def test_weights_undo_a_stratified_draw() -> None:
    """Half of the labels from a tenth of the samples: with weights the mean is right, without it is far off."""
    judge = np.concatenate([np.zeros(100), np.ones(900)])
    people = np.full(1000, np.nan)
    people[:50], people[100:150] = 0.0, 1.0
    weight = np.zeros(1000)
    weight[:50], weight[100:150] = 2.0, 18.0
    weighted = corrected(units(judge, people, weight), fixed_trust=0.0)
    naive = corrected(units(judge, people), fixed_trust=0.0)
    assert weighted is not None
    assert naive is not None
    assert (weighted.value, naive.value) == (pytest.approx(0.9), pytest.approx(0.5))


def test_copies_within_a_cluster_are_no_evidence() -> None:
    """Each question judged and labelled five times over gives the interval of once."""
    people = np.concatenate([LABELLED, np.full(len(REST), np.nan)])
    judge = np.concatenate([JUDGED, REST])
    often = corrected(units(np.repeat(judge, 5), np.repeat(people, 5), cluster=np.repeat(np.arange(len(judge)), 5)))
    once = example()
    assert often is not None
    assert often.value == pytest.approx(once.value)
    assert often.clusters == once.clusters
    assert often.interval == pytest.approx(once.interval, abs=0.02)


def test_a_ratio_counts_what_applies() -> None:
    """Units that add nothing to the count (no decidable statement) change neither side."""
    plain = example()
    people = np.concatenate([LABELLED, np.full(len(REST), np.nan)])
    given_units = units(np.concatenate([JUDGED, REST]), people)
    nothing = Units(
        judge=np.concatenate([given_units.judge, np.zeros((0, 2))]),
        people=given_units.people,
        weight=given_units.weight,
        cluster=given_units.cluster,
    )
    assert corrected(nothing) == plain


values = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=2, max_size=50)


@settings(deadline=None)
@given(values)
def test_always_on_the_scale(rows: list[tuple[float, float, bool]]) -> None:
    """Whatever was judged and labelled: low ≤ value ≤ high, inside the scale, nothing that is not a number."""
    judge = np.array([row[0] for row in rows])
    people = np.array([row[1] if row[2] else math.nan for row in rows])
    found = corrected(units(judge, people))
    if not any(row[2] for row in rows):
        assert found is None
        return
    assert found is not None
    assert 0 <= found.value <= 1
    if found.interval is not None:
        assert 0 <= found.interval[0] <= found.value + 1e-9
        assert found.value - 1e-9 <= found.interval[1] <= 1


def test_more_labels_for_a_narrower_interval() -> None:
    """As many labels as are said to be needed do give about the width that was wanted."""
    rng = np.random.default_rng(4)
    truth = (rng.random(20_000) < 0.8).astype(float)
    judge = np.where(rng.random(20_000) < 0.1, 1 - truth, truth)

    def labelled(n: int) -> Corrected:
        found = corrected(units(judge, np.where(np.arange(20_000) < n, truth, np.nan)))
        assert found is not None
        return found

    needed = clusters_for_width(labelled(100), 0.06)
    assert needed is not None
    low, high = labelled(needed).interval or (0, 1)
    assert 0.048 <= high - low <= 0.072


def test_some_widths_are_out_of_reach() -> None:
    """A run of 42 samples cannot give an interval of a hundredth, however many of them are labelled."""
    assert clusters_for_width(example(), 0.01) is None


# --- does 95 % mean 95 %? --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labelled", "n", "right", "over_flags", "misses"),
    [(20, 200, 0.8, 0.1, 0.1), (50, 500, 0.9, 0.2, 0.05), (100, 1000, 0.95, 0.1, 0.02), (100, 100, 0.9, 0.1, 0.1)],
)
def test_coverage(labelled: int, n: int, right: float, over_flags: float, misses: float) -> None:
    """The corrected interval holds the truth in 93 to 97 % of simulated runs; the judge's own mean does not."""
    rng = np.random.default_rng(31)
    repeats, hits, bias = 1000, 0, 0.0
    for _ in range(repeats):
        truth = rng.random(n) < right
        judge = np.where(truth, rng.random(n) >= over_flags, rng.random(n) < misses).astype(float)
        found = corrected(units(judge, np.where(np.arange(n) < labelled, truth, np.nan)))
        assert found is not None
        assert found.interval is not None
        hits += found.interval[0] <= right <= found.interval[1]
        bias += (found.value - right) / repeats
    assert 0.93 <= hits / repeats <= 0.97
    assert abs(bias) < 0.005


def test_coverage_where_samples_share_questions() -> None:
    """Three samples a question that succeed or fail together: by question it covers, sample by sample it would not."""
    rng = np.random.default_rng(32)
    repeats, by_question, by_sample = 800, 0, 0
    for _ in range(repeats):
        ease = np.repeat(rng.beta(2.1, 0.9, size=200), 3)
        truth = rng.random(600) < ease
        judge = np.where(truth, rng.random(600) >= 0.15, rng.random(600) < 0.1).astype(float)
        people = np.where(np.arange(600) < 180, truth, np.nan)
        for cluster in (np.repeat(np.arange(200), 3), np.arange(600)):
            low, high = corrected(units(judge, people, cluster=cluster)).interval  # type: ignore[union-attr,misc]
            covered = low <= 0.7 <= high
            by_question += covered and cluster[1] == 0
            by_sample += covered and cluster[1] == 1
    assert 0.93 <= by_question / repeats <= 0.97
    assert by_sample < by_question


def test_rare_disagreement_is_never_too_sure() -> None:
    """Where people hardly ever contradict the judge, the interval may be wide, but it covers."""
    rng = np.random.default_rng(33)
    repeats, hits = 500, 0
    for _ in range(repeats):
        truth = rng.random(300) < 0.95
        judge = np.where(truth, rng.random(300) >= 0.02, rng.random(300) < 0.05).astype(float)
        found = corrected(units(judge, np.where(np.arange(300) < 30, truth, np.nan)))
        hits += found.interval[0] <= 0.95 <= found.interval[1]  # type: ignore[union-attr,index]
    assert hits / repeats >= 0.93
