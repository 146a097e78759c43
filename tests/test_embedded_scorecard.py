"""The embedded judge on `scorecard`: key points, coverage and depth, sentences, atoms, the summary."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reading import ANSWERS, BESIDE, NO, SILENT, YES, FixedReader, instead_of_the_network
from steelyard.judges.embedded.network import Odds
from steelyard.judges.embedded.scorecard import LONGEST_POINT, MOST_POINTS, judge, key_points
from steelyard.judges.embedded.splitting import split
from steelyard.protocols.common import numbered
from steelyard.tasks import KeyPointsData, ScorecardData, ScorecardReply
from steelyard.text import find_quote, language_of, script_votes, sentences

FERRY = ("青岚号渡轮在第二码头上船，自行车免费携带。末班船为晚上九点三十分。", "渡轮公司成立于1998年，总部在宁波。")


def points_of(question: str, references: tuple[str, ...] = (), answer: str | None = None) -> list[str]:
    data = KeyPointsData(question=question, references=references, reference_answer=answer)
    reply = key_points(data, "en" if language_of(question) == "en" else "zh", None)
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
    return judge(data, language, None)


# --- key points ------------------------------------------------------------------------------------


def test_points_are_the_statements_of_a_reference_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own words and order; what does not serve the question, and courtesy, is none."""
    levels = {"晨星公司位于宁波": BESIDE}
    instead_of_the_network(FixedReader(levels=levels), monkeypatch)
    answer = "您好！按住背面按钮10秒；再用初始密码登录。晨星公司位于宁波。"
    assert points_of("晨星路由器怎么恢复出厂设置？", answer=answer) == ["按住背面按钮10秒", "再用初始密码登录"]
    instead_of_the_network(FixedReader(serves=BESIDE), monkeypatch)
    assert points_of("晨星路由器怎么恢复出厂设置？", answer="按住背面按钮10秒。") == ["按住背面按钮10秒"]


def test_points_from_passages_are_their_best_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reference answer the sentences that answer are taken, and nothing beside them."""
    levels = {"開船前24小時可全額退費，之後收取三成手續費": ANSWERS}
    instead_of_the_network(FixedReader(levels=levels, serves=BESIDE), monkeypatch)
    found = points_of("退票要收手續費嗎？", ("開船前24小時可全額退費，之後收取三成手續費。", "兒童票為半價。"))
    assert "，".join(found) == "開船前24小時可全額退費，之後收取三成手續費"


def test_a_long_reference_answer_gives_a_few_distinct_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never more than eight, none endless; citations and marks are gone; the same thing said twice counts once."""
    instead_of_the_network(FixedReader(), monkeypatch)
    factors = "gravity distance rotation depth coast wind pressure season salt ice".split()
    answer = " ".join(f"**Tides depend on the {word}** [{at}]." for at, word in enumerate(factors, start=1))
    found = points_of("What do ocean tides depend on?", answer=f"{answer} {answer}")
    assert 1 < len(found) <= MOST_POINTS
    assert len(set(found)) == len(found)
    assert not any("[" in point or "*" in point for point in found)
    (endless,) = points_of("What?", answer="tides and " * 500)
    assert len(endless) <= LONGEST_POINT


def test_nothing_to_draw_from_gives_no_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are never invented."""
    instead_of_the_network(FixedReader(serves=BESIDE), monkeypatch)
    assert points_of("What causes tides?") == []
    assert points_of("What causes tides?", ("Our shop sells garden furniture.",)) == []
    assert points_of("What causes tides?", answer="  ") == []


# --- coverage and depth ----------------------------------------------------------------------------


def covered(point: str, answer: str, odds: Odds, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str | None, str]:
    instead_of_the_network(FixedReader({point: odds}, otherwise=YES), monkeypatch)
    (found,) = judged("问题是什么？", (), answer, (point,)).key_points
    return found.label, found.depth, found.reason


def test_a_point_is_made_or_missed_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said it is covered, denied or not spoken of it is missing; half of it, with half of its words, is partial."""
    point, answer = "渡轮在第二码头上船且自行车免费", "渡轮在第二码头上船，其他事情我们以后再说。"
    assert covered(point, answer, YES, monkeypatch)[:2] == ("covered", "adequate")
    assert covered(point, answer, NO, monkeypatch)[:2] == ("missing", None)
    assert covered("食堂提供三十种甜点", answer, SILENT, monkeypatch)[:2] == ("missing", None)
    assert covered(point, answer, Odds(0.15, 0.05, 0.8), monkeypatch)[0] == "partial"


