"""`scorecard`, row by row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeding import PASSAGE, RAG, changed, judge, respond
from steelyard.errors import ConfigError
from steelyard.protocols import get_protocol
from steelyard.records import Ask, Atom, KeyPoint, RagSample, Sentence, Unjudged, Verdict
from steelyard.tasks import KeyPointsData, ScorecardData

OPEN = RAG.model_copy(update={"key_points": None})
THREE = RAG.model_copy(
    update={
        "answer": "自习室在第二层。自习室共有120个座位。周末开放到十点。",
        "key_points": ("楼层", "座位数", "开放时间"),
    }
)
DOWN = Unjudged(reason="timeout", detail="no answer")


def of_kind(verdict: Verdict, kind: type[Any]) -> list[Any]:
    return [item for item in verdict.items if isinstance(item, kind)]


def scored(sample: RagSample = THREE, *, options: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return dict(judge("scorecard", sample, respond, changed(**changes), **(options or {})).verdict.scores)


# --- asks -------------------------------------------------------------------------------------------


def test_two_asks_with_given_key_points() -> None:
    """With given key points a sample costs two asks; sentences, key points and atoms share one reading."""
    fed = judge("scorecard", RAG)
    assert fed.tasks == ["atomic.split", "scorecard.judge"]
    data = fed.asks[-1].data
    assert isinstance(data, ScorecardData)
    assert (len(data.sentences), len(data.key_points), len(data.atoms)) == (2, 1, 2)
    assert fed.verdict.scores == {
        "relevance": 100, "completeness": 100, "accuracy": 100, "faithfulness": 100, "faithfulness_soft": 100,
    }  # fmt: skip


def test_three_asks_in_two_rounds_with_derived_ones() -> None:
    """Otherwise three, of which the first two run side by side."""
    fed = judge("scorecard", OPEN)
    assert [[ask.task for ask in asks] for asks in fed.rounds] == [
        ["atomic.split", "scorecard.key_points"],
        ["scorecard.judge"],
    ]


def test_key_points_are_looked_for_in_the_whole_answer() -> None:
    """An ask about key points that does not hold every sentence shows the answer too; no other ask pays for it."""
    for options in ({"thorough": True}, {"items_per_ask": 2}):
        fed = judge("scorecard", THREE, **options)
        parts = [ask.data for ask in fed.asks if isinstance(ask.data, ScorecardData)]
        assert len(parts) > 1
        for part in parts:
            assert (part.answer is not None) == (bool(part.key_points) and len(part.sentences) < 3)
        shown = [part.answer for part in parts if part.answer]
        assert shown
        assert all("周末开放到十点" in answer for answer in shown)
    assert all(getattr(ask.data, "answer", None) is None for ask in judge("scorecard", THREE).asks[1:])


def test_a_second_ask_about_a_key_point_shows_the_answer() -> None:
    """Also where the judge is asked again about just one."""
    fed = judge(
        "scorecard", THREE, respond, lambda ask: {**(said := respond(ask)), "key_points": said["key_points"][:2]}
    )
    again = fed.asks[-1].data
    assert isinstance(again, ScorecardData)
    assert [point.id for point in again.key_points] == [3]
    assert "周末开放到十点" in (again.answer or "")


def test_key_points_are_derived_blind() -> None:
    """The ask for key points does not contain the answer, which would set its own standard."""
    secret = OPEN.model_copy(update={"answer": "斑马线旁的鹦鹉说自习室在第九层。"})
    asks = [ask for ask in judge("scorecard", secret, respond, respond).asks if ask.task == "scorecard.key_points"]
    assert len(asks) == 1
    assert "斑马线" not in asks[0].data.model_dump_json()
    assert "answer" not in asks[0].data.model_dump()


def test_key_points_come_from_the_reference_answer_or_the_passages() -> None:
    """Derived from the reference answer alone where there is one, else from the passages."""
    data = judge("scorecard", OPEN).rounds[0][1].data
    assert isinstance(data, KeyPointsData)
    assert (data.references, data.reference_answer) == (OPEN.references, None)
    data = judge("scorecard", OPEN.model_copy(update={"reference_answer": "在第二层"})).rounds[0][1].data
    assert isinstance(data, KeyPointsData)
    assert (data.references, data.reference_answer) == ((), "在第二层")


@pytest.mark.parametrize(("sample", "source"), [(RAG, "given"), (OPEN, "derived")])
def test_keypoints_source(sample: RagSample, source: str) -> None:
    """Each key point, and so each result line, says whether it was given or derived."""
    line = judge("scorecard", sample).verdict.line()
    points = [item for item in line["items"] if item["kind"] == "key_point"]
    assert points
    assert {point["keypoints_source"] for point in points} == {source}


def test_derivation_switched_off() -> None:
    """With derivation off and none given, completeness is null, and nothing is asked for it."""
    fed = judge("scorecard", OPEN, derive_key_points=False)
    assert fed.tasks == ["atomic.split", "scorecard.judge"]
    assert fed.verdict.scores["completeness"] is None
    assert fed.verdict.status == "judged"
    assert judge("scorecard", RAG, derive_key_points=False).verdict.scores["completeness"] == 100


def test_nothing_to_derive_from() -> None:
    """Without passages and reference answer there is nothing to draw key points from: no ask, null."""
    fed = judge("scorecard", OPEN.model_copy(update={"references": ()}))
    assert fed.tasks == ["scorecard.judge"]
    assert fed.verdict.scores["completeness"] is None
    answered = OPEN.model_copy(update={"references": (), "reference_answer": "在第二层"})
    assert judge("scorecard", answered).tasks == ["scorecard.key_points", "scorecard.judge"]


def test_no_key_points_found() -> None:
    """A judge that finds no key point leaves completeness null."""
    assert judge("scorecard", OPEN, respond, {"key_points": []}).verdict.scores["completeness"] is None


def test_key_points_are_kept_once() -> None:
    """Blank key points are none and repeated ones count once, given or derived; C and C++ are two."""
    given_ = RAG.model_copy(update={"key_points": ("会 C", "会C。", " ", "会C++")})
    points = of_kind(judge("scorecard", given_).verdict, KeyPoint)
    assert [(point.id, point.text) for point in points] == [(1, "会 C"), (2, "会C++")]
    derived = {"key_points": [{"id": 5, "text": "楼层 "}, {"id": 5, "text": "楼层"}, {"id": 1, "text": "座位"}]}
    points = of_kind(judge("scorecard", OPEN, respond, derived).verdict, KeyPoint)
    assert [(point.id, point.text) for point in points] == [(1, "楼层"), (2, "座位")]


def test_nothing_to_label_is_not_asked() -> None:
    """An answer without words, without references and key points, leaves nothing to ask: all null."""
    fed = judge("scorecard", RagSample(id="s", question="好吗？", answer="👍"), derive_key_points=False)
    assert fed.asks == []
    assert set(fed.verdict.scores.values()) == {None}
    assert fed.verdict.status == "judged"


# --- metrics ----------------------------------------------------------------------------------------


def test_relevance_by_sentence() -> None:
    """Relevance is the band of on-topic sentences over all: 2 of 3 is 66."""
    assert scored(sentences={3: {"on_topic": False}})["relevance"] == 66


def test_completeness_counts_partial_half() -> None:
    """covered + half of partial over all key points: (1 + 0.5) / 3 is 50, whatever depth partial has."""
    points = {2: {"label": "partial", "depth": "adequate"}, 3: {"label": "missing", "depth": None}}
    assert scored(key_points=points)["completeness"] == 50


def test_depth_belongs_to_hits() -> None:
    """A covered or partial point has a depth, a missing one has none even if the judge gives one."""
    labels = {1: {"depth": "deep"}, 2: {"label": "partial", "depth": "bare"}, 3: {"label": "missing", "depth": "deep"}}
    points = of_kind(judge("scorecard", THREE, respond, changed(key_points=labels)).verdict, KeyPoint)
    assert [(point.label, point.depth) for point in points] == [
        ("covered", "deep"),
        ("partial", "bare"),
        ("missing", None),
    ]


def test_accuracy_by_atoms() -> None:
    """Accuracy is correct over correct and wrong; undetermined and exempt do not count."""
    assert scored(atoms={1: {"label": "wrong"}})["accuracy"] == 66
    assert scored(atoms={1: {"label": "undetermined"}, 2: {"label": "exempt"}})["accuracy"] == 100
    undecided = {id: {"label": "exempt"} for id in (1, 2, 3)}
    assert scored(atoms=undecided)["accuracy"] is None


def test_atoms_follow_the_atomic_rules() -> None:
    """Atoms are those of `atomic`: strictness, evidence, links, tolerance; only the level is not asked for."""
    labels = {1: {"label": "wrong"}, 2: {"source": "own_knowledge", "quote": None}}
    split = {"atoms": [{"id": 1, "text": "自习室在第二层", "causal_of": 2}, {"id": 2, "text": "自习室共有120个座位"}]}
    atoms = of_kind(judge("scorecard", RAG, split, changed(atoms=labels), strict=True).verdict, Atom)
    assert [(atom.label, atom.flags) for atom in atoms] == [
        ("wrong", ()),
        ("undetermined", ("own_knowledge_ignored",)),
    ]
    assert [atom.level for atom in atoms] == [None, None]
    assert atoms[0].causal_of == 2


def test_faithfulness_and_its_soft_form() -> None:
    """f counts only full support; f_soft counts partial half; sentences without a claim do not count."""
    labels = {2: {"support": "partial"}, 3: {"support": "unsupported"}}
    assert (scored(sentences=labels)["faithfulness"], scored(sentences=labels)["faithfulness_soft"]) == (33, 50)
    labels = {2: {"support": "partial"}, 3: {"support": "no_claim"}}
    assert (scored(sentences=labels)["faithfulness"], scored(sentences=labels)["faithfulness_soft"]) == (50, 75)


def test_no_claims_no_faithfulness() -> None:
    """Where no sentence asserts anything faithfulness is null, relevance still counts."""
    silent = {id: {"support": "no_claim", "quote": None} for id in (1, 2, 3)}
    scores = scored(sentences=silent, atoms={id: {"label": "exempt"} for id in (1, 2, 3)})
    assert scores["faithfulness"] is scores["faithfulness_soft"] is scores["accuracy"] is None
    assert scores["relevance"] == 100


@pytest.mark.parametrize(("depths", "capped"), [("bbb", True), ("bba", True), ("baa", False), ("aaa", False)])
def test_shallow_cap(depths: str, capped: bool) -> None:
    """More than half of the hits bare: completeness at most 89, flagged."""
    names = {"b": "bare", "a": "adequate"}
    labels = {id: {"depth": names[letter]} for id, letter in enumerate(depths, start=1)}
    verdict = judge("scorecard", THREE, respond, changed(key_points=labels)).verdict
    assert verdict.scores["completeness"] == (89 if capped else 100)
    assert ("shallow_cap" in verdict.flags) is capped


def test_half_bare_is_not_shallow() -> None:
    """Exactly half is not more than half."""
    two = RAG.model_copy(update={"key_points": ("楼层", "座位")})
    assert scored(two, key_points={1: {"depth": "bare"}})["completeness"] == 100


def test_composite_only_with_weights() -> None:
    """No composite unless weights are given; then the weighted mean, null where one of its metrics is."""
    labels = {3: {"on_topic": False}}
    assert "composite" not in scored(sentences=labels)
    weights = {"weights": {"relevance": 1, "accuracy": 3}}
    assert scored(sentences=labels, options=weights)["composite"] == pytest.approx((66 + 300) / 4)
    bare = THREE.model_copy(update={"references": ()})
    assert judge("scorecard", bare, **weights).verdict.scores["composite"] is None
    assert "composite" in judge("scorecard", RAG, max_chars=1, **weights).verdict.scores


@pytest.mark.parametrize(
    "weights",
    [
        {"beauty": 1},
        {"relevance": -1},
        {"relevance": float("nan")},
        {"accuracy": float("inf")},
        {"accuracy": 0},
    ],
)
def test_weights_that_cannot_weigh(weights: dict[str, float]) -> None:
    """Unknown metrics and weights that are no weights are refused before anything is asked."""
    with pytest.raises(ConfigError, match="weights"):
        get_protocol("scorecard").parse_options({"weights": weights})


@given(st.lists(st.sampled_from(["covered", "partial", "missing"]), min_size=1, max_size=12))
def test_completeness_is_counted_from_the_labels(labels: list[str]) -> None:
    """For any labels: 100 only if all are covered, 0 only if all are missing."""
    sample = RAG.model_copy(update={"key_points": tuple(f"要点{n}" for n in range(len(labels)))})
    given_ = {id: {"label": label, "depth": "adequate"} for id, label in enumerate(labels, start=1)}
    score = scored(sample, key_points=given_)["completeness"]
    assert (score == 100) is (set(labels) == {"covered"})
    assert (score == 0) is (set(labels) == {"missing"})


# --- evidence ---------------------------------------------------------------------------------------


def test_support_is_quoted_and_verified() -> None:
    """A supported sentence carries its verified quote, and the passage it stands in."""
    sentence = of_kind(judge("scorecard", RAG, respond, changed(sentences={1: {"reference": 0}})).verdict, Sentence)[0]
    assert sentence.evidence is not None
    assert (sentence.evidence.reference, sentence.evidence.quote, sentence.evidence.verified) == (1, PASSAGE, True)


@pytest.mark.parametrize("support", ["supported", "partial"])
def test_unverified_support_is_asked_again_once(support: str) -> None:
    """Support whose quote is not found is asked again once with the atoms in doubt, then kept and flagged."""
    doubtful = changed(sentences={2: {"support": support, "quote": "并无此句"}}, atoms={1: {"quote": "并无此句"}})
    fed = judge("scorecard", RAG, respond, otherwise=doubtful)
    assert fed.tasks == ["atomic.split", "scorecard.judge", "scorecard.judge"]
    again = fed.asks[-1]
    assert again.again
    assert again.again.unverified == ("sentences 2", "atoms 1")
    assert "key_points" not in again.data.items(), "what is settled is not asked again"
    sentence = of_kind(fed.verdict, Sentence)[1]
    assert (sentence.support, sentence.flags) == (support, ("evidence_unverified",))


def test_unsupported_needs_no_quote() -> None:
    """Nothing can be quoted for what no passage says."""
    labels = {id: {"support": name, "quote": None} for id, name in ((1, "unsupported"), (2, "no_claim"))}
    fed = judge("scorecard", RAG, respond, changed(sentences=labels))
    assert len(fed.asks) == 2
    assert [sentence.evidence for sentence in of_kind(fed.verdict, Sentence)] == [None, None]


def test_the_summary_of_the_first_reading_is_kept() -> None:
    """The judge's closing summary is kept; a follow-up about a remnant does not replace it."""
    fed = judge("scorecard", RAG, respond, changed(summary="总评", key_points={1: None}), changed(summary="补充"))
    assert fed.verdict.notes["summary"] == "总评"


