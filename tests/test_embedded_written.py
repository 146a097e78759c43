"""Reasons name what texts share or lack in whole words, and as the texts write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judges.embedded.judging import answered
from steelyard.judges.embedded.meaning import plain, words
from steelyard.judges.embedded.relevance import level
from steelyard.judges.embedded.support import read
from steelyard.judges.embedded.voice import Voice
from steelyard.judges.embedded.written import as_written, lacking, slice_of, taken_up
from steelyard.records import Numbered
from steelyard.tasks import AtomicData, AtomicReply

HOTEL = "酒店不允许携带宠物入住。加床需支付200元/晚。"
GYM = "健身房每天6:00开放，月卡300元，由CA1831班车接送。"


@pytest.mark.parametrize(
    ("claim", "passage", "expected"),
    [
        ("酒店允许携带宠物入住，需要支付200元清洁费", HOTEL, ["需要", "清洁费"]),
        ("很抱歉给您带来不便", HOTEL, ["抱歉给您带来不便"]),
        ("健身房开放到22:30，月卡450元", GYM, ["22:30", "450元"]),
        ("健身房配有游泳池", GYM, ["配有游泳池"]),
        ("健身房是王教练开的", GYM, ["王教练开"]),
        ("班车是CA1832", GYM, ["CA1832"]),
        ("X2续航更长", "X2续航12小时。", ["更长"]),
        ("水在95摄氏度沸腾", "水可以喝。", ["95摄氏度", "沸腾"]),
        ("月卡300元", GYM, []),
        ("The Renovation took 18 months.", "The renovation was long.", ["took", "18", "months"]),
        ("It has a two-year plan.", "It has a plan.", ["two-year"]),
    ],
)
def test_what_is_lacking_is_named_whole(claim: str, passage: str, expected: list[str]) -> None:
    """Stretches of Chinese are not cut into pairs, a number has its unit, and nothing is lower-cased."""
    assert lacking(claim, passage, passage) == expected


def test_what_stands_elsewhere_is_not_lacking() -> None:
    """A reason does not say that the passages lack what another of them has."""
    assert lacking("酒店提供接机服务", "酒店提供早餐。", "酒店提供早餐。\n接机服务另收费。") == []


@pytest.mark.parametrize(
    ("question", "atom", "expected"),
    [
        ("张伟是谁的儿子？", "张伟是李娜的儿子", ["张伟", "儿子"]),
        ("航班号是多少？", "航班号是CA1832", ["航班号"]),
        ("理想L9有几个座位？", "理想L9有六个座位", ["理想", "L9", "座位"]),
        ("會員年費多少？", "會員年費為1200元", ["會員年費"]),
        ("When did the renovations end?", "The Renovation ended in May.", ["Renovation", "ended"]),
    ],
)
def test_what_is_taken_up_is_named_as_the_atom_writes_it(question: str, atom: str, expected: list[str]) -> None:
    """Whole words in their own writing, neither stems nor pairs of characters."""
    assert taken_up(atom, frozenset(words(question))) == expected


@pytest.mark.parametrize(
    ("question", "atom", "debris"),
    [
        ("How much revenue did it make?", "The revenue was 3 million dollars.", "revenu "),
        ("居里夫人哪年出生？", "居里夫人1867年出生于华沙", "里夫 "),
    ],
)
def test_level_reasons_have_no_debris(question: str, atom: str, debris: str) -> None:
    """The reason of a level names words that a reader knows."""
    assert debris not in level(question, atom).reason + " "


@pytest.mark.parametrize(
    ("stretch", "text", "expected"),
    [
        ("l9", "metal L9", "L9"),
        ("40°c", "工作温度：0~40℃。", "40℃"),
        ("来上班了,但", "他来上班了，但迟到", "来上班了，但"),
        ("须缴年费", "會員須繳年費", "須繳年費"),
        ("16 gb", "It has 16 GB of RAM.", "16 GB"),
        ("l", "metal L9", "l"),
        ("关闭", "nothing of the kind", "关闭"),
        ("", "text", ""),
    ],
)
def test_a_folded_stretch_is_found_as_written(stretch: str, text: str, expected: str) -> None:
    """Case, width and script come back; what stands nowhere stays as it is."""
    assert as_written(stretch, [text]) == expected


@given(st.text(max_size=40), st.data())
def test_a_slice_folds_to_what_was_asked_for(text: str, data: st.DataObject) -> None:
    """Whatever is in a text, a part of it is found without an error."""
    low = plain(text)
    start = data.draw(st.integers(0, len(low)))
    end = data.draw(st.integers(start, len(low)))
    assert plain(low[start:end]) in plain(slice_of(text, start, end)) or not low[start:end].isalnum()


def judged(question: str, passage: str, *atoms: str) -> AtomicReply:
    numbered = tuple(Numbered(id=number, text=text) for number, text in enumerate(atoms, 1))
    data = AtomicData(
        question=question, references=(passage,), answer="。".join(atoms), date="未提供", place="未提供", atoms=numbered
    )
    reply = answered("atomic.judge", "zh", data)
    assert isinstance(reply, AtomicReply)
    return reply


@pytest.mark.parametrize(
    ("question", "passage", "atom", "reason"),
    [
        ("捐款總額是多少？", "捐款總額達120萬元。", "捐款總額為一百二十萬元", "與資料中的這句話相符"),
        ("開會時間？", "會議討論預算。", "會議歷時半小時", "資料中沒有提到“歷時半小時”"),
        ("充電時電源要開嗎？", "充電時請開啟電源。", "充電時請關閉電源", "資料寫的是“開啟”，不是“關閉”"),
        ("圖書館何時開放？", "圖書館週一至週五開放。", "圖書館週一至週五開放", "資料中有原話"),
    ],
)
def test_reasons_are_in_the_readers_script(question: str, passage: str, atom: str, reason: str) -> None:
    """A Traditional sample gets Traditional reasons, with what is quoted as its text writes it."""
    assert [verdict.reason for verdict in judged(question, passage, atom).atoms] == [reason]


def test_what_is_quoted_is_never_converted() -> None:
    """A Simplified passage is quoted in Simplified characters in a Traditional reason."""
    voice = Voice("zh", "充電時要注意什麼？", sources=["充电时请开启电源。"])
    assert voice.said("资料写的是“开启”，不是“关闭”") == "資料寫的是“开启”，不是“关闭”"


def test_a_supported_claim_is_not_talked_down() -> None:
    """The reason of an agreement counts no words."""
    (verdict,) = judged("有几个人？", "It had 15,000 employees.", "Headcount was 15,000.").atoms
    assert "%" not in verdict.reason
    found = read([HOTEL]).support("酒店不允许带宠物")
    assert found.reason == "与资料中的这句话相符"
