"""Contradictions that rules see, and the exact facts they compare."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.judges.embedded.clashes import KINDS, clashes, shared
from steelyard.judges.embedded.differences import exchanges
from steelyard.judges.embedded.facts import agree, comparable, facts, is_han_name, listed, names
from steelyard.judges.embedded.lexicon import found, lexicon

# ruff: noqa: E501
CLASHING = [
    ("ordinal", "小桌板位于第三排", "小桌板位于第二排座椅后方。", "第三排", "第二排"),
    ("ordinal", "She finished in the third place.", "She finished in the second place.", "third place", "second place"),
    ("quantity", "保修期为三年", "保修期为24个月。", "三年", "24个月"),
    ("quantity", "共有1.2万人参加会议", "共有1.5万人参加会议。", "1.2万人", "1.5万人"),
    ("quantity", "全长约35公里的隧道", "隧道全长约53公里。", "35公里", "53公里"),
    ("quantity", "It moved $1.5 billion to the funds.", "It moved $1.8 billion to the funds.", "$1.5 billion", "$1.8 billion"),
    ("quantity", "The tower is 30 meters high.", "The tower is 45 meters high.", "30 meters", "45 meters"),
    ("date", "他于1981年出生在上海", "他于1980年出生在上海。", "1981年", "1980年"),
    ("date", "会议于3月5日举行", "会议将于3月6日在京举行。", "3月5日", "3月6日"),
    ("date", "The film was released in March 2015.", "The film was released on 20 May 2015.", "march 2015", "20 may 2015"),
    ("date", "The shop opens on Monday.", "The shop opens on Friday.", "monday", "friday"),
    ("name", "理想L9有六个座位", "理想L8有六个座位。", "l9", "l8"),
    ("name", "The app runs on GPT-4 only.", "The app runs on GPT-3 only.", "gpt-4", "gpt-3"),
    ("negation", "公司不支持退款", "公司支持退款。", "不支持退款", "支持退款"),
    ("negation", "He is not a member of the club.", "He is a member of the club.", "not a member of the club", "member of"),
    ("negation", "建议给大灯贴膜", "不建议给大灯贴膜。", "给大灯贴膜", "不建议给大灯贴"),
    ("direction", "今年销量上升了20%", "今年销量下降了20%。", "上升", "下降"),
    ("direction", "Company profits rose in spring.", "Company profits fell in spring.", "rose", "fell"),
    ("comparison", "室温应高于25度", "室温应低于25度。", "高于", "低于"),
    ("comparison", "It costs more than the old model.", "It costs less than the old model.", "more", "less"),
    ("kinship", "他的妹妹是医生", "他的姐姐是医生。", "妹妹", "姐姐"),
    ("kinship", "身为老大的她家境优越", "她家境优越，有一个姐姐。", "老大", "姐姐"),
    ("kinship", "Her father runs the farm.", "Her brother runs the farm.", "father", "brother"),
    ("entity", "湖人队击败了凯尔特人队", "凯尔特人队击败了湖人队。", "湖人队击败了凯尔特人队", "凯尔特人队击败了湖人队"),
    ("entity", "Apple acquired Beats last year", "Beats acquired Apple last year", "apple acquired beats", "beats acquired apple"),
    ("entity", "德国外长弗拉德里希表示支持", "德国外长施泰因迈尔表示支持。", "弗拉德里希", "施泰因迈尔"),
    ("entity", "The report says Bithumb moved the funds.", "The report says Binance moved the funds.", "Bithumb", "Binance"),
]  # fmt: skip

AGREEING = [
    ("保修期为两年", "保修期为24个月。"),
    ("有１２，０００人参加", "有1.2万人参加活动。"),
    ("参加活动的有一万两千人", "有12000名观众参加活动。"),
    ("增长了百分之三十五", "今年增长了35%。"),
    ("他生于1980年", "他生于1980年5月3日。"),
    ("The film came out in 2015.", "The film came out in March 2015."),
    ("不建议给大灯贴膜", "建议您不要给大灯贴膜。"),
    ("父母是銀行職員", "父母都是银行的职员。"),
    ("The tower is 1 km high.", "The tower is 1,000 meters high."),
    ("他不仅会唱歌，还会跳舞", "他会唱歌，也会跳舞。"),
    ("湖人队被凯尔特人队击败", "凯尔特人队击败了湖人队。"),
    ("苹果、香蕉和梨都有", "梨、香蕉、苹果都有。"),
    ("Twenty-five people died.", "25 people died in the fire."),
    ("the meeting starts at 3 p.m.", "The meeting starts at 15:00."),
]


@pytest.mark.parametrize(("kind", "claim", "span", "claimed", "stated"), CLASHING)
def test_a_contradiction_is_seen_with_the_two_things_that_differ(
    kind: str, claim: str, span: str, claimed: str, stated: str
) -> None:
    """Each kind of contradiction is named, with what the claim says and what the span says."""
    assert (kind, claimed, stated) in clashes(claim, span)


@pytest.mark.parametrize(("claim", "span"), AGREEING)
def test_the_same_thing_said_otherwise_is_no_contradiction(claim: str, span: str) -> None:
    """Units, scripts, widths, word order and double negation do not make a clash."""
    assert clashes(claim, span) == []


def test_another_subject_is_no_contradiction() -> None:
    """A span about something else cannot contradict the claim, whatever numbers it holds."""
    assert clashes("保修期为三年", "全车共有24个扬声器。") == []
    assert clashes("The warranty lasts 3 years.", "The choir has 24 singers.") == []


def test_what_is_claimed_may_stand_nearby() -> None:
    """A number that the surrounding text states is not contradicted by a sentence that is only partly alike."""
    span = "The old tower in the harbour town is 45 meters high."
    claim = "The tower with the golden roof is 30 meters high."
    assert clashes(claim, span)
    assert clashes(claim, span, "Another tower, 30 meters high, has a golden roof.") == []


def test_a_sentence_repeated_with_another_number_is_contradicted_wherever_that_number_stands() -> None:
    """The same sentence with one number changed is an error, even if some other sentence holds that number."""
    assert clashes("The tower is 30 meters high.", "The tower is 45 meters high.", "Its base is 30 meters wide.")


@pytest.mark.parametrize(
    ("text", "kind", "value", "unit"),
    [
        ("两年", "quantity", Fraction(24), "months"),
        ("24个月", "quantity", Fraction(24), "months"),
        ("1.2万人", "quantity", Fraction(12000), "people"),
        ("３千亿元", "quantity", Fraction(300_000_000_000), "yuan"),
        ("百分之三十五", "quantity", Fraction(35), "percent"),
        ("三分之一", "quantity", Fraction(100, 3), "percent"),
        ("$1.8 billion", "quantity", Fraction(1_800_000_000), "dollars"),
        ("twenty-five people", "quantity", Fraction(25), "people"),
        ("2 weeks", "quantity", Fraction(1_209_600), "seconds"),
        ("零下5度", "quantity", Fraction(-5), "degrees"),
    ],
)
def test_quantities_are_read_in_their_smallest_unit(text: str, kind: str, value: Fraction, unit: str) -> None:
    """Numerals of either kind, multipliers and units become one comparable number."""
    (fact,) = facts(text)
    assert (fact.kind, fact.value, fact.unit) == (kind, (value,), unit)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2014年11月15日", (2014, 11, 15)),
        ("二〇一四年十一月", (2014, 11, None)),
        ("November 15, 2014", (2014, 11, 15)),
        ("15th of November 2014", (2014, 11, 15)),
        ("2014-11-15", (2014, 11, 15)),
        ("in 1980", (1980, None, None)),
        ("6日", (None, None, 6)),
    ],
)
def test_dates_are_read_in_either_language(text: str, value: tuple[int | None, ...]) -> None:
    """A date is its year, month and day, as far as they are written."""
    (fact,) = facts(text)
    assert (fact.kind, fact.value) == ("date", value)


@pytest.mark.parametrize("text", ["三思而行", "一直", "一个人", "万一", "some people", "星座", "唯一", "no one"])
def test_words_with_numerals_in_them_are_no_numbers(text: str) -> None:
    """What only looks like a number states none."""
    assert facts(text) == ()


def test_a_vaguer_date_agrees_with_an_exact_one() -> None:
    """1980 and May 1980 are the same year; May and June are not the same month."""
    year, exact, other = (facts(text)[0] for text in ("1980年", "1980年5月", "1980年6月"))
    assert agree(year, exact)
    assert not agree(exact, other)


def test_only_like_is_compared_with_like() -> None:
    """Yuan are not dollars, a third row is not a third floor."""
    yuan, dollars = facts("30元")[0], facts("30美元")[0]
    row, floor = facts("第三排")[0], facts("第三层")[0]
    assert not comparable(yuan, dollars)
    assert not comparable(row, floor)


def test_names_are_told_from_ordinary_words() -> None:
    """Capitals in a sentence, dots between characters and title marks make names; a sentence's first word does not."""
    assert names("Critics praised Stephen Breyer of the Supreme Court.") == ("Stephen Breyer", "Supreme Court")
    assert names("德米特里·佩斯科夫告诉《福布斯》") == ("德米特里·佩斯科夫", "福布斯")
    assert is_han_name("施泰因迈尔")
    assert is_han_name("浙江大学")
    assert not is_han_name("推进")


