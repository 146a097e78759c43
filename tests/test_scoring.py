"""Scores are exact, stay in their bands, and are null where there is nothing to count."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.protocols.counts import (
    ROWS,
    AtomCounts,
    atomic_scores,
    dialogue_scores,
    grounded_scores,
    scorecard_scores,
    shallow,
    turn_rates,
    turn_satisfied,
)
from steelyard.protocols.scoring import band, band_of_score, band_score, composite, conjunction, plain, ratio
from steelyard.records import AnyItem, Atom, Check, Criterion, KeyPoint, Sentence

ratios = st.fractions(min_value=0, max_value=1)


def atoms(*labels: str, levels: Iterable[int] = ()) -> list[Atom]:
    graded = list(levels) or [1] * len(labels)
    made: list[Any] = [
        {"id": i, "text": "x", "label": label, "level": level}
        for i, (label, level) in enumerate(zip(labels, graded, strict=True), start=1)
    ]
    return [Atom(**fields) for fields in made]


def key_points(*points: tuple[str, str | None]) -> list[AnyItem]:
    made: list[Any] = [
        {"id": i, "text": "x", "label": label, "depth": depth} for i, (label, depth) in enumerate(points)
    ]
    return [KeyPoint(**fields) for fields in made]


def sentence(on_topic: Any, support: Any) -> Sentence:
    return Sentence(id=1, text="x", on_topic=on_topic, support=support)


def turns(*labels_of_turns: str) -> list[Criterion]:
    """One word per turn, one letter per criterion: s satisfied, v violated, u undetermined, - unjudged."""
    names: dict[str, Any] = {"s": "satisfied", "v": "violated", "u": "undetermined", "-": "unjudged"}
    return [
        Criterion(id=id, text="x", turn=turn, validity="valid", label=names[letter])
        for turn, word in enumerate(labels_of_turns, start=1)
        for id, letter in enumerate(word, start=1)
    ]


# --- bands -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("0", 0), ("0.05", 5), ("2/3", 66), ("0.85", 85), ("8/9", 88), ("0.89", 88),
        ("0.895", 89), ("0.8999", 89), ("0.9", 90), ("1", 100), ("0.1", 10), ("0.95", 95), ("0.0999999", 9),
    ],
)  # fmt: skip
def test_band_goldens(value: str, score: int) -> None:
    """The scores that the specification works out by hand."""
    assert band_score(Fraction(value)) == score


@given(ratios)
def test_score_lies_inside_its_band(value: Fraction) -> None:
    """A score lies between 0 and 100, inside the range of the band that its ratio falls into."""
    k, score = band(value), band_score(value)
    assert 10 * k <= score <= (100 if k == 9 else 10 * k + 9)
    assert band_of_score(score) == k


@given(ratios, ratios)
def test_score_never_falls_as_the_ratio_rises(a: Fraction, b: Fraction) -> None:
    """A better ratio never has a lower score."""
    assert (band_score(a) <= band_score(b)) if a <= b else (band_score(a) >= band_score(b))


@given(ratios)
def test_score_agrees_with_an_independent_formula(value: Fraction) -> None:
    """Twice the score in integers, rounded half up, is what the table of bands says."""
    n, d = value.numerator, value.denominator
    k = min(10 * n // d, 9)
    width = 10 if k == 9 else 9
    assert band_score(value) == (2 * (10 * k * d + (10 * n - k * d) * width) + d) // (2 * d)


@pytest.mark.parametrize("value", [Fraction(-1, 10**9), Fraction(10**9 + 1, 10**9), Fraction(2)])
def test_what_is_no_ratio_is_refused(value: Fraction) -> None:
    """A ratio outside [0, 1] is a bug of the caller and says so."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        band(value)


def test_numbers_stay_whole_where_they_are() -> None:
    """A fraction becomes an int where it can, else the nearest float; nothing stays nothing."""
    assert plain(Fraction(4, 2)) == 2
    assert isinstance(plain(Fraction(1)), int)
    assert plain(Fraction(1, 3)) == 1 / 3
    assert plain(None) is None
    assert ratio(0, 0) is None
    assert ratio(0, 3) == 0


# --- atomic ----------------------------------------------------------------------------------------


