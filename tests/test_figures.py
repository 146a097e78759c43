"""Values in sentences: which are the same, which stand in the place of another, which are none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.text import fold
from steelyard.text.figures import Clash, Values, clash, difference_of, mended, missing, stated
from steelyard.text.moments import Day
from steelyard.text.values import figures

CLASHING = [
    ("小桌板位于第三排", "小桌板位于第二排座椅后方。", "name", "第三排", "第二排"),
    ("She finished in the third place.", "She finished in the second place.", "name", "third", "second"),
    ("保修期为三年", "保修期为24个月。", "quantity", "三年", "24个月"),
    ("共有1.2万人参加会议", "共有1.5万人参加会议。", "quantity", "1.2万人", "1.5万人"),
    ("It moved $1.5 billion.", "It moved $1.8 billion to the funds.", "quantity", "$1.5 billion", "$1.8 billion"),
    ("The city has a population of 900,000.", "It has a population of 1,200,000.", "quantity", "900,000", "1,200,000"),
    ("Adults take 6 tablets every eight hours.", "Adults take 2 tablets every eight hours.", "quantity", "6", "2"),
    ("昨夜最低气温8度", "昨夜最低气温零下8度。", "quantity", "8度", "零下8度"),
    ("之後要收五成手續費", "之後收取三成手續費。", "quantity", "五成", "三成"),
    ("他于1981年出生在上海", "他于1980年出生在上海。", "date", "1981年", "1980年"),
    ("It was built in 1925 by Smith.", "It was built in 1889 and is 330 m high.", "date", "1925", "1889"),
    ("The shop opens on Monday.", "The shop opens on Friday.", "date", "Monday", "Friday"),
    ("图书馆每天22:00关门", "图书馆每天21:00关门。", "date", "22:00", "21:00"),
    ("理想L9有六个座位", "理想L8有六个座位。", "name", "L9", "L8"),
    ("售后电话是0755-8866-1300", "售后电话：0755-8866-1200。", "name", "0755-8866-1300", "0755-8866-1200"),
    ("服务监听端口9090", "服务默认监听端口8080。", "name", "9090", "8080"),
    ("The parcel is in locker 17.", "The parcel is in locker 14.", "quantity", "17", "14"),
    ("store at 3 to 8 degrees", "Store at 2 to 8 degrees.", "quantity", "3", "2"),
]
AGREEING = [
    ("保修期为两年", "保修期为24个月。"),
    ("有１２，０００人参加", "有1.2万人参加活动。"),
    ("参加活动的有一万两千人", "有12000名观众参加活动。"),
    ("增长了百分之三十五", "今年增长了35%。"),
    ("他生于1980年", "他生于1980年5月3日。"),
    ("The tower was built in 1889.", "The tower was built in 1889 and is 330 meters high."),
    ("The tower is 1 km high.", "The tower is 1,000 meters high."),
    ("Twenty-five people died.", "25 people died in the fire."),
    ("the meeting starts at 3 p.m.", "The meeting starts at 15:00."),
    ("海岸博物館去年約有120萬人次參觀", "海岸博物館全年入館人數為1,183,400人次。"),
    ("It weighs about 300 kg.", "It weighs 297 kg."),
    ("CA1832航班每天起飞", "航班号为CA1832。"),
    ("位于第2层", "位于第二层"),
]


@pytest.mark.parametrize(("claim", "sentence", "kind", "claimed", "found"), CLASHING)
def test_a_value_in_the_place_of_another(claim: str, sentence: str, kind: str, claimed: str, found: str) -> None:
    """Both are named as they are written, and with the passage's own value the claim has none that is missing."""
    seen = clash(claim, sentence, [sentence])
    assert seen is not None
    assert (seen.kind, seen.claimed, seen.stated) == (kind, claimed, found)
    assert missing(mended(claim, seen), [sentence]) == []


@pytest.mark.parametrize(("claim", "sentence"), AGREEING)
def test_the_same_value_written_otherwise(claim: str, sentence: str) -> None:
    """Units, digits, scripts, widths and rounding do not make a difference."""
    assert missing(claim, [sentence]) == []
    assert clash(claim, sentence, [sentence]) is None


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("保修期为三年", "全车共有24个扬声器。"),
        ("有三个出口", "有两个电梯。"),
        ("坐第三排", "住在第二层。"),
        ("It costs 30 dollars.", "It weighs 45 kg."),
        ("It is open on Wednesday.", "It is open from Tuesday to Sunday."),
        ("开放时间为周三", "周二至周日开放。"),
        ("Keep it at 5 degrees.", "Keep it at 2 to 8 degrees."),
    ],
)
def test_what_is_not_comparable_does_not_clash(claim: str, sentence: str) -> None:
    """Another unit, another thing that is counted, a value between the two ends of a range: the network must tell."""
    assert clash(claim, sentence, [sentence]) is None
    assert missing(claim, [sentence])


