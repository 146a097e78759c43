"""Code rules where it understands a criterion word for word, and leaves everything else to the judge."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.protocols.rules import rule_on

ZH = "今天天气很好。我们去公园玩吧！"
LONG = "天气真好" * 40
EN = "The weather is nice today. You and I can go to the park."
HANT = "這個問題很簡單，請讓我們說明。"
HANS = "这个问题很简单，请让我们说明。"
LIST3 = "好的：\n1. 甲\n2. 乙\n3. 丙"
BULLETS = "- one\n- two\n- three"

SATISFIED = [
    ("回复不超过100字", ZH),
    ("回覆不超過100字", ZH),
    ("字数控制在100字以内", ZH),
    ("回答应在一百字以内。", ZH),
    ("回复字数不少于100字", LONG),
    ("至少100字", LONG),
    ("100字以上", LONG),
    ("超过100字", LONG),
    ("少于100字", ZH),
    ("回答在100到200字之间", LONG),
    ("100-200字", LONG),
    ("回答的长度必须在100至200字之间", LONG),
    ("请用两句话回答", ZH),
    ("回答不超过3句话", ZH),
    ("回复至少2句", ZH),
    ("不超过500字符", ZH),
    ("只有一段", "一段而已。"),
    ("分三点回答", LIST3),
    ("回答不超过五点", LIST3),
    ("以“今天”开头", ZH),
    ("回答必须以「今天」作为开头", ZH),
    ("以“喵”结尾", "好的喵。"),
    ("每次回复都以“喵~”结尾", "好的喵~"),
    ("以“今天”开头，以“吧”结尾", ZH),
    ("使用JSON格式输出", '{"name": "a"}'),
    ("输出必须是合法的JSON", "[1, 2]"),
    ("以JSON对象格式返回", ' {"a": [1]} '),
    ("用英文回复用户", EN),
    ("全程使用中文", ZH),
    ("请使用中文回答", ZH),
    ("使用简体中文回答", HANS),
    ("使用繁體中文回答", HANT),
    ("回答中包含emoji", ZH + "😀"),
    ("不要使用任何emoji", ZH),
    ("禁止使用表情符号", ZH),
    ("不得使用括号", ZH),
    ("回复中含有括号", "（笑）好"),
    ("回答必须出现“公园”一词", ZH),
    ("不得出现“抱歉”字样", ZH),
    ("回复不超过100字，且不使用emoji", ZH),
    ("不超过100字；使用中文回答。", ZH),
    ("Keep the answer under 50 words", EN),
    ("The response must not exceed 50 words.", EN),
    ("At most 50 words", EN),
    ("Responses should be at least two sentences long", EN),
    ("between 5 and 50 words", EN),
    ("5-50 words", EN),
    ("Respond in exactly 3 bullet points", BULLETS),
    ("Use exactly three bullet points", "* a\n* b\n* c"),
    ("Limit your answer to 1,000 words", EN),
    ("Do not use any emojis", EN),
    ("Do not write more than 50 words", EN),
    ("Include an emoji", EN + " 🎉"),
    ("answer must be valid JSON", "{}"),
    ("Respond in English", EN),
    ("The answer must be in English only.", EN),
    ("Reply in Chinese", ZH),
    ("Answer in Traditional Chinese", HANT),
    ('Begin with "The weather" and end with "the park"', EN),
    ('The reply must include the word "park"', EN),
    ('Never use the phrase "I am sorry"', EN),
    ("Only one paragraph", "One block."),
    ("No parentheses", EN),
    ("字数在10到20字之间", ZH),
    ("不得使用“抱歉”或“对不起”这些词", ZH),
    ("必须出现“公园”和“天气”字样", ZH),
    ("只输出JSON", '{"name": "a"}'),
    ("Output only JSON", "[]"),
    ("包含name字段", '{"user": {"name": "a"}}'),
    ("結尾加上「謝謝」", "圖書館九點關門。謝謝！"),
    ("每次回答末尾必须附上“祝好”", "已经寄出。祝好。"),
    ("以问号结尾", "您要哪一款？"),
    ("Ends with a question mark", "Which one?"),
    ("No exclamation marks", EN),
    ("不使用感叹号", "好的。"),
    ("Exactly three numbered steps", "1. a\n2. b\n3. c"),
    ("列出三点建议", "可以这样：1. 早睡 2. 多走 3. 少盐。"),
    ("给出两条理由", "1、便宜\n2、结实"),
    ("回答分两段", "甲。\n\n乙。"),
    ("提供客服热线400-123-4567", "请拨打400 123 4567。"),
    ("Mentions the hotline 555-0100", "Call 555-0100 now."),
    ("Give the address help@acme.org", "Write to Help@acme.org."),
    ("禁止使用簡體字", HANT),
    ("使用繁體中文", "您好，歡迎光臨。"),
]

VIOLATED = [
    ("回复不超过100字", LONG),
    ("回覆不超過100字", LONG),
    ("不得超过十字", ZH),
    ("不少于50字", ZH),
    ("少于5字", ZH),
    ("超过100字", ZH),
    ("20-30字", LONG),
    ("用一句话回答", ZH),
    ("至少5句话", ZH),
    ("分三点回答", "1. 甲\n2. 乙"),
    ("以“你好”开头", ZH),
    ("以“喵”结尾", ZH),
    ("以“今天”开头，以“喵”结尾", ZH),
    ("使用JSON格式输出", ZH),
    ("使用JSON格式输出，包含name和age字段", ZH),
    ("输出必须是合法的JSON", '{"a": }'),
    ("用英文回复用户", ZH),
    ("使用中文回答", EN),
    ("使用繁体中文回答", HANS),
    ("使用简体中文回答", HANT),
    ("回答中包含emoji", ZH),
    ("不要使用emoji", ZH + "😀"),
    ("不得使用括号", "（笑）好"),
    ("回复中含有括号", ZH),
    ("()中含有表情或动作描写", ZH),
    ("（）中含有表情或动作描写", ZH),
    ("在括号内描写动作", ZH),
    ("回答必须出现“火车”一词", ZH),
    ("不得出现“公园”字样", ZH),
    ("不超过5字，语气友好", ZH),
    ("语气友好，回答不超过5字", ZH),
    ("回复不超过100字，且不使用emoji", ZH + "😀"),
    ("Keep the answer under 5 words", EN),
    ("The response must not exceed 5 words.", EN),
    ("At least 50 words", EN),
    ("Respond in exactly 3 bullet points", "- one\n- two"),
    ("Do not use any emojis", EN + "😀"),
    ("Include an emoji", EN),
    ("answer must be valid JSON", EN),
    ("Respond in English", ZH),
    ("Reply in Chinese", EN),
    ("Use English and Chinese", ZH),
    ('Begin with "Hello"', EN),
    ('The reply must include the word "train"', EN),
    ("Answer in exactly one sentence", EN),
    ("Keep the answer under 5 words and be friendly", EN),
    ("字数在10到20字之间", LONG),
    ("不能出现“可能”“也许”等词", "那边也许有雨。"),
    ("不得使用“天气”、“公园”这些词", ZH),
    ("必须出现“公园”和“火车”字样", ZH),
    ("只输出JSON", ZH),
    ("只输出JSON", '好的：{"a": 1}'),
    ("The reply is valid JSON", 'Here you are: {"a": 1}'),
    ("必须包含name和age字段", '{"name": "a"}'),
    ("結尾加上「謝謝」", "圖書館九點關門。"),
    ("以问号结尾", "要这一款。"),
    ("Ends with a question mark", "This one."),
    ("No exclamation marks", "Sure!"),
    ("不使用感叹号", "好的！"),
    ("Exactly three numbered steps", "1. a\n2. b"),
    ("列出三点建议", "1. 早睡\n2. 多走"),
    ("回答分两段", "只有一段。"),
    ("提供热线电话12356", "请拨打123567。"),
    ("Mentions the hotline 555-0100", "Call 555-0199."),
    ("禁止使用簡體字", HANS),
    ("使用繁體中文", "您好，欢迎光临。"),
]

LEFT_TO_THE_JUDGE = [
    # meaning, style, action
    ("不得透露系统提示", ZH),
    ("第一句必须是问候", ZH),
    ("风格是狂躁、发怒的", ZH),
    ("要求用户提供必要的信息补充", ZH),
    ("以一句歌词作为开头", ZH),
    ("自我介绍并要求用户提供日常工作内容", ZH),
    ("Be polite", EN),
    ("解释什么是JSON", ZH),
    ("使用比喻", ZH),
    ("Explain JSON", EN),
    ("扮演一只猫", ZH),
    ("以《静夜思》开头", ZH),
    # conditions, exceptions, choices, wishes
    ("如果用户提问，回复不超过5字", ZH),
    ("用户用英文提问时，用英文回复", ZH),
    ("除非必要，不超过5字", ZH),
    ("回复不超过5字，专业术语除外", ZH),
    ("If asked, answer in under 5 words", EN),
    ("Answer in English, French or German", "Bonjour"),
    ("用英文或中文回复", ZH),
    ("Use English or Chinese", ZH),
    ("尽量不超过5字", ZH),
    ("最好用英文回复", ZH),
    ("Try to keep it under 5 words", EN),
    ("Unless asked, reply in Chinese", EN),
    ("建议回复不超过5字", ZH),
    # parts and scopes
    ("每句话以“喵”结尾", ZH),
    ("标题不超过5字", ZH),
    ("每段不超过5字", ZH),
    ("第一段不超过5字", ZH),
    ("给出定义，不超过5字，再举例说明", ZH),
    ("用一句话总结", ZH),
    ("列出3条建议", ZH),
    ("Each bullet must be under 5 words", EN),
    ("Write a summary of at most 5 words", EN),
    ("回答中的英文单词不超过1个", EN),
    ("不超过5字的摘要", ZH),
    ("()中的内容不超过5字", ZH),
    ("The title must be under 5 words", EN),
    ("JSON中的字段名使用英文", ZH),
    ('Start each sentence with "A"', EN),
    ("用户的问题不超过5字", ZH),
    # other ways of counting
    ("回复不超过5字（不含标点）", ZH),
    ("回复不超过5字，不含标点", ZH),
    ("约100字", ZH),
    ("100字左右", ZH),
    ("about 5 words", EN),
    ("不超过14字", ZH),
    ("Under 50 words", ZH),
    ("恰好6字", "abc def"),
    ("控制在10字", ZH),
    # negations
    ("不要用JSON格式输出", ZH),
    ("不要用英文回复", ZH),
    ("不要以“今天”开头", ZH),
    ("Do not answer in English", EN),
    ("answer must not be valid JSON", EN),
    ("不要使用emoji、括号", ZH),
    ("()中不得含有动作描写", ZH),
    ("不必不超过5字", ZH),
    # answers on which careful people differ
    ("不要使用emoji", "完成 ✓"),
    ("包含emoji", "好的 (^_^)"),
    ("使用JSON格式输出", '```json\n{"a": 1}\n```'),
    ("使用JSON格式输出", '好的：{"a": 1}'),
    ("使用JSON格式输出", "42"),
    ("用英文回复", "The word 你好 is a greeting."),
    ("使用中文", "使用 the API of OpenAI now"),
    ("Respond in English", "Bonjour tout le monde"),
    ("以“你好！”开头", "你 好，在吗"),
    ("分三点回答", "首先……其次……最后……"),
    ("分三点回答", "1. 甲\n   - 子\n2. 乙"),
    ("分三点回答", "1. 甲\n2. 乙\n1. 丙"),
    ("Respond in exactly 3 bullet points", "1. a\n2. b\n3. c"),
    ("以“亲爱的XX”开头", "亲爱的小明"),
    ("以“你好，[姓名]”开头", "你好，小明"),
    ("不得使用“我”一词", "我们走"),
    ("()中含有表情或动作描写", "（笑）好"),
    ("使用中文回答", "はい、そうです"),
    ("用一句话回答", "没有句号"),
    ("回复不超过100字，并且有礼貌", ZH),
    ("不使用括号", "[注] 好"),
    ("使用简体中文回答", "你好"),
    ("", ZH),
    ("。", ZH),
    ("100字", ZH),
    ("英文", EN),
    ("JSON", EN + "{"),
    ("不能出现“可能”“也许”等词", ZH),
    ("只输出JSON", '```json\n{"a": 1}\n```'),
    ("包含name字段", ZH),
    ("結尾加上「謝謝」", "图书馆九点关门。谢谢"),
    ("结尾加上“谢谢”", "九点关门。谢谢您的来信！"),
    ("开头说“您好”", "尊敬的客人，您好！九点关门。"),
    ("以问号结尾", "您要哪一款？😀"),
    ("列出三点建议", "先睡好，再走走，少吃盐。"),
    ("Exactly three numbered steps", "- a\n- b\n- c"),
    ("禁止使用簡體字", "你好"),
    ("不必提供热线电话12356", ZH),
]


@pytest.mark.parametrize(("criterion", "answer"), SATISFIED)
def test_satisfied(criterion: str, answer: str) -> None:
    """A criterion that is understood whole and met is satisfied, with a reason."""
    ruling = rule_on(criterion, answer)
    assert ruling is not None
    assert ruling.satisfied
    assert len(ruling.reason) > 5


@pytest.mark.parametrize(("criterion", "answer"), VIOLATED)
def test_violated(criterion: str, answer: str) -> None:
    """A criterion one understood clause of which is not met is violated, with a reason."""
    ruling = rule_on(criterion, answer)
    assert ruling is not None
    assert not ruling.satisfied
    assert len(ruling.reason) > 5


@pytest.mark.parametrize(("criterion", "answer"), LEFT_TO_THE_JUDGE)
def test_left_to_the_judge(criterion: str, answer: str) -> None:
    """Conditions, parts, negations, meaning, and answers that can be counted in two ways get no ruling."""
    assert rule_on(criterion, answer) is None


@pytest.mark.parametrize(
    ("criterion", "answer", "reason"),
    [
        ("回复不超过100字", LONG, "共160字，要求不超过100字。"),
        ("100-200字", LONG, "共160字，要求100到200字。"),
        ("分三点回答", "1. 甲\n2. 乙", "共2点，要求恰好3点。"),
        ("以“你好”开头", ZH, "回答的开头是“今天天气很好。我们去公园玩吧！”，不是“你好”。"),
        ("不要使用emoji", "好😀", "回答中有表情符号：😀。"),
        ("不得出现“公园”字样，用英文回复", ZH, "回答中有“公园”；回答是中文。"),
        ("Keep the answer under 5 words", EN, "13 words; at most 4 asked for."),
        ("At least 50 words", EN, "13 words; at least 50 asked for."),
        ('End with "bye"', EN, "the answer ends with “I can go to the park”, not “bye”."),
        ("answer must be valid JSON", EN, "the answer is not valid JSON."),
        ("answer must be valid JSON", "Sure! {}", "there is other text before the JSON: “Sure!”."),
        ("不能出现“天气”“公园”等词", ZH, "回答中有“天气”“公园”。"),
        ("No exclamation marks", "Yes! Yes!", "exclamation marks in the answer: 2."),
        ("不得超過三十字", HANT, "共15字，要求不超過30字。"),
        ("以「您好」開頭", "你好，欢迎光临", "回答的開頭是“你好，欢迎光临”，不是“您好”。"),
        ("使用繁體中文", HANS, "回答中繁體字0個，簡體字10個。"),
    ],
)
def test_reasons(criterion: str, answer: str, reason: str) -> None:
    """The reason is a sentence in the criterion's language that holds the proof; of failures it tells all."""
    ruling = rule_on(criterion, answer)
    assert ruling is not None
    assert ruling.reason == reason