def test_atom_rates() -> None:
    """Accuracy ignores what could not be determined; the strict one does not; neither counts the rest."""
    found = atoms("correct", "correct", "wrong", "undetermined", "exempt", "unjudged")
    assert AtomCounts.of(found) == (2, 1, 1, 1, 1)
    assert atomic_scores(found, 0) == {
        "accuracy": 2 / 3,
        "accuracy_strict": 0.5,
        "coverage": 0.75,
        "fallback": 0,
    }


@pytest.mark.parametrize("labels", [(), ("exempt",), ("unjudged", "exempt")])
def test_nothing_to_check_is_null(labels: tuple[str, ...]) -> None:
    """Without a checkable atom there is no accuracy: null, neither 0 nor 1."""
    assert atomic_scores(atoms(*labels), None) == {
        "accuracy": None, "accuracy_strict": None, "coverage": None, "fallback": None,
    }  # fmt: skip


def test_only_undetermined_atoms() -> None:
    """What could never be determined has no accuracy, and a coverage of 0."""
    scores = atomic_scores(atoms("undetermined", "undetermined"), 1)
    assert scores == {"accuracy": None, "accuracy_strict": 0, "coverage": 0, "fallback": 1}


@given(st.lists(st.sampled_from(["correct", "wrong", "undetermined", "exempt", "unjudged"])))
def test_rates_hang_together(labels: list[str]) -> None:
    """strict = accuracy · coverage, exactly, wherever all three exist."""
    counts = AtomCounts.of(atoms(*labels))
    assert sum(counts) == len(labels)
    if counts.accuracy is not None and counts.coverage is not None:
        assert counts.accuracy_strict == counts.accuracy * counts.coverage


# --- grounded --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "result"),
    [
        ((1, 1, 1), 1), ((1, 0, 1), 0), ((0, "unjudged"), 0), ((1, "unjudged"), None),
        ((1, None), None), ((0, None), 0), ((), None), (("unjudged",), None),
    ],
)  # fmt: skip
def test_conjunction(labels: tuple[Any, ...], result: int | None) -> None:
    """One 0 settles it; otherwise an unknown leaves it unknown; nothing is not a pass."""
    assert conjunction(labels) == result


def test_grounded_gate() -> None:
    """Accuracy is the AND of relevance and truthfulness."""

    def checks(relevance: list[Any], truthfulness: list[Any]) -> list[Check]:
        groups = [("relevance", label) for label in relevance] + [("truthfulness", label) for label in truthfulness]
        return [Check(id=i, text="x", name="x", group=g, label=label) for i, (g, label) in enumerate(groups)]

    assert grounded_scores(checks([1] * 5, [1] * 3)) == {"relevance": 1, "truthfulness": 1, "accuracy": 1}
    assert grounded_scores(checks([1] * 5, [1, 0, 1])) == {"relevance": 1, "truthfulness": 0, "accuracy": 0}
    assert grounded_scores(checks([1, "unjudged"], [0])) == {"relevance": None, "truthfulness": 0, "accuracy": 0}
    assert grounded_scores(checks([1, "unjudged"], [1])) == {"relevance": None, "truthfulness": 1, "accuracy": None}
    assert grounded_scores([]) == {"relevance": None, "truthfulness": None, "accuracy": None}


# --- scorecard -------------------------------------------------------------------------------------


def test_scorecard_counts_each_metric() -> None:
    """Each metric reads its own label; a sentence without a claim is no part of faithfulness."""
    items: list[AnyItem] = [
        sentence("on_topic", "supported"),
        sentence("on_topic", "partial"),
        sentence("off_topic", "no_claim"),
        *key_points(("covered", "deep"), ("partial", "adequate"), ("missing", None), ("unjudged", None)),
        *atoms("correct", "wrong", "exempt", "undetermined"),
    ]
    assert {name: metric.ratio(items) for name, metric in ROWS.items()} == {
        "relevance": Fraction(2, 3),
        "completeness": Fraction(1, 2),
        "accuracy": Fraction(1, 2),
        "faithfulness": Fraction(1, 2),
        "faithfulness_soft": Fraction(3, 4),
    }
    assert scorecard_scores(items) == {
        "relevance": 66, "completeness": 50, "accuracy": 50, "faithfulness": 50, "faithfulness_soft": 75,
    }  # fmt: skip


