"""The embedded judge on `scorecard`: key points, their coverage and depth, sentences, atoms, summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.judges.embedded.coverage import Coverage, _coverage, coverage
from steelyard.judges.embedded.scorecard import MOST_POINTS, judge, key_points
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.support import MEANING, Support, read
from steelyard.judges.embedded.voice import in_script
from steelyard.protocols.common import numbered
from steelyard.tasks import KeyPointsData, ScorecardData, ScorecardReply, SplitAtom
from steelyard.text import find_quote, language_of, script_votes, sentences

FERRY = ("青岚号渡轮在第二码头上船，自行车免费携带。末班船为晚上九点三十分。", "渡轮公司成立于1998年，总部在宁波。")
TIDES = (
    "Tides are caused by the gravitational pull of the Moon and, to a lesser extent, the Sun. "
    "The Moon orbits the Earth every 27.3 days.",
    "Spring tides occur when Sun, Moon and Earth align.",
)
TIDE_POINTS = (
    "The Moon's gravitational pull causes tides",
    "The Sun contributes to a lesser extent",
    "Spring tides occur when Sun, Moon and Earth align",
)


def points_of(question: str, references: tuple[str, ...] = (), answer: str | None = None) -> list[str]:
    data = KeyPointsData(question=question, references=references, reference_answer=answer)
    reply = key_points(data, "en" if language_of(question) == "en" else "zh", read)
    assert [point.id for point in reply.key_points] == list(range(1, len(reply.key_points) + 1))
    return [point.text for point in reply.key_points]


def judged(question: str, references: tuple[str, ...], answer: str, points: tuple[str, ...] = ()) -> ScorecardReply:
    data = ScorecardData(
        question=question,
        references=references,
        date="",
        place="",
        sentences=numbered(sentences(answer)),
        key_points=numbered(points),
        atoms=numbered(atom.text for atom in split(answer, question)),
    )
    language: Literal["en", "zh"] = "en" if language_of(question, answer) == "en" else "zh"
    return judge(data, language, in_script(read, language))


# --- key points ------------------------------------------------------------------------------------


def test_points_are_the_steps_of_a_reference_answer() -> None:
    """Each step is a point of its own; what does not serve the question is none."""
    answer = "按住背面按钮10秒，再用初始密码登录。晨星公司位于宁波。"
    assert points_of("晨星路由器怎么恢复出厂设置？", answer=answer) == ["按住背面按钮10秒", "再用初始密码登录"]
    answer = "Hold the button on the back for ten seconds, then log in with the default password. It is made in Oslo."
    assert points_of("How do I reset the router?", answer=answer) == [
        "Hold the button on the back for ten seconds",
        "log in with the default password",
    ]


def test_points_from_passages_are_their_best_sentences() -> None:
    """Without a reference answer the sentences that answer are taken, and nothing beside them."""
    assert points_of("青岚号渡轮在哪里上船，能带自行车吗？", FERRY) == ["青岚号渡轮在第二码头上船", "自行车免费携带"]
    found = points_of("What causes ocean tides?", TIDES)
    assert found
    assert found[0].startswith("Tides are caused by the gravitational pull of the Moon")
    assert not any("27.3" in point for point in found)


@pytest.mark.parametrize(
    ("question", "passage", "points"),
    [
        ("退款多久到账？", "退款申请审核通过后，款项将在3个工作日内退回。", ["款项将在3个工作日内退回"]),
        ("怎么清洗咖啡机？", "清洗咖啡机时，请先倒空水箱，再加入除垢剂。", ["请先倒空水箱", "再加入除垢剂"]),
        ("渡轮为什么停航？", "因海面大雾，渡轮停航两天。", ["因海面大雾，渡轮停航两天"]),
        ("可以考驾照吗？", "年满18岁后，可以考驾照。", ["年满18岁后，可以考驾照"]),
        ("退房时间是几点？", "退房时间为12:00以前，逾时按小时收费。", ["退房时间为12:00以前", "逾时按小时收费"]),
    ],
)
def test_a_bare_condition_is_no_point(question: str, passage: str, points: list[str]) -> None:
    """When and by what rule is no point of its own; a cause that is asked for, or a figure, stays with its clause."""
    assert points_of(question, (passage,)) == points


def test_traditional_points_stay_traditional() -> None:
    """Points are verbatim, in the script of their source."""
    found = points_of("退票要收手續費嗎？", ("開船前24小時可全額退費，之後收取三成手續費。", "兒童票為半價。"))
    assert "之後收取三成手續費" in found


def test_a_long_reference_answer_gives_a_few_distinct_points() -> None:
    """Never more than eight; citations and marks are gone; the same thing said twice counts once."""
    answer = " ".join(
        f"Reason {n}: tides depend on factor {word} [{n}]."
        for n, word in enumerate("gravity distance rotation depth coast wind pressure season salt ice".split(), start=1)
    )
    found = points_of(
        "What do ocean tides depend on?", answer=answer + " **Tides depend on factor gravity.** " + answer
    )
    assert 1 <= len(found) <= MOST_POINTS
    assert len(set(found)) == len(found)
    assert not any("[" in point or "*" in point for point in found)


def test_nothing_to_draw_from_gives_no_points() -> None:
    """Points are never invented."""
    assert points_of("What causes tides?") == []
    assert points_of("What causes tides?", ("Our shop sells garden furniture.",)) == []
    assert points_of("What causes tides?", answer="  ") == []


# --- coverage and depth ----------------------------------------------------------------------------


def covered(point: str, answer: str, question: str = "") -> Coverage:
    (found,) = coverage([point], sentences(answer), question, read)
    return found


@pytest.mark.parametrize(
    ("point", "answer", "label"),
    [
        ("在第二码头上船", "青岚号在第二码头上船，末班船是晚上九点半。", "covered"),
        ("末班船是九点半", "青岚号在第二码头上船，末班船是晚上九点半。", "covered"),
        ("自行车免费携带", "青岚号在第二码头上船。", "missing"),
        ("第二节是静音车厢", "第三节是静音车厢。", "missing"),
        ("之後收取三成手續費", "之後要收五成手續費。", "missing"),
        ("開船前24小時可全額退費", "開船前24小時可以全額退費。", "covered"),
        ("The Moon's gravitational pull causes tides", "Tides are caused by the Moon's gravity.", "covered"),
        ("Spring tides occur when Sun, Moon and Earth align", "Admission is free on Sundays.", "missing"),
    ],
)
def test_points_made_and_missed(point: str, answer: str, label: str) -> None:
    """A point is made in its own or other words; said wrongly it is missing."""
    assert covered(point, answer).label == label


def test_half_a_point_is_partial() -> None:
    """A point of two parts of which one is made is partial."""
    point = "Hold the reset button for ten seconds; log in with the default password."
    assert covered(point, "Hold the reset button for ten seconds.").label == "partial"


def test_wrong_figures_are_named() -> None:
    """A point that is contradicted says what the answer has instead."""
    found = covered("第二节是静音车厢", "第三节是静音车厢。")
    assert found.clash == ("第三节", "第二节")
    assert found.depth is None


def test_depth() -> None:
    """Reasons and figures around a point make it deep, a plain statement adequate; missing points have none."""
    point = "Tides are caused by the Moon"
    deep = (
        "Tides are caused by the Moon, because its gravity pulls the water on the near side of the Earth more strongly "
        "than on the far side, which raises two bulges; as the Earth turns, a coast passes both within 24 hours and 50 "
        "minutes. The tides caused by the Moon are about twice as high as those of the Sun."
    )
    assert covered(point, deep).depth == "deep"
    assert covered(point, "Tides are caused by the Moon.").depth == "adequate"
    assert covered(point, "Bananas are yellow.").depth is None


def test_no_sentences_make_no_point() -> None:
    """An empty answer misses every point."""
    assert [one.label for one in coverage(["a point", "another"], [], "q", read)] == ["missing", "missing"]


def test_no_claim_is_looked_up_twice() -> None:
    """A judge whose look costs a second is asked about each claim once, though sentences and atoms share it."""
    asked: list[str] = []

    class Counting:
        def __init__(self, passages: Sequence[str], question: str) -> None:
            self._reading = read(passages, question)

        def support(self, claim: str) -> Support:
            return self.supports([claim])[0]

        def supports(self, claims: Sequence[str]) -> list[Support]:
            asked.extend(claims)
            return self._reading.supports(claims)

    data = ScorecardData(
        question="能带自行车吗？",
        references=FERRY,
        date="",
        place="",
        sentences=numbered(["自行车免费携带。"]),
        key_points=(),
        atoms=numbered(["自行车免费携带"]),
    )
    judge(data, "zh", Counting)
    assert len(asked) == len(set(asked))


# --- sentences, atoms, summary ---------------------------------------------------------------------


def test_sentences_topic_support_and_quote() -> None:
    """Each sentence has both labels; what is supported quotes a passage verbatim."""
    answer = "您好！青岚号在第二码头上船，末班船是晚上九点半。船上有免费Wi-Fi。祝您愉快。"
    reply = judged("青岚号渡轮在哪里上船？", FERRY, answer)
    assert [(one.on_topic, one.support) for one in reply.sentences] == [
        (False, "no_claim"),
        (True, "supported"),
        (False, "unsupported"),
        (False, "no_claim"),
    ]
    assert reply.sentences[1].quote
    assert find_quote(FERRY, reply.sentences[1].quote) == 0
    assert reply.sentences[2].quote is None
    assert "Wi-Fi" in reply.sentences[2].reason


@pytest.mark.parametrize(
    ("question", "passage", "answer", "on_topic"),
    [
        (
            "青山民宿介绍",
            "青山民宿位于湖边，共有客房九间。早餐从七点供应到十点。停车免费。",
            "青山民宿位于湖边，共有客房九间。早餐从七点供应到十点。停车免费。猫喜欢吃鱼。",
            [True, True, True, False],
        ),
        (
            "Tell me about the lighthouse.",
            "The Point Lighthouse was built in 1880. It is 40 metres high. Visitors pay 5 euros.",
            "The Point Lighthouse was built in 1880. It is 40 metres high. Visitors pay 5 euros. Cats like fish.",
            [True, True, True, False],
        ),
        (
            "怎么清洗咖啡机？",
            "清洗咖啡机时，请先倒空水箱，再加入除垢剂。静置二十分钟后冲洗两遍。本机产于意大利。",
            "先倒空水箱，再加入除垢剂。静置二十分钟后冲洗两遍。本机产于意大利。",
            [True, True, False],
        ),
    ],
)
def test_what_the_passages_say_to_the_question_is_on_topic(
    question: str, passage: str, answer: str, on_topic: list[bool]
) -> None:
    """Whatever is told of the thing asked about, and the steps of a procedure, need not name it again."""
    assert [one.on_topic for one in judged(question, (passage,), answer).sentences] == on_topic


def test_reasons_are_in_the_script_of_the_sample() -> None:
    """A Traditional sample gets Traditional reasons, for sentences and atoms alike."""
    reply = judged("退票要收手續費嗎？", ("退票要收三成手續費，開船後不退。",), "退票要收五成手續費。開船後不退。")
    reasons = [one.reason for one in (*reply.sentences, *reply.atoms)]
    assert all(reasons)
    assert all(script_votes(reason).simplified == 0 for reason in reasons)


def test_a_bare_yes_is_held_against_the_passages() -> None:
    """Yes is on the topic, states what is asked, and makes that point."""
    reply = judged("能免费携带自行车吗？", FERRY, "可以。", ("可以免费携带自行车",))
    assert [(one.on_topic, one.support) for one in reply.sentences] == [(True, "supported")]
    assert reply.key_points[0].label == "covered"
    unclear = judged("Is the lift in the old hall open?", ("The lift is out of order.",), "Yes.")
    assert [(one.on_topic, one.support) for one in unclear.sentences] == [(True, "no_claim")]


def test_partly_supported_sentences() -> None:
    """One claim with a basis and one without make a sentence partial, and the reason names the second."""
    reply = judged("自习室在几楼？", ("自习室位于第二层。",), "自习室位于第二层，咖啡厅提供三十种甜点。")
    (sentence,) = reply.sentences
    assert sentence.support == "partial"
    assert "咖啡" in sentence.reason


def test_atoms_share_the_labels_of_atomic() -> None:
    """Right, unmentioned and subjective atoms are told apart."""
    answer = "Tides are caused by the Moon's gravity. Tides were invented in 1850. I like the sea."
    reply = judged("What causes ocean tides?", TIDES, answer)
    assert [one.label for one in reply.atoms] == ["correct", "undetermined", "exempt"]


def test_summary_tells_what_a_reader_gets() -> None:
    """One sentence with what is made and what to check, in the reader's language and script."""
    answer = "Ocean tides are caused mainly by the Moon's gravity. Tides were invented in 1850."
    reply = judged("What causes ocean tides?", TIDES, answer, TIDE_POINTS)
    assert reply.summary.startswith("1 of 3 key points")
    assert "check" in reply.summary
    good = judged("青岚号渡轮在哪里上船？", FERRY, "青岚号渡轮在第二码头上船。", ("在第二码头上船",))
    assert good.summary == "1个要点说到了1个；所说的都有资料依据，可以放心参考。"
    hant = judged("渡輪在哪裡上船？", FERRY, "渡輪在第二碼頭上船。", ("在第二碼頭上船",))
    assert "資料" in hant.summary