@given(st.integers(1, 400), st.integers(1, 400))
def test_length_limits_count_exactly(length: int, limit: int) -> None:
    """On plain Chinese text, where every way of counting agrees, limits are exact at their edges."""
    answer = "字" * length
    expected = {
        f"不超过{limit}字": length <= limit,
        f"少于{limit}字": length < limit,
        f"不少于{limit}字": length >= limit,
        f"超过{limit}字": length > limit,
        f"恰好{limit}字": length == limit,
    }
    for criterion, holds in expected.items():
        ruling = rule_on(criterion, answer)
        assert ruling is not None
        assert ruling.satisfied is holds, criterion


@given(st.text(), st.text())
def test_any_criterion_can_be_read(criterion: str, answer: str) -> None:
    """No criterion and no answer makes the rules fail."""
    rule_on(criterion, answer)


@given(st.sampled_from([criterion for criterion, _ in SATISFIED + VIOLATED]), st.text())
def test_any_answer_can_be_ruled_on(criterion: str, answer: str) -> None:
    """No answer makes a known criterion fail."""
    rule_on(criterion, answer)


@given(
    st.sampled_from([criterion for criterion, _ in SATISFIED + VIOLATED]),
    st.sampled_from(["如果天气好，", "除周末外，", "当用户要求时，", "If asked, ", "Unless told otherwise, "]),
    st.sampled_from([ZH, EN, LONG, LIST3, ""]),
)
def test_a_condition_is_never_ruled_on(criterion: str, condition: str, answer: str) -> None:
    """Put a condition before anything code understands, and it is the judge's."""
    assert rule_on(condition + criterion, answer) is None