def test_a_list_of_facts_is_read_as_entries() -> None:
    """Keys and values of a fact list are told from prose that happens to have a colon."""
    assert listed("星座：射手座；所在地：福建 莆田；性别：女") == (
        ("星座", "射手座"),
        ("所在地", "福建 莆田"),
        ("性别", "女"),
    )
    assert listed("他说：今天下雨，明天也会下雨，所以大家都不出门了。") == ()


def test_spared_words_do_not_negate() -> None:
    """不仅 and 非常 and "not only" are no negators; 不是 and "never" are."""
    assert not found(lexicon().negators_zh, "不仅非常好")
    assert found(lexicon().negators_zh, "这不是真的")
    assert not found(lexicon().negators_en, "not only that")
    assert found(lexicon().negators_en, "he never came")


def test_exchanges_show_what_stands_in_the_place_of_what() -> None:
    """Two texts that run alike but for one stretch give that stretch of both."""
    assert exchanges("他在北京工作", "他在上海工作") == (("北京", "上海"),)
    assert exchanges("same words", "same words") == ()


def test_shared_words_leave_numbers_out() -> None:
    """Whether two texts speak of the same thing does not depend on their numbers."""
    assert shared("The tower is 30 meters high", "The tower is 45 meters high") == 1.0


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=120), st.text(max_size=120))
def test_rules_never_raise_and_name_known_kinds(claim: str, span: str) -> None:
    """Any two texts can be compared."""
    assert all(clash.kind in KINDS for clash in clashes(claim, span))


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="0123456789年月日万亿千百十一二三两第.,$%-: 个排人LvV", max_size=40))
def test_a_text_never_contradicts_itself(text: str) -> None:
    """Whatever numbers a text holds, it agrees with itself."""
    assert clashes(text, text) == []


