"""The embedded judge on relevance: what a question asks for, and how a statement serves it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feeding import FIXTURES
from steelyard.judges.embedded.outright import spelt_out
from steelyard.judges.embedded.questions import question_of
from steelyard.judges.embedded.relevance import answers, level, on_topic
from steelyard.judges.embedded.voice import Voice, voice_for

# --- questions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("大灯是否可以贴膜", "yes_no"),
        ("图书馆周日开门吗？", "yes_no"),
        ("L9有小桌板么？", "yes_no"),
        ("為什麼天空是藍色的？", "why"),
        ("怎么会突然断电？", "why"),
        ("洗碗机多久清洗一次滤网？", "how_many"),
        ("门票多少钱？", "price"),
        ("什麼時候可以報名馬拉松？", "when"),
        ("紧急出口在哪里？", "where"),
        ("《流浪地球》的导演是谁？", "who"),
        ("名字最长的国家是哪个国家", "which"),
        ("王珞丹如何处理与妈妈的关系?", "how"),
        ("请问什么是瑞利散射？", "what"),
        ("Why did the bridge collapse?", "why"),
        ("How much is admission?", "price"),
        ("How many people live in Lyon?", "how_many"),
        ("What year was it built?", "when"),
        ("Where is the emergency exit?", "where"),
        ("Who painted the Night Watch?", "who"),
        ("How do I reset the router?", "how"),
        ("Can I bring my dog?", "yes_no"),
        ("Which train is the fastest?", "which"),
        ("What is the boiling point of water?", "what"),
        ("ferry to Ningbo", "what"),
    ],
)
def test_kinds_of_questions(question: str, kind: str) -> None:
    """Question words of both languages and scripts tell what kind of answer is wanted."""
    assert question_of(question).kind == kind


@pytest.mark.parametrize(
    ("question", "fits", "does_not"),
    [
        ("How many people live in Lyon?", "About 520,000 people live there.", "Lyon is a lively city."),
        ("How many objects does it hold?", "It holds 40,000 objects.", "It was founded in 1931."),
        ("门票多少钱？", "门票35元。", "门票在窗口购买。"),
        ("什么时候报名？", "3月1日开始报名。", "报名要带身份证。"),
        ("为什么关机？", "因为风扇坏了。", "设备有两个风扇。"),
        ("How much is it?", "It is free.", "It opens at ten."),
    ],
)
def test_answers_have_the_kind_that_is_asked_for(question: str, fits: str, does_not: str) -> None:
    """A number for how many (a year is none), a price for how much, a date for when, a reason for why."""
    asked = question_of(question)
    assert asked.typed(fits) is True
    assert asked.typed(does_not) is False


def test_who_and_which_show_no_kind() -> None:
    """A name can be anything, so nothing is held against a text."""
    assert question_of("谁是导演？").typed("郭帆") is None


def test_scripts_are_one() -> None:
    """A question in Traditional characters is about the same words as in Simplified ones."""
    assert question_of("雙人房的價格是多少？").focus == question_of("双人房的价格是多少？").focus


# --- levels ----------------------------------------------------------------------------------------


def levels(question: str, atoms: list[str]) -> list[int]:
    return [level(question, atom, [other for other in atoms if other != atom]).level for atom in atoms]


def test_levels_of_the_headlamp_example() -> None:
    """000, headlamp film: the advice answers, what it is based on explains."""
    atoms = ["贴膜会使灯光的照明亮度下降", "贴膜可能影响行车安全", "不建议给大灯贴膜"]
    assert levels("大灯是否可以贴膜", atoms) == [2, 2, 1]


def test_levels_of_the_longest_name_example() -> None:
    """000, longest country name: the name answers, its length explains, the rest is extra."""
    sample = json.loads((FIXTURES / "seeds" / "atomic-longest-name.sample.json").read_text("utf-8"))
    atoms = [
        "名字最长的国家是奥匈帝国",
        "奥匈帝国的全称由28个字组成",
        "奥匈帝国的全称包含了大量的地名和领地名称",
        "奥匈帝国存在于1867年至1918年",
    ]
    assert levels(sample["question"], atoms) == [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("question", "atoms", "expected"),
    [
        (
            "How many people live in Lyon?",
            ["About 520,000 people live in Lyon.", "Lyon is the third-largest city in France.", "Bananas are yellow."],
            [1, 3, 3],
        ),
        (
            "洗碗机多久清洗一次滤网？",
            ["洗碗机滤网建议每月清洗一次", "滤网堵塞会影响洗净效果"],
            [1, 2],
        ),
        ("图书馆周日开门吗？", ["图书馆周日开放", "图书馆建于1952年", "祝您愉快！"], [1, 3, 3]),
        ("為什麼天空是藍色的？", ["天空呈藍色是因為空氣分子散射短波長的光", "這種現象叫做瑞利散射"], [1, 2]),
        ("Can I bring my dog on the ferry?", ["Dogs are allowed on the ferry.", "Dogs must be on a leash."], [1, 2]),
        ("Where is the emergency exit?", ["The emergency exit is at the end of the corridor."], [1]),
        ("电影《流浪地球》的导演是谁？", ["《流浪地球》的导演是郭帆"], [1]),
    ],
)
def test_levels(question: str, atoms: list[str], expected: list[int]) -> None:
    """1 answers, 2 explains or adds, 3 is beside the question."""
    assert levels(question, atoms) == expected


def test_courtesy_informs_nobody() -> None:
    """A greeting is level 3 whatever was asked, and the reason says why."""
    found = level("图书馆周日开门吗？", "您好！")
    assert found.level == 3
    assert found.reason == "没有可以回答问题的信息"


def test_reasons_name_what_is_shared_in_the_readers_script() -> None:
    """The reason of a direct answer names the words it takes up; in Traditional Chinese it is Traditional."""
    assert "Lyon" in level("How many people live in Lyon?", "About 520,000 people live in Lyon.").reason
    assert level("圖書館週日開門嗎？", "圖書館週日開門").reason.startswith("直接回答所問")


# --- on topic, answering ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("What causes ocean tides?", "Tides are caused by the Moon's gravity.", True),
        ("What causes ocean tides?", "I hope this helps!", False),
        ("What causes ocean tides?", "Our shop sells garden furniture.", False),
        ("青岚号渡轮在哪里上船？", "青岚号在第二码头上船。", True),
        ("青岚号渡轮在哪里上船？", "您好！", False),
        ("青岚号渡轮在哪里上船？", "红烧肉要小火慢炖。", False),
        ("退票要收手續費嗎？", "退票要收三成手續費。", True),
        ("能刷卡吗？", "可以。", True),
        ("Is the pool open?", "Yes.", True),
        ("几点开门？", "可以。", False),
        ("How long?", "The provided context does not contain information about that.", False),
        ("要多久？", "资料中没有相关信息。", False),
        ("票价多少？", "很抱歉，资料中没有提到票价。", True),
        ("介绍一下青岚号", "青岚号全长80米。", True),
        ("Please describe the lighthouse.", "The lighthouse is 40 metres high.", True),
    ],
)
def test_on_topic(question: str, sentence: str, expected: bool) -> None:
    """What helps to answer is on the topic; courtesy and other subjects are not."""
    assert on_topic(question, sentence) is expected


def test_what_goes_on_from_an_answer_is_on_topic() -> None:
    """A sentence without a word of the question belongs to the answer it continues."""
    question = "Why do the leaves of my lemon tree turn yellow?"
    first = "The leaves of a lemon tree turn yellow because overwatering makes its roots rot."
    second = "Rotting roots cannot take up nutrients after overwatering."
    assert on_topic(question, second, [first, second])


def test_what_is_known_to_answer_is_on_topic() -> None:
    """A sentence known to answer needs no word of the question, nor does what goes on from it."""
    first, second = "员工到职满一年可享七天特休假，满两年十天。", "到职满两年的员工，特休假为十天。"
    assert not on_topic("年假怎么算？", first, [first, second])
    assert on_topic("年假怎么算？", first, [first, second], [first])
    assert on_topic("年假怎么算？", second, [first, second], [first])


@pytest.mark.parametrize(
    ("question", "reply", "stated"),
    [
        ("能刷卡吗？", "可以。", "能刷卡"),
        ("能刷卡吗？", "不能", "不能刷卡"),
        ("你们有没有停车场？", "没有。", "没有停车场"),
        ("是否需要预约？", "需要", "需要预约"),
        ("請問可以帶寵物嗎？", "不行。", "不可以帶寵物"),
        ("他们搬家了吗？", "没有", "他们没有搬家"),
        ("Can I pay by card?", "Yes.", "you can pay by card"),
        ("Is there a lift?", "No", "there is not a lift"),
        ("今天不营业吗？", "是的", "是的"),
        ("能刷卡吗，要密码吗？", "可以", "可以"),
        ("会有人要来吗？", "不会", "不会"),
        ("Is the museum shop open?", "Yes.", "Yes."),
        ("几点开门？", "可以", "可以"),
        ("能刷卡吗？", "可以，没有限额", "可以，没有限额"),
    ],
)
def test_a_bare_yes_states_what_is_asked(question: str, reply: str, stated: str) -> None:
    """Yes and no make the question a statement where that is safe; otherwise they stay what they are."""
    assert spelt_out(question, reply) == stated


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("How much is admission to the Harbour Museum?", "Admission costs 12 euros.", True),
        ("How much is admission to the Harbour Museum?", "The museum was founded in 1931.", False),
        ("青岚号渡轮在哪个码头上船？", "渡轮公司成立于1998年。", False),
        ("多少钱？", "35元。", True),
        ("臺北植物園要門票嗎？", "要，每人50元。", True),
        ("Can I fly it in the rain?", "No.", True),
        ("Can I fly it in the rain?", "Nowhere else.", False),
        ("兒童票怎麼算？", "十二歲以下兒童票半價。", False),
    ],
)
def test_answering_alone(question: str, text: str, expected: bool) -> None:
    """A short answer counts where it has the kind of thing that is asked for; the last needs the background's help."""
    assert answers(question, text) is expected