# --- edges ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [RAG, OPEN])
def test_empty_answer(sample: RagSample) -> None:
    """An empty answer: relevance and completeness 0, accuracy and faithfulness null, nobody asked."""
    fed = judge("scorecard", sample.model_copy(update={"answer": " "}))
    assert fed.asks == []
    assert fed.verdict.scores == {
        "relevance": 0, "completeness": 0, "accuracy": None, "faithfulness": None, "faithfulness_soft": None,
    }  # fmt: skip
    assert fed.verdict.flags == ("empty_answer",)
    assert fed.verdict.status == "judged"


def test_empty_answer_misses_the_given_points() -> None:
    """The 0 has its items behind it: each given key point is missing."""
    points = of_kind(judge("scorecard", THREE.model_copy(update={"answer": ""})).verdict, KeyPoint)
    assert [(point.text, point.label) for point in points] == [(text, "missing") for text in THREE.key_points or ()]


def test_empty_answer_where_completeness_is_not_measured() -> None:
    """With derivation off and no key points, completeness is null for an empty answer as for any other."""
    scores = judge("scorecard", OPEN.model_copy(update={"answer": ""}), derive_key_points=False).verdict.scores
    assert (scores["relevance"], scores["completeness"]) == (0, None)


def test_no_references() -> None:
    """Without references accuracy is null, and whatever claims something is unsupported: faithfulness 0."""
    bare = RAG.model_copy(update={"references": ()})
    fed = judge("scorecard", bare)
    assert fed.tasks == ["scorecard.judge"], "atoms that nobody can check are not split"
    assert (fed.verdict.scores["accuracy"], fed.verdict.scores["faithfulness"]) == (None, 0)
    assert fed.verdict.scores["completeness"] == 100
    assert {sentence.flags for sentence in of_kind(fed.verdict, Sentence)} == {("no_references",)}
    assert fed.verdict.status == "judged"
    silent = {id: {"support": "no_claim"} for id in (1, 2)}
    assert judge("scorecard", bare, changed(sentences=silent)).verdict.scores["faithfulness"] is None