def test_a_value_that_another_sentence_states_is_not_missing() -> None:
    """A sentence that is only partly alike cannot contradict it."""
    sentences = ["The old tower is 45 meters high.", "The new tower is 30 meters high."]
    assert clash("The new tower is 30 meters high.", sentences[0], sentences[:1])
    assert clash("The new tower is 30 meters high.", sentences[0], sentences) is None


@pytest.mark.parametrize(
    "text", ["一直", "它是一个重要强国", "一个人", "参觀", "登陆日本", "no one", "He may go", "a second later"]
)
def test_words_with_numerals_in_them_are_no_numbers(text: str) -> None:
    """Articles, old numerals that are ordinary characters, a verb that is spelt like a month."""
    assert stated(text) == ()


def test_a_code_ends_where_its_letters_and_digits_do() -> None:
    """In Chinese no space follows it; a full stop is none of it."""
    assert [one.text for one in figures("理想L9有六个座位，乘CA1832航班。See RFC-2616.")] == [
        "L9",
        "六个座位",
        "CA1832",
        "RFC-2616",
    ]


def test_a_number_is_a_year_where_the_word_before_says_so() -> None:
    """Whatever follows it; without such a word it may count."""
    assert [one.value for one in figures("built in 1889 and opened")] == [Day(1889)]
    assert [one.value for one in figures("公元前221年")] == [Day(-221)]
    assert not isinstance(figures("It had 1889 seats")[0].value, Day)


def test_a_rounded_value_is_told() -> None:
    """It agrees, and a policy may still want it exact; an equal one, in whatever unit, is no difference."""
    found = Values(["起薪为每月31200元。"]).rounded("起薪为每月3.1万元", "起薪为每月31200元。")
    assert found is not None
    assert (found.claimed, found.stated) == ("3.1万元", "31200元")
    assert Values(["保修期为24个月。"]).rounded("保修期为两年", "保修期为24个月。") is None
    assert Values(["It is 5 km long."]).rounded("It is 5 long", "It is 5 km long.") is None


def test_the_right_one_of_two_equal_numbers_is_mended() -> None:
    """By its place: 3 also stands in 2013."""
    claim, sentence = "2013年共有3个班级", "2013年共有5个班级。"
    seen = clash(claim, sentence, [sentence])
    assert seen is not None
    assert mended(claim, seen) == "2013年共有5个班级"


@pytest.mark.parametrize(
    ("found", "context", "kind"),
    [
        ("52亿元", "该片票房52亿元", "statistic"),
        ("50元", "电影票价50元，票房很高", "specification"),
        ("2小时", "参观需要2小时", "specification"),
        ("6500万年", "恐龙在6500万年前灭绝", "statistic"),
        ("3年", "居民须住满3年", "specification"),
        ("384,400 km", "The moon is 384,400 km from earth", "statistic"),
        ("5 km", "The station is 5 km away", "specification"),
        ("3%", "人口增长3%", "specification"),
        ("120个", "观众席有120个座位", "specification"),
        ("300,000", "The war killed 300,000 people", "statistic"),
        ("40", "Something has 40", "specification"),
    ],
)
def test_in_doubt_it_is_a_specification(found: str, context: str, kind: str) -> None:
    """Only words and units that leave no doubt make a value a statistic."""
    difference = difference_of(Clash("quantity", "1", found), context)
    assert difference is not None
    assert difference.kind == kind


def test_names_have_no_tolerance() -> None:
    """An ordinal, a model or a port is right or wrong; the date of a treaty is exact."""
    assert difference_of(Clash("name", "L9", "L8"), "理想L8") is None
    political = difference_of(Clash("date", "1949年9月", "1949年10月"), "该条约签署于1949年10月")
    assert political is not None
    assert political.kind == "political_date"


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_can_be_compared(claim: str, sentence: str) -> None:
    """Whatever it is: places are those of the folded text, no text lacks its own values or clashes with itself."""
    for one in figures(claim):
        assert fold(claim)[one.start : one.end].strip() == one.text
    assert missing(claim, [claim]) == []
    assert clash(claim, claim, [claim]) is None
    if (seen := clash(claim, sentence, [sentence])) is not None:
        assert seen.claimed in fold(claim)
        assert seen.stated in fold(sentence)


@pytest.mark.parametrize("piece", ["1", "1 ", "1,", "9.", "一", "第", "a1-", "May ", "-", "$", "零下", "12:30 ", "１"])
def test_a_list_of_values_takes_linear_time(piece: str) -> None:
    """A hundred thousand characters of digits, and a claim of nothing but numbers beside a table of them."""
    began = time.thread_time()
    figures(piece * (100_000 // len(piece)))
    known = Values([" ".join(map(str, range(at, at + 40))) for at in range(0, 20_000, 40)])
    known.missing(" ".join(f"{number}.5" for number in range(500)))
    assert time.thread_time() - began < 8