def test_scorecard_without_items_is_null() -> None:
    """Nothing judged, nothing scored; yet an empty answer is off topic and covers nothing."""
    assert set(scorecard_scores([]).values()) == {None}
    assert scorecard_scores([], empty_answer=True) == {
        "relevance": 0, "completeness": 0, "accuracy": None, "faithfulness": None, "faithfulness_soft": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("points", "is_shallow", "score"),
    [
        ([("covered", "bare")] * 2 + [("covered", "deep")], True, 89),
        ([("covered", "bare")] * 2 + [("covered", "deep")] * 2, False, 100),
        ([("covered", "bare")] + [("missing", None)] * 3, True, 25),
        ([("partial", "bare")] * 2 + [("covered", "deep")], True, 66),
        ([("missing", None)] * 3, False, 0),
        ([("covered", None)] * 3, False, 100),
        ([("covered", "bare")] * 9 + [("covered", "deep")] * 9 + [("missing", None)], False, 95),
    ],
)
def test_shallow_cap(points: list[tuple[str, str | None]], is_shallow: bool, score: int) -> None:
    """More than half of the hits bare: flagged, and at most 89; half is not more than half; a miss is no hit."""
    items = key_points(*points)
    assert shallow(items) is is_shallow
    assert scorecard_scores(items)["completeness"] == score


def test_composite_is_exact_and_never_partial() -> None:
    """The weighted mean has no float drift, and is null as soon as one weighted metric is."""
    assert composite({"a": 70, "b": 80, "c": 90}, {"a": 0.1, "b": 0.1, "c": 0.1}) == 80
    assert composite({"a": 66, "b": 100}, {"a": 2, "b": 1}) == 232 / 3
    assert composite({"a": 66, "b": None}, {"a": 1, "b": 1}) is None
    assert composite({"a": 66, "b": None}, {"a": 1, "b": 0}) == 66
    assert composite({"a": 66}, {}) is None
    assert composite({"a": 66}, {"a": 0}) is None


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 100), st.integers(1, 50)), min_size=1))
def test_composite_lies_between_its_parts(parts: dict[str, tuple[int, int]]) -> None:
    """A mean is never outside what it is the mean of."""
    scores = {name: score for name, (score, _) in parts.items()}
    mean = composite(scores, {name: weight / 10 for name, (_, weight) in parts.items()})
    assert mean is not None
    assert min(scores.values()) <= mean <= max(scores.values())


# --- dialogue --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "rates"),
    [
        (("ss", "s"), (1, 1, 1)),
        (("ss", "sv", "s"), (4 / 5, 2 / 3, 1 / 3)),
        (("v", "s"), (0.5, 0.5, 0)),
        (("su", "u", "s"), (1, 1, 1)),
        (("u",), (None, None, None)),
        (("s-", "s", "v"), (2 / 3, 0.5, 0.5)),
        (("v-", "s"), (0.5, 0.5, 0)),
        (("s", "v", "s", "s"), (0.75, 0.75, 0.25)),
        (("-",), (None, None, None)),
        ((), (None, None, None)),
    ],
    ids=repr,
)
def test_turn_rates(words: tuple[str, ...], rates: tuple[float | None, ...]) -> None:
    """不确定 counts nowhere; an open turn is unknown unless a violation settles it; SSR is the leading run."""
    scores = dialogue_scores(turns(*words))
    assert (scores["csr"], scores["isr"], scores["ssr"]) == rates


def test_turn_order_is_by_number() -> None:
    """The leading run follows the turn numbers, not the order in which criteria are listed."""
    assert turn_rates(turns("s", "v", "s")[::-1]) == turn_rates(turns("s", "v", "s"))


@given(st.lists(st.text("svu-", min_size=1, max_size=4), max_size=6))
def test_rates_are_ordered(words: list[str]) -> None:
    """The stable share never exceeds the fully satisfied share, and all lie in [0, 1]."""
    rates = turn_rates(turns(*words))
    assert rates.leading_turns <= rates.full_turns <= rates.known_turns <= len(words)
    assert rates.satisfied <= rates.decided
    assert rates.isr is None or rates.ssr is None or 0 <= rates.ssr <= rates.isr <= 1
    known = [word for word in words if turn_satisfied(turns(word)) is not None]
    assert rates.known_turns == len(known)
