"""The embedded judge on `dialogue`: the basis of a criterion in the system prompt, and what an answer visibly did."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import steelyard
from feeding import seed
from steelyard.judges.embedded import EmbeddedJudge
from steelyard.judges.embedded.basis import prompt_lines
from steelyard.judges.embedded.dialogue import compliance, constraints_of, content_of, validity
from steelyard.judges.embedded.support import read
from steelyard.protocols.common import numbered
from steelyard.protocols.transcripts.dialogue import render_json
from steelyard.records import Criterion, DialogueSample
from steelyard.tasks import ComplianceData, ComplianceReply, ValidityData, ValidityVerdict
from steelyard.text import contains_quote, language_of

COOK = """# 角色
你是“老舵”，一名脾气火爆的船上厨师。
# 技能
1. 根据客人的口味推荐菜品，并说明做法。
2. 客人提到过敏时，先问清忌口。
# 限制
- 每次回复不超过60字。
- 以一句谚语结尾。
- 不得谈论政治话题。
- 称呼客人为“水手”。"""
TUTOR = """You are Ada, a patient maths tutor for children aged 8 to 12.

## Workflow
1. Greet the student and ask which topic they are working on.
2. Never give the final answer; guide with questions.
3. After three failed attempts, show a worked example.

## Style
Warm and encouraging. Use at most 80 words. Do not use emoji.
If the student asks about anything other than maths, politely decline."""
SHOP = """你是線上書店的客服「小書」。回答必須使用繁體中文，語氣親切。
推薦書籍時列出書名、作者與價格，最多三本。
若查無庫存，請引導使用者留下電子郵件。不可透露進貨成本。"""
COUNSEL = (
    "你是一位心理咨询师，善于倾听。对话开始时先表达理解，再给出不超过两条建议；遇到自伤风险时，必须提供热线电话12356。"
)


def basis_of(prompt: str, criterion: str) -> ValidityVerdict:
    data = ValidityData(system_prompt=prompt, criteria=numbered([criterion]))
    return validity(data, "en" if language_of(prompt) == "en" else "zh", read).criteria[0]


# --- validity --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "criterion"),
    [
        (COOK, "回复不超过60字 | 长度约束"),
        (COOK, "以一句谚语结尾 | 内容约束"),
        (COOK, "语气急躁、火爆 | 风格约束"),
        (COOK, "推荐菜品并说明做法 | 内容约束"),
        (COOK, "称呼客人为“水手”"),
        (COOK, "客人提到过敏时询问忌口 | 动作约束"),
        (COOK, "不谈论政治 | 内容约束"),
        (TUTOR, "Greets the student | action"),
        (TUTOR, "Does not give the final answer | content"),
        (TUTOR, "Uses no more than 80 words | length"),
        (TUTOR, "Shows a worked example after three failed attempts"),
        (TUTOR, "Declines questions that are not about maths | scope"),
        (SHOP, "列出書名、作者與價格 | 內容約束"),
        (SHOP, "推薦不超過三本書"),
        (SHOP, "不透露進貨成本"),
        (SHOP, "使用繁體中文 | 語言"),
        ("请用中文回答，回复不得超过三十字，结尾要说谢谢。", "使用中文 | 语言"),
        (COUNSEL, "先表达理解 | 动作约束"),
        (COUNSEL, "遇到自伤风险时提供热线电话12356"),
    ],
)
def test_grounded_criteria_are_valid_with_a_quote(prompt: str, criterion: str) -> None:
    """What the prompt says, in these or other words, is valid; place and verbatim quote are given."""
    found = basis_of(prompt, criterion)
    assert found.valid
    assert found.quote
    assert found.quote in prompt
    assert contains_quote(prompt, found.quote)
    assert found.place


@pytest.mark.parametrize(
    ("prompt", "criterion", "amiss"),
    [
        (COOK, "回复不超过100字 | 长度约束", "100"),
        (COOK, "以一句关于大海的谚语结尾 | 内容约束", "大海"),
        (COOK, "推荐菜品并报出价格 | 内容约束", "报出价格"),
        (COOK, "称呼客人为“船长”", "船长"),
        (COOK, "可以谈论政治话题", "不得谈论政治话题"),
        (COOK, "使用表情符号", "使用表情符号"),
        (TUTOR, "Uses no more than 50 words | length", "50"),
        (TUTOR, "Gives the final answer directly | content", "final answer"),
        (TUTOR, "Shows a worked example after two failed attempts", "2"),
        (TUTOR, "Guides with questions and cites a textbook | content", "cites a textbook"),
        (TUTOR, "Ends with a motivational quote | content", "motivational quote"),
        (SHOP, "推薦不超過五本書", "5"),
        (SHOP, "提供會員折扣碼", "提供會員折扣碼"),
        (COUNSEL, "遇到自伤风险时提供热线电话110", "110"),
        (COUNSEL, "推荐一款冥想应用", "推荐一款冥想应用"),
    ],
)
def test_what_has_no_basis_is_invalid_and_named(prompt: str, criterion: str, amiss: str) -> None:
    """Another number, quotation or demand, the opposite, or half without a basis: invalid, and the reason says what."""
    found = basis_of(prompt, criterion)
    assert not found.valid
    assert amiss in found.reason
    assert not found.quote


@pytest.mark.parametrize(
    ("prompt", "criterion", "place"),
    [
        (COOK, "客人提到过敏时询问忌口", "技能第2条"),
        (COOK, "语气火爆 | 风格约束", "角色"),
        (TUTOR, "Greets the student", "Workflow 1"),
        (TUTOR, "Do not use emoji", "Style"),
        (SHOP, "不透露進貨成本", "第3行"),
    ],
)
def test_places(prompt: str, criterion: str, place: str) -> None:
    """The place is heading and number, or the heading, or the line."""
    assert basis_of(prompt, criterion).place == place


def test_lines_of_a_prompt() -> None:
    """Headings of several kinds are found, sentences stand apart, and every piece is verbatim."""
    prompt = "你是客服。要有礼貌！\n【流程】\n（1）先问好。\n**风格**：亲切\n规则：不讨价还价；不透露成本"
    lines = prompt_lines(prompt)
    assert [line.place for line in lines] == ["第1行", "第1行", "流程", "流程第1条", "风格", "规则", "规则"]
    assert all(line.text in prompt for line in lines)


def test_an_empty_prompt_grounds_nothing() -> None:
    """Without a system prompt no criterion is valid."""
    assert not basis_of("", "以一句谚语结尾").valid


def test_constraints() -> None:
    """The type is no constraint; clauses are; a condition stays with what it governs."""
    assert content_of("a | b | 内容约束") == "a | b"
    assert constraints_of("向用户道歉并询问订单号 | 动作约束") == ["向用户道歉", "询问订单号"]
    assert constraints_of("用户提到过敏时，询问忌口") == ["用户提到过敏时，询问忌口"]
    assert constraints_of("列出书名、作者与价格") == ["列出书名、作者与价格"]
    assert constraints_of("") == [""]


# --- compliance ------------------------------------------------------------------------------------


def replied(prompt: str, answer: str, criterion: str) -> ComplianceReply:
    data = ComplianceData(
        system_prompt="", history=(), turn=1, prompt=prompt, answer=answer, criteria=numbered([criterion])
    )
    return compliance(data, "en" if language_of(criterion) == "en" else "zh", read)


def complies(prompt: str, answer: str, criterion: str) -> str:
    """fully, partly, no; vacuous where not triggered; open where the judge cannot tell."""
    reply = replied(prompt, answer, criterion)
    if reply.unsure:
        assert not reply.criteria
        assert reply.unsure[0].reason
        return "open"
    (label,) = reply.criteria
    assert label.reason
    return label.complies if label.triggered else "vacuous"


@pytest.mark.parametrize(
    ("criterion", "does", "does_not"),
    [
        ("向用户问好 | 动作约束", "您好，请问您想订哪天的房间？", "请问您想订哪天的房间？"),
        ("自我介绍 | 动作约束", "我是小云，很高兴为您服务。", "已经订好了。"),
        ("要求用户提供订单号 | 动作约束", "请问您的订单号是多少？", "退货请点击“申请退货”。"),
        ("拒绝回答用户的请求 | 内容约束", "抱歉，我只能回答旅游问题。", "代码如下：print(1)"),
        ("以列表形式回答 | 格式约束", "1. 断桥\n2. 雷峰塔", "有断桥和雷峰塔。"),
        ("不要使用列表 | 格式约束", "有断桥和雷峰塔。", "- 断桥\n- 雷峰塔"),
        ("称呼用户为“主人” | 内容约束", "主人，早上好。", "早上好。"),
        ("不承认自己是AI | 角色约束", "我是村口的老木匠。", "作为一个人工智能语言模型，我没有名字。"),
        ("以问句结尾", "推荐雷峰塔，您觉得怎么样？", "推荐雷峰塔。"),
        ("()中含有表情或动作描写 | 内容约束", "推荐雷峰塔(微笑)。", "推荐雷峰塔。"),
        ("使用日语回答 | 语言", "この製品は三千円です。", "这款三千元。"),
        ("使用第一人称叙述 | 视角", "我曾在长安城中漫步。", "长安是唐朝的都城。"),
        ("向用戶表達祝福 | 動作約束", "不客氣，祝您生活愉快！", "不客氣。"),
        ("回答简洁 | 风格约束", "推荐雷峰塔。", "推荐雷峰塔。" * 150),
        ("不使用Markdown格式 | 格式", "手机很轻。", "## 手机\n**很轻**"),
        ("Asks about allergies | action", "Any allergies I should know about?", "Stew tonight."),
        ("Refuses the request", "Sorry, I can't help with that.", "First install aircrack."),
        ("Uses bullet points | format", "- Drink water\n- Sleep", "Drink water and sleep."),
        ('Addresses the user as "captain" | content', "Drink water, captain.", "Drink water."),
        ("Never reveals that it is an AI | persona", "I am Bosun.", "As an AI language model, I have no name."),
        ("Ends with a question | format", "Drink water. Would you like more?", "Drink water."),
        ("Introduces itself as Ada | persona", "Hi! I'm Ada.", "Sure!"),
        ("Thanks the user | action", "Thank you for asking.", "Drink water."),
        ("不能说“可能”“也许” | 内容", "明天有雨。", "明天也许有雨。"),
        ("回答中包含“天气”和“公园”", "天气好就去公园。", "天气好就去。"),
        ('Never says "maybe" or "perhaps"', "It rains.", "Perhaps it rains."),
        ("每句话以“喵”结尾 | 格式", "（摇尾巴）你好喵。今天真好喵！（跳）", "你好喵。今天真好。"),
        ('Ends every sentence with "arr"', "Ahoy, arr! Sail on, arr.", "Ahoy, arr! Sail on."),
        ("以“哼”结尾", "不去。哼！", "哼，不去。"),
        ("结尾加上「謝謝」", "九点关门。谢谢", "九点关门。"),
        ("结尾加上“谢谢”", "九点关门。谢谢您的来信！", "谢谢您的来信！九点关门。"),
        ("末尾附上一个问题", "九点关门。您几点来？", "九点关门。"),
    ],
)
def test_what_shows_is_decided(criterion: str, does: str, does_not: str) -> None:
    """A visible act, form or word decides a criterion both ways."""
    assert complies("问题", does, criterion) == "fully"
    assert complies("问题", does_not, criterion) == "no"


@pytest.mark.parametrize(
    ("criterion", "answer"),
    [
        ("语气幽默风趣 | 风格约束", "从前有座山，山里有座庙。"),
        ("回答专业、准确 | 质量", "这款手机很轻。"),
        ("以一句歌词作为开头 | 内容约束", "“阳光总在风雨后！”你好。"),
        ("使用文言文回答 | 语言约束", "唐朝建立于618年。"),
        ("说明电池容量 | 内容", "这款手机很轻。"),
        ("使用列表或表格 | 格式", "推荐雷峰塔。"),
        ("询问用户的预算", "请问您喜欢什么颜色？"),
        ("回答简洁 | 风格约束", "推荐雷峰塔。" * 40),
        ("Speaks gruffly | style", "Stew. Don't ask twice!"),
        ("Maintains a warm and empathetic tone | tone", "Drink water."),
        ("Does not give the answer directly | pedagogy", "What do you think it is?"),
    ],
)
def test_tone_and_the_like_stay_open(criterion: str, answer: str) -> None:
    """What takes an ear for tone, or more than the surface shows, is left open with a reason, never guessed."""
    assert complies("介绍一下", answer, criterion) == "open"


@pytest.mark.parametrize(
    ("criterion", "says", "says_otherwise"),
    [
        ("回答说明：青石塔高45米 | 内容约束", "青石塔高45米，塔身用青砖砌成。", "青石塔高450米，塔身用青砖砌成。"),
        ("提到票价为100元 | 内容约束", "票价为100元，另有200元的套票。", "票价为120元，另有200元的套票。"),
        ("说明自习室设在图书馆东侧第二层", "自习室设在图书馆东侧第二层。", "自习室设在图书馆东侧第三层。"),
        ("States that the ferry leaves at 9 pm", "The ferry leaves at 9 pm sharp.", "The ferry leaves at 7 pm sharp."),
    ],
)
def test_what_is_to_be_said_must_be_said_rightly(criterion: str, says: str, says_otherwise: str) -> None:
    """The words are there, but another number in its place: that is not what was demanded."""
    assert complies("请问？", says, criterion) == "fully"
    assert complies("请问？", says_otherwise, criterion) == "no"


@pytest.mark.parametrize(
    ("criterion", "answer", "complied"),
    [
        (
            "The answer says: Breakfast is served from 7 to 10, and it is free for guests | content",
            "Good morning! Breakfast is served from 7 to 10 and is free for guests.",
            "fully",
        ),
        (
            "The answer says that breakfast is served from 7 to 10 o'clock | content",
            "Breakfast is served from 8 to 11 o'clock.",
            "no",
        ),
        ("States that the pool is closed | content", "You can park behind the hotel.", "no"),
        ("The answer does not say that the pool is closed | content", "You can park behind the hotel.", "fully"),
        ("The answer does not say that the pool is closed | content", "The pool is closed.", "no"),
        ("回答说明：门票80元，老人半价 | 内容约束", "门票80元一张，老人半价。", "fully"),
        ("回答說明：門票80元 | 內容約束", "門票60元一張。", "no"),
    ],
)
def test_a_statement_to_be_said_is_held_against_the_answer(criterion: str, answer: str, complied: str) -> None:
    """What is to be said is looked for in the answer as a claim in a passage; its commas do not cut it in pieces."""
    assert complies("请问？", answer, criterion) == complied


def test_a_condition_that_does_not_arise_is_vacuous() -> None:
    """Not called for: satisfied and marked so. Called for: what must be done decides."""
    rule = "If an allergy is mentioned, asks about it | action"
    assert complies("What's for supper?", "Stew tonight.", rule) == "vacuous"
    assert complies("I have a peanut allergy", "Stew tonight.", rule) == "no"
    assert complies("今晚吃什么？", "今晚吃炖肉。", "用户提到过敏时，询问忌口 | 动作约束") == "vacuous"


@pytest.mark.parametrize(
    ("criterion", "answer", "complied"),
    [
        ("动作描写放在（）中", "对不起，这件事不能谈。", "vacuous"),
        ("动作描写放在（）中", "（低头）对不起。", "fully"),
        ("动作描写放在（）中", "我低下头，叹了口气。对不起。", "open"),
        ("表情和动作写在括号里", "好的，三点见。", "vacuous"),
        ("Writes actions in parentheses", "See you at three.", "vacuous"),
    ],
)
def test_where_something_belongs_is_no_demand_for_it(criterion: str, answer: str, complied: str) -> None:
    """An answer without any action has none in the wrong place; an action told outside brackets is left open."""
    assert complies("你好", answer, criterion) == complied


def test_every_part_counts() -> None:
    """One part that fails fails the criterion, partly if another is met; one open part leaves it open."""
    both = "向用户道歉并询问订单编号 | 动作约束"
    assert complies("我想退货", "很抱歉，请提供您的订单编号。", both) == "fully"
    assert complies("我想退货", "请提供您的订单编号。", both) == "partly"
    assert complies("我想退货", "已办好。", both) == "no"
    assert complies("我想退货", "很抱歉，给您添麻烦了。", "向用户道歉，语气诚恳") == "open"


def test_a_place_in_the_answer() -> None:
    """What must stand at the end is not looked for at the beginning."""
    rule = "结尾感谢用户"
    body = "第一步打开盖子。第二步取出滤网。第三步冲洗干净。"
    assert complies("怎么清洗？", body + "谢谢您的提问！", rule) == "fully"
    assert complies("怎么清洗？", "谢谢您的提问！" + body, rule) == "no"


def test_reasons_show_the_words() -> None:
    """The reason quotes what in the answer decided, in the script of the criterion."""
    assert "(微笑)" in replied("", "好的(微笑)。", "()中含有表情或动作描写").criteria[0].reason
    assert replied("", "推薦雷峰塔。", "使用表格 | 格式約束").criteria[0].reason == "回答中看不到“表格”"
    assert replied("", "Hello 主人, how can I help?", "用英文回答").criteria[0].reason == "18个字母或汉字中有16个是英文"
    assert replied("", "不去。", "不提及“红果”").criteria[0].reason == "回答中没有：红果"
    assert "beyond this judge" in replied("", "Hm.", "Friendly tone").unsure[0].reason


def test_worked_example() -> None:
    """003: every criterion valid; what is decided agrees with the document, the lyric and the anger stay open."""
    sample, expected = seed("dialogue-angry-assistant")
    assert isinstance(sample, DialogueSample)
    wanted = {(item["turn"], item["id"]): item["labels"] for item in expected["items"]}
    open_items = []
    for turn, exchange in enumerate(sample.turns, start=1):
        data = ValidityData(system_prompt=sample.system_prompt, criteria=numbered(exchange.criteria))
        assert all(label.valid for label in validity(data, "zh", read).criteria)
        reply = compliance(
            ComplianceData(
                system_prompt=sample.system_prompt,
                history=(),
                turn=turn,
                prompt=exchange.prompt,
                answer=exchange.answer,
                criteria=numbered(exchange.criteria),
            ),
            "zh",
            read,
        )
        for label in reply.criteria:
            assert ("satisfied" if label.complies == "fully" else "violated") in wanted[turn, label.id]
        open_items += [(turn, one.id) for one in reply.unsure]
    assert open_items == [(1, 1), (2, 2)]


def test_open_criteria_in_the_reports() -> None:
    """What the judge cannot tell is unjudged in its own words, counts in no rate, and report 1 says 未判定."""
    sample, _ = seed("dialogue-angry-assistant")
    (verdict,) = steelyard.evaluate([sample], protocol="dialogue", judge=EmbeddedJudge())
    criteria = [item for item in verdict.items if isinstance(item, Criterion)]
    assert [item.label for item in criteria] == ["unjudged", "satisfied", "satisfied", "unjudged", "satisfied"]
    assert criteria[3].reason == "语气和风格超出本评判者的能力"
    assert all(item.validity == "valid" and item.quote_verified for item in criteria)
    assert verdict.status == "partial"
    assert verdict.scores["csr"] == 1
    report = json.loads(render_json(verdict))["evaluation_report"]
    results = [row["result"] for turn in report for row in turn["criteria_results"]]
    assert results == ["未判定", "符合", "符合", "未判定", "符合"]


@given(st.text(max_size=60), st.text(max_size=80), st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
def test_any_text_is_judged(prompt: str, answer: str, criterion: str) -> None:
    """Whatever the texts are, a criterion gets a label or a reason, and a valid one a quote that stands there."""
    reply = replied(prompt, answer, criterion)
    assert len(reply.criteria) + len(reply.unsure) == 1
    found = basis_of(prompt, criterion)
    assert not found.valid or (found.quote and found.quote in prompt)


@pytest.mark.parametrize("criterion", ["不" * 5000, "(" * 3000, "如果" * 2000 + "，", "a, " * 3000, "“" * 2000])
def test_hostile_criteria_take_no_time(criterion: str) -> None:
    """A criterion cannot make the patterns backtrack for ever."""
    replied("你好", "您好。" * 200, criterion)
    basis_of(COOK, criterion)