@settings(deadline=None)
@given(st.integers(min_value=2, max_value=10**9))
def test_a_number_is_itself_in_any_dress(value: int) -> None:
    """Thousands separators and full width do not change a quantity."""
    plain, dressed = facts(f"{value}美元")[0], facts(f"{value:,}美元")[0]
    wide = facts("".join(chr(ord(digit) + 0xFEE0) for digit in str(value)) + "美元")[0]
    assert plain.value == dressed.value == wide.value


@pytest.mark.parametrize(
    ("claim", "span", "differs"),
    [
        ("The guarantee runs for 5 days.", "The guarantee runs for 5 years.", True),
        ("保修期为5天。", "保修期为5年。", True),
        ("The tank holds 60 millilitres.", "The tank holds 60 litres.", True),
        ("每片含5克。", "每片含5毫克。", True),
        ("The pass is valid for 30 days.", "The pass is valid for one month.", False),
        ("The course lasts 12 weeks.", "The course lasts three months.", False),
        ("保质期365天", "保质期12个月", False),
        ("每片含5000毫克。", "每片含5克。", False),
    ],
)
def test_units_of_the_same_kind_are_compared(claim: str, span: str, differs: bool) -> None:
    """Days and years are both time, whatever calendar lies between them; a month is about thirty days."""
    assert [clash.kind for clash in clashes(claim, span, span)] == (["quantity"] if differs else [])
