"""The figures of the agreement bench, counted by hand, and the lexical baseline beside them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import ScriptedJudge
from steelyard.records import Ask

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "bench"), str(ROOT)]

from agreement import cases, lexical, measures, preferences  # noqa: E402

# --- measures --------------------------------------------------------------------------------------

OUTCOMES = st.lists(
    st.builds(
        measures.Outcome,
        truth=st.sampled_from(measures.SUPPORT),
        said=st.sampled_from(measures.SUPPORT),
        document=st.sampled_from("abcdefgh"),
        abstained=st.just(False),
        score=st.floats(0, 1).map(lambda score: round(score, 1)),
    ),
    min_size=2,
    max_size=40,
).filter(lambda found: len({outcome.truth for outcome in found}) == 2)


@settings(max_examples=20, deadline=None)
@given(OUTCOMES)
def test_figures_are_those_counted_by_hand(outcomes: list[Any]) -> None:
    """Balanced accuracy, macro-F1 and AUC are what counting item by item and pair by pair gives."""
    found = measures.support_figures(outcomes)
    recalls, f1s = [], []
    for label in measures.SUPPORT:
        hits = sum(o.truth == o.said == label for o in outcomes)
        recalls.append(hits / sum(o.truth == label for o in outcomes))
        f1s.append(2 * hits / (sum(o.truth == label for o in outcomes) + sum(o.said == label for o in outcomes)))
    assert found["balanced accuracy"].value == pytest.approx(sum(recalls) / 2)
    assert found["macro-F1"].value == pytest.approx(sum(f1s) / 2)
    yes = [o.score for o in outcomes if o.truth == "supported"]
    no = [o.score for o in outcomes if o.truth != "supported"]
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in yes for b in no]
    assert found["AUC"].value == pytest.approx(sum(wins) / len(wins))
    for figure in found.values():
        assert figure.n == len(outcomes)
        if figure.low is not None:
            assert 0 <= figure.low <= figure.high <= 1


def test_an_interval_counts_documents_not_rows() -> None:
    """Ten copies of one document's rows say no more than that document."""
    once = [measures.Outcome("supported", "supported" if at % 3 else "not supported", f"d{at}") for at in range(30)] + [
        measures.Outcome("not supported", "not supported", f"n{at}") for at in range(30)
    ]
    apart, together = measures.support_figures(once), measures.support_figures(once * 10)
    assert together["accuracy"].low == pytest.approx(apart["accuracy"].low, abs=0.02)
    assert together["accuracy"].n == 600


def test_decided_figures_leave_abstentions_out() -> None:
    """Two of three decided and right, one abstained: 2/3 over all, 1 over the decided."""
    outcomes = [
        measures.Outcome("supported", "supported", "a"),
        measures.Outcome("not supported", "not supported", "b"),
        measures.Outcome("supported", "not supported", "c", abstained=True),
    ]
    found = measures.support_figures(outcomes)
    assert found["accuracy"].value == pytest.approx(2 / 3)
    assert found["accuracy, decided"].value == 1
    assert found["abstained"].value == pytest.approx(1 / 3)
    assert found["balanced accuracy"].value == pytest.approx(0.75)


def test_no_probability_no_auc() -> None:
    """AUC is left out unless every item has a score and both labels occur."""
    outcomes = [measures.Outcome("supported", "supported", "a", score=0.9), measures.Outcome("not supported", "x", "b")]
    assert measures.auc(outcomes).value is None
    assert measures.auc([]).value is None
    assert "AUC" not in measures.support_figures([outcomes[0]])


def test_a_whole_is_as_probable_as_its_weakest_part() -> None:
    """Scores of several sentences: the least; none if one is missing."""
    said = [cases.Said("supported", supports=0.9), cases.Said("supported", supports=0.4)]
    assert cases.score_of(said) == 0.4
    assert cases.score_of([*said, cases.Said("supported")]) is None


def test_weighted_auc_by_hand() -> None:
    """Two right pairs and one tie out of four; a document drawn twice counts twice."""
    scores, truths = np.array([0.1, 0.5, 0.5, 0.9]), np.array([False, False, True, True])
    assert measures.weighted_auc(scores, truths, np.array([[1, 1, 1, 1], [1, 1, 1, 0]])).tolist() == [0.875, 0.75]


# --- the baseline ----------------------------------------------------------------------------------