@pytest.mark.parametrize(
    ("replies", "null", "flag"),
    [
        ((DOWN, respond), "accuracy", "unjudged:atoms:timeout"),
        ((respond, DOWN), "completeness", "unjudged:key_points:timeout"),
    ],
)
def test_what_could_not_be_listed_is_null(replies: Any, null: str, flag: str) -> None:
    """Where atoms or key points could not be had, that metric is null, the others stand, the sample is partial."""
    verdict = judge("scorecard", OPEN, *replies).verdict
    assert [name for name, value in verdict.scores.items() if value is None] == [null]
    assert flag in verdict.flags
    assert verdict.status == "partial"
    assert verdict.notes["failure"] == "no answer"


def test_a_failed_reading() -> None:
    """Where the reading fails every item is unjudged with the reason, and every score null."""
    verdict = judge("scorecard", RAG, respond, DOWN).verdict
    assert {item.reason for item in verdict.items} == {"timeout"}
    assert set(verdict.scores.values()) == {None}
    assert verdict.status == "failed"


def test_uncovered_claims_are_flagged() -> None:
    """A split that misses claims is asked again once and flagged; one that misses courtesies only is not."""
    fed = judge("scorecard", RAG, {"atoms": []})
    assert fed.tasks == ["atomic.split", "scorecard.judge"]
    assert "answer_not_covered" in fed.verdict.flags
    silent = changed(sentences={id: {"support": "no_claim"} for id in (1, 2)})
    assert "answer_not_covered" not in judge("scorecard", RAG, {"atoms": []}, silent).verdict.flags