def test_a_wrong_value_makes_a_point_missing_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    label, depth, reason = covered("第二节是静音车厢", "第三节是静音车厢。", YES, monkeypatch)
    assert (label, depth) == ("missing", None)
    assert "第三节" in reason
    assert "第二节" in reason


def test_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons and figures around a point make it deep, a plain statement adequate, an item in a row bare."""
    point = "Tides are caused by the Moon"
    deep = (
        "Tides are caused by the Moon, because its gravity pulls the water on the near side of the Earth more strongly "
        "than on the far side, which raises two bulges; as the Earth turns, a coast passes both within 24 hours and 50 "
        "minutes. The tides caused by the Moon are about twice as high as those of the Sun."
    )
    assert covered(point, deep, YES, monkeypatch)[1] == "deep"
    assert covered(point, "Tides are caused by the Moon.", YES, monkeypatch)[1] == "adequate"
    assert covered(point, "Moon.", YES, monkeypatch)[1] == "bare"


def test_key_points_without_the_answer_are_left_open() -> None:
    """An ask that holds key points but no sentence cannot be answered, and is not guessed."""
    data = ScorecardData(
        question="q", references=FERRY, date="", place="", sentences=(), key_points=numbered(["a"]), atoms=()
    )
    reply = judge(data, "zh", FixedReader())
    assert reply.key_points == []
    assert [(one.items, one.id) for one in reply.unsure] == [("key_points", 1)]


# --- sentences, atoms, summary ---------------------------------------------------------------------


def test_sentences_have_topic_support_and_quote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence has both labels; what is supported quotes a passage verbatim."""
    odds = {"船上有免费的无线网络": SILENT}
    levels = {"船上有免费的无线网络": BESIDE}
    instead_of_the_network(FixedReader(odds, levels, otherwise=YES), monkeypatch)
    answer = "您好！青岚号渡轮在第二码头上船。船上有免费的无线网络。祝您愉快。"
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
    assert "无线网络" in reply.sentences[2].reason


def test_partly_supported_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """One claim with a basis and one without make a sentence partial, and the reason names the second."""
    told = FixedReader({"自习室位于第二层": YES})
    instead_of_the_network(told, monkeypatch)
    answer = "自习室位于第二层；咖啡厅提供三十种甜点。"
    (sentence,) = judged("自习室在几楼？", ("自习室位于第二层，很安静。",), answer).sentences
    assert sentence.support == "partial"
    assert "咖啡厅" in sentence.reason


def test_no_claim_is_looked_up_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader whose look costs a second is asked about each claim once, though sentences and atoms share it."""
    told = instead_of_the_network(FixedReader(), monkeypatch)
    judged("能带自行车吗？", FERRY, "自行车可以带上船。末班船在晚上开。")
    asked = [(pair.claim, pair.context, pair.premise) for pair in told.pairs]
    assert len(asked) == len(set(asked)) > 0


def test_atoms_share_the_labels_of_atomic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right, unmentioned and subjective atoms are told apart."""
    instead_of_the_network(FixedReader({"Tides are caused by the Moon's gravity": YES}), monkeypatch)
    answer = "Tides are caused by the Moon's gravity. Tides were invented in 1850. I like the sea very much."
    reply = judged("What causes ocean tides?", ("Tides are caused by the pull of the Moon.",), answer)
    assert [one.label for one in reply.atoms] == ["correct", "undetermined", "exempt"]