def test_lexical_shares() -> None:
    """Words in English, pairs of characters in Chinese, full-width folded."""
    assert lexical.share("The mill grinds oats", ["the mill grinds rye"]) == 0.75
    assert lexical.share("磨坊很大", ["磨坊很小"]) == pytest.approx(2 / 3)
    assert lexical.share("２０ pages", ["20 pages"]) == 1
    assert lexical.share("…", ["20 pages"]) == 0


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=30))
def test_the_threshold_is_the_best_one(pairs: list[tuple[int, bool]]) -> None:
    """No other threshold has a better balanced accuracy on the rows it was chosen on."""
    scores, truths = [score / 10 for score, _ in pairs], [truth for _, truth in pairs]

    def balanced(bound: float) -> float:
        hits = sum(score >= bound for score, truth in zip(scores, truths, strict=True) if truth)
        passed = sum(score < bound for score, truth in zip(scores, truths, strict=True) if not truth)
        return (hits / sum(truths) + passed / (len(truths) - sum(truths))) / 2

    if len(set(truths)) == 2:
        best = balanced(lexical.threshold(scores, truths))
        assert best >= max(balanced(bound / 10) for bound in range(12)) - 1e-9


# --- which of two answers is better ----------------------------------------------------------------


def write_pairs(folder: Path) -> None:
    """Four questions with two raters each; the second answer is the fuller one in the first two."""
    full, thin = "The mill grinds rye. It was built in 1912.", "The mill is red."
    lines = []
    for at in range(4):
        first, second = (thin, full) if at < 2 else (full, thin)
        for rater in (1, 2):
            rating = (rater if at < 2 else -rater) if at else 0
            labels = {f"{asked}_label": rating for asked in preferences.ASKED}
            answers = {f"answer_{n}": {"response": text} for n, text in ((1, first), (2, second))}
            lines.append(
                {"id": f"rc-{at}-{rater}", "query": f"What of mill {at}?", "gt_answer": full, **labels, **answers}
            )
    (folder / preferences.FILE).write_text("\n".join(map(json.dumps, lines)), "utf-8")


def scorecard_by_words(ask: Ask) -> dict[str, Any]:
    """A judge that supports and covers what the reference says word for word."""
    reference = "The mill grinds rye. It was built in 1912."
    if ask.task == "atomic.split":
        return {"atoms": [{"id": 1, "text": ask.data.answer}]}
    if ask.task == "scorecard.key_points":
        return {"key_points": [{"id": 1, "text": "grinds rye"}, {"id": 2, "text": "built in 1912"}]}
    said = " ".join(part.text for part in ask.data.sentences)
    return {
        "sentences": [
            {
                "id": s.id,
                "on_topic": True,
                "support": "supported" if s.text in reference else "unsupported",
                "quote": s.text,
            }
            for s in ask.data.sentences
        ],
        "key_points": [
            {"id": p.id, "label": "covered" if p.text in said else "missing", "depth": "adequate"}
            for p in ask.data.key_points
        ],
        "atoms": [{"id": atom.id, "label": "undetermined"} for atom in ask.data.atoms],
    }


def test_preferences_are_held_against_the_mean_of_the_raters(tmp_path: Path) -> None:
    """Raters of one pair are put together, each answer is judged once, and r is what it is by hand."""
    write_pairs(tmp_path)
    found = preferences.comparisons(tmp_path)
    assert [comparison.ratings["overall"] for comparison in found] == [(0, 0), (1, 2), (-1, -2), (-1, -2)]
    judge = ScriptedJudge(scorecard_by_words)
    result = asyncio.run(preferences.preferences(found, judge, 2, lambda done, total: None))
    differences, means = [100.0, 100.0, -100.0, -100.0], [0.0, 1.5, -1.5, -1.5]
    wanted = np.corrcoef(differences, means)[0, 1]
    assert result["correlations"]["completeness"]["value"] == pytest.approx(wanted, abs=1e-4)
    assert result["correlations"]["correctness"]["n"] == 4
    assert result["people"]["overall"] == pytest.approx(np.corrcoef([0, 1, -1, -1], [0, 2, -2, -2])[0, 1], abs=1e-4)


def test_no_variation_no_correlation() -> None:
    """A judge that finds every pair equal has no r, rather than an r of 0 or NaN."""
    assert preferences.correlation([(0.0, 1.0), (0.0, 2.0), (0.0, -1.0)], ["a", "b", "c"]).value is None
    assert preferences.correlation([], []).value is None
    assert preferences.score_of({"completeness": None, "faithfulness_soft": 50}, "overall") is None
    assert preferences.score_of({"completeness": 100, "faithfulness_soft": 50}, "overall") == 75