def test_result_line_of_a_sentence() -> None:
    """A sentence item carries `on_topic` and `support`, and the line is plain JSON."""
    line = json.loads(json.dumps(judge("scorecard", RAG).verdict.line()))
    sentence = next(item for item in line["items"] if item["kind"] == "sentence")
    assert (sentence["on_topic"], sentence["support"]) == ("on_topic", "supported")


def test_by_hand() -> None:
    """One sample computed by hand: 3 of 4 sentences on topic, 1.5 of 2 points, 2 of 3 atoms, 1 of 3 claims."""
    answer = "您好！自习室在第二层。自习室有120个座位。自习室昨天刚装修。"
    sample = RAG.model_copy(update={"answer": answer, "key_points": ("楼层", "座位数")})
    split = {
        "atoms": [
            {"id": n, "text": text}
            for n, text in enumerate(["自习室在第二层", "自习室有120个座位", "自习室昨天刚装修"], 1)
        ]
    }

    def reply(ask: Ask) -> dict[str, Any]:
        return respond(
            ask,
            sentences={
                1: {"on_topic": False, "support": "no_claim"},
                3: {"support": "partial"},
                4: {"support": "unsupported"},
            },
            key_points={2: {"label": "partial"}},
            atoms={3: {"label": "wrong"}},
        )

    verdict = judge("scorecard", sample, split, reply).verdict
    # 0.75 → 70 + 0.5 × 9 = 74.5 → 75; 2/3 → 66; 1/3 → 30 + 1/3 × 9 = 33; (1 + 0.5)/3 = 0.5 → 50
    assert verdict.scores == {
        "relevance": 75, "completeness": 75, "accuracy": 66, "faithfulness": 33, "faithfulness_soft": 50,
    }  # fmt: skip