def test_a_bare_yes_is_on_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a claim that leans on its question, and is read with it."""
    told = instead_of_the_network(FixedReader(otherwise=YES), monkeypatch)
    (sentence,) = judged("能免费携带自行车吗？", FERRY, "可以。").sentences
    assert (sentence.on_topic, sentence.support) == (True, "supported")
    assert {pair.context for pair in told.pairs} == {"能免费携带自行车吗？"}


def test_the_summary_tells_what_a_reader_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with what is made and what to check, in the reader's language and script."""
    claims = {"The Moon causes tides": YES, "Tides were invented in 1850": SILENT, "The Sun helps": SILENT}
    instead_of_the_network(FixedReader(claims), monkeypatch)
    answer = "The Moon causes tides. Tides were invented in 1850."
    reply = judged(
        "What causes tides?", ("The Moon causes the tides.",), answer, ("The Moon causes tides", "The Sun helps")
    )
    assert reply.summary.startswith("1 of 2 key points")
    assert "check" in reply.summary
    instead_of_the_network(FixedReader(otherwise=YES), monkeypatch)
    good = judged("青岚号渡轮在哪里上船？", FERRY, "青岚号渡轮在第二码头上船。", ("在第二码头上船",))
    assert good.summary == "1个要点说到了1个；所说的都有资料依据，可以放心参考。"
    hant = judged("渡輪在哪裡上船？", FERRY, "渡輪在第二碼頭上船。", ("在第二碼頭上船",))
    assert "資料" in hant.summary
    nothing = judged("青岚号渡轮在哪里上船？", FERRY, "您好！祝您愉快。", ("在第二码头上船",))
    assert {one.support for one in nothing.sentences} == {"no_claim"}
    assert "没有需要核对的说法" in nothing.summary


def test_reasons_are_in_the_script_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Traditional sample gets Traditional reasons, for sentences, points and atoms alike."""
    instead_of_the_network(FixedReader(otherwise=NO), monkeypatch)
    points = ("退票要收三成手續費",)
    reply = judged("退票要收手續費嗎？", ("退票要收三成手續費。",), "退票要收五成手續費。開船後可以退票。", points)
    reasons = [one.reason for one in (*reply.sentences, *reply.atoms, *reply.key_points)]
    assert all(reasons)
    assert all(script_votes(reason).simplified == 0 for reason in reasons)


def test_no_references_support_nothing() -> None:
    """Without passages every claim is unsupported, every atom undetermined."""
    data = ScorecardData(
        question="",
        references=(),
        date="",
        place="",
        sentences=numbered(["青岚号渡轮在第二码头上船。"]),
        key_points=(),
        atoms=numbered(["青岚号渡轮在第二码头上船"]),
    )
    reply = judge(data, "zh", FixedReader(otherwise=YES))
    assert [(one.support, one.on_topic) for one in reply.sentences] == [("unsupported", True)]
    assert [one.label for one in reply.atoms] == ["undetermined"]


@given(st.text(max_size=40), st.text(max_size=60), st.text(max_size=80), st.text(max_size=40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_judged(
    monkeypatch: pytest.MonkeyPatch, question: str, reference: str, answer: str, point: str
) -> None:
    """Whatever the texts are, every item gets exactly one label, and quotes stand in the passages."""
    instead_of_the_network(FixedReader(otherwise=YES), monkeypatch)
    reply = judged(question, (reference,), answer, (point,) if point.strip() else ())
    assert len(reply.sentences) == len(sentences(answer))
    assert len(reply.key_points) + len(reply.unsure) == (1 if point.strip() else 0)
    assert all(one.quote is None or one.quote in reference for one in reply.sentences)
    assert all(text.strip() for text in points_of(question, (reference,), answer))