def test_an_answer_without_claims_has_nothing_to_check() -> None:
    """Courtesy only: nothing on the topic, nothing claimed, and the summary says so."""
    reply = judged("青岚号渡轮在哪里上船？", FERRY, "您好！祝您愉快。", ("在第二码头上船",))
    assert {one.support for one in reply.sentences} == {"no_claim"}
    assert [point.label for point in reply.key_points] == ["missing"]
    assert "没有需要核对的说法" in reply.summary


def test_key_points_without_the_answer_are_left_open() -> None:
    """An ask that holds key points but no sentence cannot be answered, and is not guessed."""
    data = ScorecardData(
        question="q", references=FERRY, date="", place="", sentences=(), key_points=numbered(["a"]), atoms=()
    )
    reply = judge(data, "zh", read)
    assert reply.key_points == []
    assert [(one.items, one.id) for one in reply.unsure] == [("key_points", 1)]


def test_no_references_support_nothing() -> None:
    """Without passages every claim is unsupported, every atom undetermined."""
    reply = judged("青岚号渡轮在哪里上船？", (), "青岚号渡轮在第二码头上船。")
    assert [one.support for one in reply.sentences] == ["unsupported"]
    assert {one.label for one in reply.atoms} == {"undetermined"}


@given(st.text(max_size=40), st.text(max_size=60), st.text(max_size=80), st.text(max_size=40))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
def test_any_text_is_judged(question: str, reference: str, answer: str, point: str) -> None:
    """Whatever the texts are, every item gets exactly one label, and quotes stand in the passages."""
    reply = judged(question, (reference,), answer, (point,) if point.strip() else ())
    assert len(reply.sentences) == len(sentences(answer))
    assert len(reply.key_points) + len(reply.unsure) == (1 if point.strip() else 0)
    assert all(one.quote is None or one.quote in reference for one in reply.sentences)
    assert all(text.strip() for text in points_of(question, (reference,), answer))


def test_a_denial_without_words_of_its_own_shows_none() -> None:
    """What only the network finds denied is given as missing, not as “” in the place of “”."""
    denied = Support("contradicted", 0.1, 0, "Tickets are sold on board.", MEANING, "the quoted passage says otherwise")
    found = _coverage("Tickets are sold at the pier.", [denied], denied, [SplitAtom(id=1, text="No sale.")], [0.2])
    assert (found.label, found.clash) == ("missing", None)
