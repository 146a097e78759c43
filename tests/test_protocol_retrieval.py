"""`retrieval`: labels of passages and key points, scores counted from them, and one cause a sample."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeding import RAG, Fed, changed, judge, respond
from steelyard.errors import ConfigError
from steelyard.protocols import get_protocol
from steelyard.protocols.retrieval_counts import GAINS, ndcg, reciprocal_rank, retrieval_scores
from steelyard.records import CustomItem, RagSample, Unjudged

DOWN = Unjudged(reason="timeout", detail="no answer in 60 s")
PARK, READING_ROOM = RAG.references
WITH_REFERENCE = RAG.model_copy(update={"key_points": None, "reference_answer": "自习室在第二层，有120个座位。"})
WITHOUT_POINTS = RAG.model_copy(update={"key_points": ()})


def points(found: str = "found", in_answer: str = "stated", **more: Any) -> dict[str, Any]:
    said = {"passages": [2], "quote": READING_ROOM} if found == "found" else {"passages": [], "quote": None}
    return {"key_points": {1: {"label": found, "in_answer": in_answer, **said, **more}}}


def passages(*labels: str) -> dict[str, Any]:
    """Each label is `answers`, `irrelevant+used` …"""
    said = (label.partition("+") for label in labels)
    return {"retrieved": {id: {"label": a, "use": b or "unused"} for id, (a, _, b) in enumerate(said, start=1)}}


def items(fed: Fed, kind: str) -> list[Any]:
    return [item for item in fed.verdict.items if item.kind == kind]


def cause(fed: Fed) -> str | None:
    return next((item.label for item in items(fed, "cause")), None)


# --- what is asked ---------------------------------------------------------------------------------


def test_one_call_with_key_points_and_two_without() -> None:
    """Given key points cost nothing; else they are drawn from the reference answer, by the very ask of scorecard."""
    assert judge("retrieval", RAG).tasks == ["retrieval.judge"]
    fed = judge("retrieval", WITH_REFERENCE)
    assert fed.tasks == ["scorecard.key_points", "retrieval.judge"]
    shared = next(ask for ask in judge("scorecard", WITH_REFERENCE).asks if ask.task == "scorecard.key_points")
    assert fed.asks[0].key == shared.key
    assert [point.keypoints_source for point in items(fed, "point")] == ["derived", "derived"]


def test_a_quote_that_no_passage_holds_is_asked_for_again() -> None:
    """A point that is found must be quoted; if it is not, the label stands and is flagged."""
    wrong = changed(**points(quote="自习室在顶楼"))
    fed = judge("retrieval", RAG, wrong, wrong)
    assert fed.asks[1].again
    assert fed.asks[1].again.unverified == ("key_points 1",)
    assert fed.asks[1].data.passages == RAG.references, "a point can only be looked for where all passages are shown"
    (point,) = items(fed, "point")
    assert (point.label, point.evidence.verified, point.flags) == ("found", False, ("evidence_unverified",))


def test_the_passages_of_a_point_are_real_ones() -> None:
    """Numbers of passages that do not exist are dropped, and the one that holds the quote is there in any case."""
    (point,) = items(judge("retrieval", RAG, changed(**points(passages=[0, 7, -1]))), "point")
    assert point.passages == [2]


# --- scores ----------------------------------------------------------------------------------------


def test_scores_of_one_sample() -> None:
    """Two passages, the second answers and is used: every score by hand."""
    fed = judge("retrieval", RAG, changed(**passages("irrelevant", "answers+used")))
    noise = Fraction(len(PARK), len(PARK) + len(READING_ROOM))
    assert fed.verdict.scores == {
        "recall": 1, "precision": 0.5, "precision_at_k": 0.5, "ndcg": pytest.approx(1 / math.log2(3)), "mrr": 0.5,
        "noise": float(noise), "use": 1,
    }  # fmt: skip
    first = judge("retrieval", RAG, changed(**passages("irrelevant", "answers+used")), k=1)
    assert first.verdict.scores["precision_at_k"] == 0


def test_k_is_a_number_of_passages() -> None:
    """`k` is at least 1."""
    with pytest.raises(ConfigError, match="option k of retrieval"):
        get_protocol("retrieval").parse_options({"k": 0})


@given(st.lists(st.sampled_from(sorted(GAINS)), max_size=12))
def test_ranking_scores_against_their_definition(labels: list[str]) -> None:
    """nDCG and MRR are those of the textbook, nDCG is 1 exactly for the best order, and null without any gain."""
    gains = [GAINS[label] for label in labels]
    best = sorted(gains, reverse=True)
    found, first = ndcg(labels), reciprocal_rank(labels)
    if not any(gains):
        assert found is None
        assert first == (0 if labels else None)
        return
    dcg, ideal = (sum(gain / math.log2(at + 2) for at, gain in enumerate(some)) for some in (gains, best))
    assert found == pytest.approx(dcg / ideal)
    assert (found == 1) == (gains == best)
    assert first == Fraction(1, 1 + next(at for at, gain in enumerate(gains) if gain))


def test_an_open_label_leaves_a_ranking_open() -> None:
    """A passage without a label could stand anywhere in the order; precision is of those that have one."""
    gone = changed(retrieved={1: None})
    fed = judge("retrieval", RAG, gone, gone)
    scores = fed.verdict.scores
    assert (scores["ndcg"], scores["mrr"], scores["precision"]) == (None, None, 1)
    assert get_protocol("retrieval").is_open("ndcg", fed.verdict)
    assert cause(fed) == "unjudged"
    assert fed.verdict.status == "partial"


def test_people_are_counted_like_judges() -> None:
    """The scores of a verdict follow from its items, its flags and k, so labels by people give scores too."""
    protocol = get_protocol("retrieval")
    for fed in (judge("retrieval", RAG, k=1), judge("retrieval", WITH_REFERENCE), judge("retrieval", WITHOUT_POINTS)):
        assert protocol.rescore
        assert protocol.rescore(fed.verdict) == fed.verdict.scores
    items = [CustomItem(kind="point", id=id, text="p", label=label) for id, label in enumerate(("found", "not_found"))]
    assert retrieval_scores(items, 3)["recall"] == 0.5


# --- edge cases ------------------------------------------------------------------------------------


def test_without_passages_nothing_was_retrieved() -> None:
    """No score, recall included: nothing is 0 by accident. What the answer lacks or invents is still told."""
    fed = judge("retrieval", RAG.model_copy(update={"references": ()}), changed(**points("not_found", "contradicted")))
    assert set(fed.verdict.scores.values()) == {None}
    assert "no_references" in fed.verdict.flags
    assert cause(fed) == "made_up"
    mistaken = judge("retrieval", RAG.model_copy(update={"references": ()}), changed(**points("found")))
    assert [point.label for point in items(mistaken, "point")] == ["not_found"], "code knows better than the judge"
    absent = changed(**points("not_found", "absent"))
    assert cause(judge("retrieval", RAG.model_copy(update={"references": ()}), absent)) == "retriever_miss"


def test_points_from_the_passages_say_nothing_about_recall() -> None:
    """Without key points and reference answer they are drawn from the passages, which hold them by definition."""
    fed = judge("retrieval", RAG.model_copy(update={"key_points": None}))
    assert fed.verdict.scores["recall"] is None
    assert fed.verdict.scores["precision"] == 1
    assert "points_from_passages" in fed.verdict.flags
    assert not get_protocol("retrieval").is_open("recall", fed.verdict)
    switched_off = judge("retrieval", RAG.model_copy(update={"key_points": None}), derive_key_points=False)
    assert switched_off.tasks == ["retrieval.judge"]
    assert switched_off.verdict.scores["recall"] is None


def test_without_a_question_nothing_is_relevant_to_it() -> None:
    """Relevance and what is counted from it are null; recall and the use of each passage remain."""
    fed = judge("retrieval", RAG.model_copy(update={"question": ""}))
    scores = fed.verdict.scores
    assert scores["recall"] == 1
    assert {scores[name] for name in ("precision", "precision_at_k", "ndcg", "mrr", "noise", "use")} == {None}
    assert [(getattr(item, "label", None), item.use) for item in items(fed, "passage")] == [(None, "used")] * 2
    assert (fed.verdict.status, cause(fed)) == ("judged", "no_failure")


def test_an_empty_answer_uses_nothing() -> None:
    """The passages are judged all the same; what they hold was not used, and use itself is null."""
    empty = RAG.model_copy(update={"answer": " "})
    fed = judge("retrieval", empty, changed(**points(in_answer="stated"), refuses=True))
    assert (fed.verdict.scores["precision"], fed.verdict.scores["use"]) == (1, None)
    assert [point.in_answer for point in items(fed, "point")] == ["absent"], "code knows better than the judge"
    assert cause(fed) == "ignored"
    assert cause(judge("retrieval", empty, changed(**points("not_found")))) == "retriever_miss"


def test_nothing_to_ask_about_costs_nothing() -> None:
    """Without passages and key points there is no call, no score and no cause."""
    fed = judge("retrieval", RagSample(id="x", question="?", answer="Yes."))
    assert (fed.asks, fed.verdict.items, fed.verdict.status) == ([], (), "judged")
    assert set(fed.verdict.scores.values()) == {None}


def test_blank_passages_keep_their_numbers() -> None:
    """A blank passage is not judged, and the others are called by their place in the sample."""
    fed = judge("retrieval", RAG.model_copy(update={"references": (PARK, " ", READING_ROOM)}))
    assert [item.id for item in items(fed, "passage")] == [1, 3]


def test_a_failed_judge_blames_nobody() -> None:
    """No reply: all is open, the sample failed, and no cause is told."""
    fed = judge("retrieval", RAG, otherwise=DOWN)
    assert (fed.verdict.status, cause(fed)) == ("failed", "unjudged")
    assert set(fed.verdict.scores.values()) == {None}
    without_points = judge("retrieval", WITH_REFERENCE, DOWN)
    assert without_points.verdict.status == "partial"
    assert "unjudged:key_points:timeout" in without_points.verdict.flags
    assert cause(without_points) == "unjudged", "what the answer should have said is not known"


# --- blame -----------------------------------------------------------------------------------------

BLAMED = [
    ("no_failure", points(), passages("irrelevant", "answers+used")),
    ("no_failure", points("not_found"), passages("irrelevant", "irrelevant")),  # right from its own knowledge
    ("retriever_miss", points("not_found", "absent"), passages("irrelevant", "irrelevant")),
    ("ignored", points("found", "absent"), passages("irrelevant", "answers")),
    ("ignored", points("found", "contradicted"), passages("irrelevant", "answers")),
    ("misread", points("found", "contradicted"), passages("irrelevant", "answers+used")),
    ("misread", points("found", "contradicted"), passages("irrelevant+used", "answers+used")),
    ("noise_followed", points("found", "contradicted"), passages("irrelevant+used", "answers")),
    ("noise_followed", points("not_found", "contradicted"), passages("irrelevant+used", "irrelevant")),
    ("made_up", points("not_found", "contradicted"), passages("irrelevant", "irrelevant")),
    ("made_up", points("not_found", "contradicted"), passages("helps+used", "irrelevant")),
]


@pytest.mark.parametrize(("expected", "of_points", "of_passages"), BLAMED)
def test_one_cause_a_sample(expected: str, of_points: dict[str, Any], of_passages: dict[str, Any]) -> None:
    """Whose fault it is follows from labels alone."""
    assert cause(judge("retrieval", RAG, changed(**of_points, **of_passages))) == expected


@pytest.mark.parametrize(
    ("expected", "of_points", "of_passages"),
    [
        ("wrong_refusal", points("found", "absent"), passages("irrelevant", "helps")),
        ("wrong_refusal", points("not_found", "absent"), passages("irrelevant", "answers")),
        ("right_refusal", points("not_found", "absent"), passages("irrelevant", "helps")),
        ("right_refusal", points("not_found", "stated"), passages("irrelevant", "irrelevant")),
    ],
)
def test_refusals(expected: str, of_points: dict[str, Any], of_passages: dict[str, Any]) -> None:
    """A refusal is wrong where a passage answers, or the passages together hold every key point."""
    fed = judge("retrieval", RAG, changed(**of_points, **of_passages, refuses=True))
    assert cause(fed) == expected
    assert "fallback" in fed.verdict.flags


def test_where_there_is_no_answer_recall_is_null() -> None:
    """A reference answer that says that nothing is known can be found in no passage; recall is not 0 for that."""
    fed = judge("retrieval", RAG, changed(**points("not_found"), **passages("irrelevant", "irrelevant"), refuses=True))
    assert fed.verdict.scores["recall"] is None
    assert "unanswerable" in fed.verdict.flags


@pytest.mark.parametrize(
    ("expected", "of_passages"),
    [
        ("no_failure", passages("irrelevant", "helps+used")),
        ("ignored", passages("irrelevant", "answers")),
        ("noise_followed", passages("irrelevant+used", "answers")),
        ("made_up", passages("irrelevant", "irrelevant")),
    ],
)
def test_blame_without_key_points(expected: str, of_passages: dict[str, Any]) -> None:
    """Then the passages alone tell whether the answer could and did draw on one that is worth it."""
    assert cause(judge("retrieval", WITHOUT_POINTS, changed(**of_passages))) == expected


def test_what_is_wrong_is_told_before_what_is_missing() -> None:
    """Of several causes in one sample the order decides, not the number of points; those that show it are named."""
    sample = RAG.model_copy(update={"key_points": ("自习室在第二层", "有120个座位", "全年开放")})
    said = {
        "key_points": {
            1: {"in_answer": "absent"},
            2: {"in_answer": "contradicted"},
            3: {"label": "not_found", "passages": [], "quote": None, "in_answer": "absent"},
        }
    }
    fed = judge("retrieval", sample, changed(**said))
    (found,) = items(fed, "cause")
    assert (found.label, found.shown_by) == ("misread", ["point 2"])
    assert found.reason == "回答用了这段资料，说的却与资料不符。"
    said["key_points"][2] = {"in_answer": "stated"}
    assert cause(judge("retrieval", sample, changed(**said))) == "retriever_miss"


def test_a_split_vote_on_the_refusal_leaves_the_cause_open() -> None:
    """Whoever is not sure whether the answer declines blames nobody."""
    from steelyard.records import Mark, Reply

    protocol = get_protocol("retrieval")
    rounds = protocol.rounds(RAG, protocol.parse_options({}))
    (ask,) = next(rounds)
    with pytest.raises(StopIteration) as finished:
        rounds.send([Reply(data=ask.reply.model_validate(respond(ask)), marks={"": {0: Mark(open=("refuses",))}})])
    cause_item = finished.value.value.items[0]
    assert (cause_item.label, cause_item.reason) == ("unjudged", "split")
