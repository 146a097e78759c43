"""Sentences end where a reader would end them, nothing is lost, and a quote is found only where it stands."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.text import (
    LETTER_OR_DIGIT,
    contains_quote,
    find_quote,
    fold,
    language_of,
    normalise,
    script_votes,
    sentences,
)


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (("不建议给大灯贴膜。",), "zh-Hans"),
        (("不建議給大燈貼膜。",), "zh-Hant"),
        (("Do not film the lamps.",), "en"),
        (("iPhone 15 Pro Max 很好",), "zh-Hans"),
        (("你好嗎",), "zh-Hant"),
        (("",), "en"),
        ((), "en"),
        (("😀🎉",), "en"),
        (("12345",), "en"),
        (("これは日本語の文章です",), "en"),
        (("안녕하세요",), "en"),
        (("مرحبا",), "en"),
        (("The word 你好 means hello in the Chinese language.",), "en"),
        (("什么是RAG？", "RAG is retrieval."), "zh-Hans"),
        (("a " * 5000 + "中文" * 5000,), "en"),
        (("〇",), "zh-Hans"),
    ],
)
def test_language(texts: tuple[str, ...], language: str) -> None:
    """The language a reader expects: Chinese by script, all else English."""
    assert language_of(*texts) == language


def test_script_votes() -> None:
    """Only characters that exist in one script alone are counted."""
    assert script_votes("这是一个问题") == (4, 0)
    assert script_votes("這是一個問題") == (0, 4)
    assert script_votes("你好") == (0, 0)


# --- sentences -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("不建议贴膜。会影响散热！真的吗？", ["不建议贴膜。", "会影响散热！", "真的吗？"]),
        ("It works. Does it? Yes!", ["It works.", "Does it?", "Yes!"]),
        ("支持Wi-Fi 6。It is fast. 很好。", ["支持Wi-Fi 6。", "It is fast.", "很好。"]),
        ("圆周率是3.14。约等于3.1416", ["圆周率是3.14。", "约等于3.1416"]),
        ("3.5 million people live here. Yes", ["3.5 million people live here.", "Yes"]),
        ("v2.0.1已发布。Node.js也是。", ["v2.0.1已发布。", "Node.js也是。"]),
        ("见https://a.com/x.html?q=1&b=2。好", ["见https://a.com/x.html?q=1&b=2。", "好"]),
        ("Mail a.b@c.com. Then wait.", ["Mail a.b@c.com.", "Then wait."]),
        (
            "Dr. Smith met J. K. Rowling at 3 p.m. today. He left.",
            ["Dr. Smith met J. K. Rowling at 3 p.m. today.", "He left."],
        ),
        ("Use tools, e.g. hammers. Done.", ["Use tools, e.g. hammers.", "Done."]),
        ("The answer is no. See No. 5 there.", ["The answer is no.", "See No. 5 there."]),
        ("She joined Acme Inc. He stayed.", ["She joined Acme Inc.", "He stayed."]),
        ("It opens at 9 a.m. The bar is shut.", ["It opens at 9 a.m.", "The bar is shut."]),
        ("It is 9 p.m. Tokyo time. Dr. He left.", ["It is 9 p.m. Tokyo time.", "Dr. He left."]),
        ("Order no. 48231 ships in box 9. Fine.", ["Order no. 48231 ships in box 9.", "Fine."]),
        ("<think>先想。再答。</think>好的。<THINKING>", ["先想。", "再答。", "好的。"]),
        ("我不知道……也许吧。好。", ["我不知道……也许吧。", "好。"]),
        ("他沉默了……\n走了。", ["他沉默了……", "走了。"]),
        ("Wait... what? Fine.", ["Wait... what?", "Fine."]),
        ("“真的吗？”他问。她点头。", ["“真的吗？”他问。", "她点头。"]),
        ('"Really?" he asked. She left.', ['"Really?" he asked.', "She left."]),
        ("他说：“走吧。”我们走了。", ["他说：“走吧。”", "我们走了。"]),
        ('他走了。"你好"她说。', ["他走了。", '"你好"她说。']),
        ("（见下文。）然后继续。", ["（见下文。）", "然后继续。"]),
        ("**重要。**然后走。**加粗**好。", ["**重要。**", "然后走。", "**加粗**好。"]),
        ("属实。[1][2]接着说。So it is.[3] Next.", ["属实。[1][2]", "接着说。", "So it is.[3]", "Next."]),
        ("- 甲\n* 乙\n+ 丙\n1. 丁\n2) 戊\n（3）己\n④庚\n5、辛", list("甲乙丙丁戊己庚辛")),
        ("1.苹果\n2.梨", ["苹果", "梨"]),
        ("1.\n内容", ["1. 内容"]),
        ("-5度以下\n- 5度", ["-5度以下", "5度"]),
        ("# 结论\n不建议。\n## 理由\n散热。", ["结论 不建议。", "理由 散热。"]),
        ("原因如下：\n- 散热。\n- 老化。", ["原因如下： 散热。", "老化。"]),
        ("It rains. The causes are:\n1. wind", ["It rains.", "The causes are: wind"]),
        ("#标签 不是标题。", ["#标签 不是标题。"]),
        ("# 只有标题", ["只有标题"]),
        ("| 项 | 值 |\n|---|:-:|\n| 甲 | 1 |\n| 乙 | 2 |", ["| 项 | 值 | | 甲 | 1 |", "| 乙 | 2 |"]),
        ("用法：\n```python\n# 注释。两句。\nprint(1.5)\n```\n完毕。", ["用法： # 注释。两句。\nprint(1.5)", "完毕。"]),
        ("```\n散文。两句。\n```", ["散文。", "两句。"]),
        ("```python\n没有结束。真的。", ["没有结束。", "真的。"]),
        ("没有标点\n也没有", ["没有标点", "也没有"]),
        ("太好了！！！😀\n😀😀", ["太好了！！！"]),
        ("> 引用。后文。", ["引用。", "后文。"]),
        ("Apple Inc.成立于1976年。", ["Apple Inc.成立于1976年。"]),
        ("It leaves at 17:40. You pay on board.", ["It leaves at 17:40.", "You pay on board."]),
        ("It costs 3.50. You pay later.", ["It costs 3.50.", "You pay later."]),
        ("Steps: 1. Open it. 2. Close it.", ["Steps: 1. Open it.", "2. Close it."]),
        ("你用过吗?iPhone不错!好", ["你用过吗?", "iPhone不错!", "好"]),
        ("", []),
        ("。！？\n---\n***", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    """Chinese, English and mixed text, lists, tables, code and quotations are split as a reader would."""
    assert sentences(text) == found


markdown = st.text(
    st.sampled_from(list("甲乙丙丁ab AB12。！？.!?…：:“”\"'（）()[]*_|\n\n\t;,，、-=/😀é")), max_size=200
)


@given(markdown)
def test_nothing_is_lost(text: str) -> None:
    """Every letter and digit is in some sentence, in order, except for the numbers of list marks."""
    said = "".join(LETTER_OR_DIGIT.findall("".join(sentences(text))))
    given_ = "".join(LETTER_OR_DIGIT.findall(text))
    assert not Counter(re.sub(r"\d", "", given_)) - Counter(re.sub(r"\d", "", said))
    assert is_subsequence(said, given_)


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(character in rest for character in part)


@given(st.text())
def test_any_text_splits(text: str) -> None:
    """No text makes the splitter fail, and no sentence is empty or unreadable."""
    assert all(sentence.strip() and LETTER_OR_DIGIT.search(sentence) for sentence in sentences(text))


@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "。",
        "\n",
        "\u0300\u0323",
        "```\n",
        "1. ",
        '"',
        "'\".",
        "…",
        "?!",
        "* ",
        "|-|\n",
        "-1",
        "a b\n",
        "e.g. ",
        "甲：\n",
        '."[1]',
    ],
    ids=repr,
)
def test_reading_takes_linear_time(piece: str) -> None:
    """Four times the text takes no more than some four times the time."""

    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        start = time.process_time()
        sentences(text)
        normalise(text)
        language_of(text)
        return time.process_time() - start

    assert seconds(400_000) < 8 * seconds(100_000) + 1


# --- quotes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passage", "quote"),
    [
        ("不建议给大灯贴膜，会影响散热。", "会影响散热"),
        ("不建议给大灯贴膜，会影响散热。", "不建议给大灯贴膜会影响散热"),
        ("座位 ＡＢＣ１２ 在这里", "abc12在这里"),
        ("The Quick  Brown\nFox", "the quick brown fox"),
        ("人口12,000人左右", "人口12000人"),
        ("人口12000人左右", "人口12,000人"),
        ("不建议给大灯贴膜，因为会影响散热。", "不建议…会影响散热"),
        ("不建议给大灯贴膜，因为会影响散热。", "不建议[...]影响散热"),
        ("不建议给大灯贴膜，因为会影响散热。", "大灯贴膜......散热"),
        ("cafe\u0301 olé", "café ole\u0301"),
        ("气温－５度以下", "气温-5度"),
        ("气温−5度以下", "气温-5度"),
        ("2008-08-08开幕", "2008/08/08开幕"),
        ("第三", "第三"),
        ("甲…乙…丙…丁戊", "甲…乙…丙…丁"),
        ("约30%的人", "约３０％的人"),
        ("120个座位，20个座位", "20个座位"),
    ],
)
def test_quote_stands_there(passage: str, quote: str) -> None:
    """Width, case, spacing, punctuation and grouping do not matter; … joins parts in order."""
    assert contains_quote(passage, quote)


@pytest.mark.parametrize(
    ("passage", "quote"),
    [
        ("长1.5米左右", "长15米左右"),
        ("长15米左右", "长1.5米左右"),
        ("气温-5度以下", "气温5度以下"),
        ("气温-5度以下", "5度以下"),
        ("共有120个座位", "20个座位"),
        ("误差0.25毫米", "25毫米左右"),
        ("面积3-5平方米", "面积35平方米"),
        ("第1、5条规定", "第15条规定"),
        ("版本1.2.3发布", "版本12.3发布"),
        ("不建议贴膜", "建议不贴膜"),
        ("会影响散热，不建议贴膜", "不建议贴膜…会影响散热"),
        ("不建议给大灯贴膜", "不"),
        ("不建议给大灯贴膜", "大灯"),
        ("不建议给大灯贴膜", "不…议…大…膜"),
        ("不建议给大灯贴膜", ""),
        ("不建议给大灯贴膜", "……"),
        ("", "不建议给大灯贴膜"),
        ("占30%的人口", "占30的人口"),
        ("全长2000", "全长200"),
    ],
)
def test_quote_does_not_stand_there(passage: str, quote: str) -> None:
    """Another number, another order, scraps and nothing at all are no quotation."""
    assert not contains_quote(passage, quote)


words = st.lists(
    st.one_of(
        st.text("甲乙丙丁戊己", min_size=1, max_size=6),
        st.integers(0, 99999).map(str),
        st.decimals(0, 100, places=1).map(str),
        st.sampled_from(["，", "。", " ", "（", "”", "、", "\n", "：", "Abc", "％"]),
    ),
    min_size=1,
    max_size=30,
)


@given(words, st.data())
def test_any_piece_is_a_quote(pieces: list[str], data: st.DataObject) -> None:
    """Whatever runs from the beginning of one word to the end of another verifies, if it is long enough."""
    start = data.draw(st.integers(0, len(pieces) - 1))
    end = data.draw(st.integers(start + 1, len(pieces)))
    joined = [f"{piece}，" for piece in pieces]
    quote = "".join(joined[start:end])
    if len(normalise(quote)) >= 4:
        assert contains_quote("".join(joined), quote)


@given(st.text("甲乙丙", min_size=3), st.integers(10, 10**6), st.text("丁戊己", min_size=3), st.data())
def test_a_changed_digit_is_no_quote(before: str, number: int, after: str, data: st.DataObject) -> None:
    """A quotation with one digit changed, dropped or added does not verify."""
    digits = str(number)
    at = data.draw(st.integers(0, len(digits) - 1))
    other = data.draw(st.sampled_from([d for d in "0123456789" if d != digits[at]] + [""]))
    changed = digits[:at] + other + digits[at + 1 :]
    assert contains_quote(f"{before}{digits}{after}", f"{before}{digits}{after}")
    assert not contains_quote(f"{before}{digits}{after}", f"{before}{changed}{after}")
    assert not contains_quote(f"{before}{digits}{after}", f"{changed}{after}")


@given(st.text(), st.text())
def test_any_texts_can_be_compared(passage: str, quote: str) -> None:
    """No pair of texts makes the comparison fail."""
    assert contains_quote(passage, quote) in (True, False)


@given(st.text(min_size=900, max_size=1100), st.text(max_size=50))
def test_folding_in_pieces_changes_nothing(long: str, short: str) -> None:
    """A text that is folded piece by piece reads as one folded whole, as far as quotations go."""
    import unicodedata

    whole = unicodedata.normalize("NFKC", long * 2 + short)
    assert unicodedata.normalize("NFKC", fold(long * 2 + short)) == whole


def test_named_passage_is_tried_first() -> None:
    """The passage that the judge named wins over an earlier one; a wrong or absent name is put right."""
    passages = ["会影响散热。", "膜会影响散热。", "其他内容"]
    assert find_quote(passages, "会影响散热", 1) == 1
    assert find_quote(passages, "会影响散热", 2) == 0
    assert find_quote(passages, "会影响散热", 99) == 0
    assert find_quote(passages, "会影响散热", -1) == 0
    assert find_quote(passages, "会影响散热") == 0
    assert find_quote(passages, "没有这句话") is None
    assert find_quote([], "会影响散热") is None


@pytest.mark.parametrize(
    ("passage", "quote"),
    [
        ("The pass costs €100 a year.", "The pass costs $100 a year."),
        ("Keep it below: <5 mg per litre.", "Keep it below: >5 mg per litre."),
        ("误差不超过5%。", "误差不超过5‰。"),
        ("误差为5‰左右。", "误差为5左右。"),
    ],
)
def test_what_is_said_of_a_number_belongs_to_a_quote(passage: str, quote: str) -> None:
    """Another currency, the other side of a limit, per mille for per cent: not what the passage says."""
    assert contains_quote(passage, passage)
    assert not contains_quote(passage, quote)