# --- no input breaks it ----------------------------------------------------------------------------


@settings(deadline=None)  # the first one loads the encoder
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_a_level(question: str, atom: str) -> None:
    """Whatever is asked and said, there is a level and a reason."""
    found = level(question, atom)
    assert found.level in (1, 2, 3)
    assert found.reason
    on_topic(question, atom)


# --- voice -----------------------------------------------------------------------------------------


def test_voice_keeps_what_it_is_given() -> None:
    """Only the frame changes script or language; what is put into it stays as it was, braces included."""
    assert Voice("zh", "這裡說的是繁體")("资料写的是{x}", "has {x}", x="资料{0}") == "資料寫的是资料{0}"
    assert Voice("en")("资料写的是{x}", "has {x}", x="{y}") == "has {y}"
    assert voice_for("plain English")("中文", "English") == "English"


def test_a_reason_made_elsewhere_takes_the_voices_script() -> None:
    """The frame is converted, what it shows of the judged texts is not; a Simplified voice changes nothing."""
    hant, hans = Voice("zh", "圖書館開門嗎"), Voice("zh", "图书馆开门吗")
    assert hant.said("资料写的是“50元”，不是“国内”") == "資料寫的是“50元”，不是“国内”"
    assert hant.said("与资料中的这句话相符（38% 的词相同）") == "與資料中的這句話相符（38% 的詞相同）"
    assert hant.said("背景未提：图书馆") == "背景未提：图书馆"
    assert hans.said("资料中有原话") == "资料中有原话"


def test_voice_is_brief() -> None:
    """A long quotation is cut, so that a reason stays one line."""
    said = Voice("en")("{x}", "{x}", x="word " * 100)
    assert len(said) <= 60
    assert said.endswith("…")