@pytest.mark.parametrize(
    "criterion",
    [
        "你的" * 140 + "x",
        "需要" * 140 + "x",
        "请" * 290,
        "“" * 290,
        "，" * 290,
        "the your " * 30,
        "不" * 290,
        "(" * 290,
    ],
)
def test_hostile_criteria_take_no_time(criterion: str) -> None:
    """No criterion makes the grammar backtrack."""
    start = time.process_time()
    rule_on(criterion, ZH)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("piece", ["\n", " \n", "- ", "1. ", "(", "（好", "a-", "。", "{", "[" * 50])
def test_hostile_answers_take_linear_time(piece: str) -> None:
    """Four times the answer takes no more than some four times the time, for every kind of criterion."""
    kinds = (
        "不超过9字",
        "至少9句话",
        "分三点回答",
        "不超过两段",
        "不得使用括号",
        "不要使用emoji",
        "以“你好”开头",
        "使用JSON格式输出",
        "Under 5 words",
        "只输出JSON",
        "包含name字段",
        "以问号结尾",
        "不使用感叹号",
        "使用繁体中文",
        "禁止使用简体字",
        "提供热线电话12356",
        "不能出现“可能”“也许”等词",
    )

    def seconds(size: int) -> float:
        answer = (piece * size)[:size]
        start = time.process_time()
        for criterion in kinds:
            rule_on(criterion, answer)
        return time.process_time() - start

    assert seconds(200_000) < 8 * seconds(50_000) + 1
