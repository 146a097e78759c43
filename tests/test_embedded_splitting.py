"""Answers into atoms: word for word, cut only where each part stands on its own, nothing left out."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from feeding import FIXTURES, seed
from steelyard.judges.embedded.splitting import split, unmarked
from steelyard.protocols.atoms import Split, uncovered
from steelyard.records import RagSample
from steelyard.text.clauses import clauses, shadow


def texts(answer: str, question: str = "") -> list[str]:
    return [atom.text for atom in split(answer, question)]


def links(answer: str, question: str = "") -> dict[str, str]:
    """Cause → effect, by text."""
    atoms = {atom.id: atom for atom in split(answer, question)}
    return {atom.text: atoms[atom.causal_of].text for atom in atoms.values() if atom.causal_of}


# --- the worked examples ---------------------------------------------------------------------------

SEEDS = {
    "atomic-headlamp-film": ["贴膜会使灯光的照明亮度下降，可能影响行车安全", "不建议给大灯贴膜"],
    "atomic-longest-name": [
        "名字最长的国家是奥匈帝国",
        "其全称由28个字组成，包含了大量的地名和领地名称，如丁斯、圣文森特、格林纳、共和国、捷克斯洛伐克等",
        "这个国家存在于1867年至1918年，是欧洲乃至世界的一个重要强国",
        "它是世界上有史以来最强大的国家",
    ],
    "atomic-mother-daughter": [
        '在《是女儿是妈妈》综艺中，王珞丹和妈妈的关系可以用"矛盾、纠缠和复杂"来形容',
        "这种关系源于王珞丹自身的成长经历",
        "从小家境优越，父母是银行职员",
        "身为老大的她或许从小就承担了一定的责任",
    ],
    "grounded-headlamp-film": [
        "贴膜会使灯光的照明亮度下降，可能影响行车安全",
        "不建议给大灯贴膜",
        "大灯是车辆夜间行驶时非常重要的部分",
        "确保其良好的照明效果对于夜间行车安全至关重要",
    ],
    "grounded-tray-table": ["理想L9的第三排座椅已经标配了小桌板", "理想L9还有大彩电"],
}


@pytest.mark.parametrize("name", SEEDS)
def test_the_worked_examples(name: str) -> None:
    """What the documents label differently is apart: 身为老大 from 父母是银行职员, the advice from its reason."""
    sample, _ = seed(name)
    assert isinstance(sample, RagSample)
    assert texts(sample.answer, sample.question) == SEEDS[name]


def test_the_advice_follows_from_its_reason() -> None:
    """The first worked example: the cause is linked to its effect."""
    sample, _ = seed("atomic-headlamp-film")
    assert isinstance(sample, RagSample)
    assert links(sample.answer) == {"贴膜会使灯光的照明亮度下降，可能影响行车安全": "不建议给大灯贴膜"}


# --- sentences -------------------------------------------------------------------------------------

# An answer and its atoms, separated by " / "; what is not cut is not written twice.
CHINESE = [
    "主机质保两年 / 配件质保半年",
    "入場免費 / 停車收費30元",
    "它抗稻瘟病，不抗白叶枯病 / 该药尚未获批",
    "單車收費取消 / 嬰兒車一向免費",
    "性别：男 / 婚姻：已婚 / 年龄：44",
    "最后一班车是22:30 / 首班车是6:00",
    "是的，K5可以放入洗碗机清洗 / 但K3不可以",
    "末班船可能提前 / 请提前致电确认",
]
WHOLE = [
    "自习室在第三层，紧邻东侧电梯，有128个座位",
    "雲雀檯燈2021年上市，重約1千克，支援藍牙、無線網路和語音控制",
    "张三、李四和王五都是工程师",
    "园区种有多种树木，如松树、柏树等",
    "如果电量不足，增程器会自动启动，油耗会增加",
    "2015年，公司成立，员工达到100人",
    "李明表示，公司将扩大生产，员工将增加",
    "位于古村落保护范围内的，层数不超过两层",
    "车速过快，导致刹车失灵",
    "虽然价格较高，但是质量很好",
    "因为加了柔光罩，云雀台灯不刺眼",
    "理想L9售价45.98万元，续航为1,315公里",
    "该车（第二代，2022年款）支持快充",
    "他说：“先别走，等等我。”",
    "备份文件使用AES-256加密，存放在不同的可用区",
    "The tower was designed by Ito and built in 1990.",
    "Marie Curie was born in 1867 and moved to Paris in 1891.",
    "The app supports Bluetooth, Wi-Fi, and NFC.",
    "If it rains, the lamp turns off, and the door is closed.",
    "In 1990, the firm moved, and sales were low.",
    "The museum, which has two floors, and the café are closed.",
    "He said that it is late, and she was tired.",
    "Dr. Smith lives in the U.S. and is 3.5 m tall, e.g. in boots.",
    "It was not closed because it was old.",
    "This is because it was old.",
    "The lamp is dim, so that it does not blind anyone.",
    "The roof leaks (it is old, and nobody has mended it).",
]
ENGLISH = [
    "Adults pay £12; / children are free.",
    "Work starts in May, / and / the library is to open in September.",
    "Danny Orme scored twice, / and / Luca Veitch added the third.",
    "The reading room is sound, / but / the roof over the east wing must be replaced.",
    "It was released in 2023; / it improved error messages, / and / the lock became optional.",
]


@pytest.mark.parametrize("sentence", CHINESE)
def test_chinese_clauses_with_subjects_of_their_own(sentence: str) -> None:
    """Two facts side by side are two atoms, whether a comma or a semicolon parts them."""
    wanted = [part.removeprefix("但") for part in sentence.split(" / ")]
    for comma in "，；":
        assert texts(f"{sentence.replace(' / ', comma)}。") == wanted


@pytest.mark.parametrize("sentence", ENGLISH)
def test_english_clauses_with_subjects_of_their_own(sentence: str) -> None:
    """The word that joins two clauses belongs to neither."""
    wanted = [part.rstrip(",;") for part in sentence.split(" / ") if part not in ("and", "but")]
    assert texts(sentence.replace(" / ", " ")) == wanted


@pytest.mark.parametrize("sentence", WHOLE)
def test_what_would_lose_its_subject_or_its_condition_stays(sentence: str) -> None:
    """Shared subjects, conditions, times, sources, lists, quotations: one atom."""
    assert texts(sentence if sentence.endswith(".") else f"{sentence}。") == [sentence]


def test_no_name_is_guessed() -> None:
    """A pronoun stays a pronoun, and a dropped subject is not filled in."""
    assert texts("The café closes on Friday. It has 120 seats.") == ["The café closes on Friday.", "It has 120 seats."]
    assert texts("云雀台灯2021年上市。它重1千克。有三种颜色。") == ["云雀台灯2021年上市", "它重1千克", "有三种颜色"]
    assert texts("有小桌板。", "L9有小桌板么？") == ["有小桌板"]


def test_numbers_are_not_cut() -> None:
    """A decimal point, a thousands comma and a version are parts of their number."""
    for text in ("圆周率约为3.14159", "人口为1,315,000人", "该版本为v2.0.1"):
        assert texts(f"{text}。") == [text]
    assert texts("The price is $1,299.99 and the mass is 3.5 kg.") == ["The price is $1,299.99 and the mass is 3.5 kg."]


def test_both_scripts_are_cut_alike() -> None:
    """Patterns are written once, in Simplified characters, and a shadow keeps every place."""
    assert shadow("嬰兒車一向免費") == "婴儿车一向免费"
    simple = "由于车票售完，旅客须改乘渡轮，因此请提前出发；婴儿车免费。"
    traditional = "由於車票售完，旅客須改乘渡輪，因此請提前出發；嬰兒車免費。"
    assert [len(clause.text) for clause in clauses(simple)] == [len(clause.text) for clause in clauses(traditional)]
    assert len(clauses(simple)) == 3


# --- causes ----------------------------------------------------------------------------------------

CAUSES = {
    "他缺席了会议，因为他生病了。": {"他生病了": "他缺席了会议"},
    "因為他生病了，會議被取消。": {"他生病了": "會議被取消"},
    "膜会降低亮度，因此不建议贴膜。": {"膜会降低亮度": "不建议贴膜"},
    "桥梁年久失修。因此，政府关闭了桥梁。": {"桥梁年久失修": "政府关闭了桥梁"},
    "由于芯片短缺，工厂停产两周，因此交付推迟到了11月。": {"由于芯片短缺，工厂停产两周": "交付推迟到了11月"},
    "Because she handled radium, she fell ill.": {"she handled radium": "she fell ill."},
    "The kettle is hot, so it switches off.": {"The kettle is hot": "it switches off."},
    "The bridge was closed because it was old.": {"it was old.": "The bridge was closed"},
    "The bridge was old. Therefore, it was closed.": {"The bridge was old.": "it was closed."},
}


@pytest.mark.parametrize(("answer", "linked"), CAUSES.items())
def test_causes_point_to_their_effects(answer: str, linked: dict[str, str]) -> None:
    """Within a sentence in either order, and across sentences."""
    assert links(answer) == linked


# --- pages -----------------------------------------------------------------------------------------

PAGES = {
    "headings": ("## 缺点\n- 价格高\n- **停车**：不便", ["缺点：价格高", "缺点：停车：不便"]),
    "a heading of any answer": ("## 总结\n- 值得考虑", ["值得考虑"]),
    "an introduction": ("套餐包括：\n1. 早餐\n2. 午餐", ["套餐包括：早餐", "套餐包括：午餐"]),
    "an English introduction": (
        "To reset it:\n1. Hold the button. Wait.\n2. Release it.",
        ["To reset it: Hold the button.", "To reset it: Wait.", "To reset it: Release it."],
    ),
    "an announcement": ("以下是主要优点：\n- 续航长\n- 空间大", ["以下是主要优点", "续航长", "空间大"]),
    "an introduction that states something": (
        "自习室有120个座位，开放时间如下：\n- 周末：9点",
        ["自习室有120个座位，开放时间如下", "开放时间如下：周末：9点"],
    ),
    "where it comes from": ("根据提供的资料，票价为5元。", ["票价为5元"]),
    "a bold heading": ("**優點**\n續航很長。充電快。", ["優點：續航很長", "充電快"]),
    "a bold sentence": ("**不建议给大灯贴膜。**\n贴膜会降低亮度。", ["不建议给大灯贴膜", "贴膜会降低亮度"]),
    "a quotation": ("## 原因\n- 太贵\n\n> 票价为5元。", ["原因：太贵", "票价为5元"]),
    "a table": (
        "| 车型 | 价格 | 续航 |\n|---|---|---|\n| L9 | 45.98万 | 1315公里 |\n| L8 | 35万 | - |",
        ["L9，价格：45.98万", "L9，续航：1315公里", "L8，价格：35万"],
    ),
    "an English table": ("| Car | Price |\n|---|---|\n| L9 | $50,000 |", ["L9, Price: $50,000"]),
    "marks": ("**北京**是[中国](https://example.org/cn)的首都[1]。", ["北京是中国的首都"]),
    "English marks": ("The `app` is *free*.[^2]", ["The app is free."]),
    "code": ("运行：\n```python\na = 1; b = 2\nprint(a, b)\n```", ["a = 1; b = 2\nprint(a, b)"]),
    "thoughts": ("<think>用户想知道价格</think>价格为50元。", ["用户想知道价格", "价格为50元"]),
    "said twice": ("北京是中国的首都。北京是中国的首都！", ["北京是中国的首都"]),
    "greeting and question": ("您好！北京是中国的首都。还想知道什么？", ["北京是中国的首都"]),
    "a longer courtesy": ("票价为5元。希望以上信息对您有帮助！", ["票价为5元", "希望以上信息对您有帮助！"]),
    "a semicolon at the end": ("- 票价为5元；\n- 门票免费。", ["票价为5元", "门票免费"]),
    "a refusal": ("很抱歉，我无法回答这个问题。", []),
    "nothing": ("", []),
    "a bare yes": ("没问题", ["没问题"]),
    "a short answer": ("武汉", ["武汉"]),
    "a number": ("70", ["70"]),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "atoms"), PAGES.values(), ids=PAGES.keys())
def test_pages(answer: str, atoms: list[str]) -> None:
    """What a reader sees: marks resolved, items under what introduces them, cells as statements."""
    assert texts(answer) == atoms


# --- nothing is lost, nothing is made up, whatever the answer ----------------------------------------

CLAUSES = st.sampled_from(
    "自习室在第二层|共有120个座位|它很安静|因为加了柔光罩|所以不刺眼|但是价格较高|如松树、柏树等|如果下雨|在北京"
    "|父母是教师|此外|支持蓝牙、快充和导航|您好|很抱歉|谢谢|我觉得不错|建议提前预约|不知道|以下是总结|嬰兒車免費"
    "|其面积为3.5平方公里|The app is free|and it has six seats|because it is old|so it closed|It supports A, B and C"
    "|However|if it rains|1,315 km|Dr. Lee won|（见附录，第2页）|“先别走，等等”|**续航**|[链接](http://a.b/c?d=e)"
    "|x = 1; y = 2|“你知道吗？”|他说：“走吧？”|根据提供的资料".split("|")
)
STOPS = ["，", "。", "；", "\n", "\n- ", "\n1. ", "\n## ", "：\n", "！", "？", ", ", ". ", "; ", " ", "、"]
TABLE = ["\n| ", " | ", "\n|---|---|\n"]


def pages(stops: list[str]) -> st.SearchStrategy[str]:
    parts = st.lists(st.tuples(CLAUSES, st.sampled_from(stops)), max_size=14)
    return parts.map(lambda found: "".join(clause + stop for clause, stop in found))


def letters(text: str) -> str:
    return "".join(re.findall(r"\w", text))


def check(answer: str, question: str = "") -> None:
    atoms = split(answer, question)
    assert [atom.id for atom in atoms] == list(range(1, len(atoms) + 1))
    assert all(atom.text.strip() for atom in atoms)
    assert all(
        atom.causal_of is None or (0 < atom.causal_of <= len(atoms) and atom.causal_of != atom.id) for atom in atoms
    )
    assert len(Split(atoms).atoms) == len(atoms), "an atom is there twice"
    if atoms:
        assert uncovered(answer, atoms) == []


@settings(max_examples=120, deadline=None)
@given(pages([*STOPS, *TABLE]), st.sampled_from(["", "自习室在哪里？", "Is the app free?"]))
def test_pages_are_covered(answer: str, question: str) -> None:
    """However clauses, marks and lines are put together, no sentence is passed over and no atom repeats another."""
    check(answer, question)


@settings(max_examples=120, deadline=None)
@given(pages(STOPS))
@example("**优点**\n续航很长，充电快。\n## 缺点\n- 价格高；\n- 停车：不便")
def test_atoms_are_word_for_word(answer: str) -> None:
    """Each is a stretch of the answer as a reader sees it, or its heading and such a stretch."""
    seen = letters("\n".join(unmarked(line) for line in answer.splitlines()))
    for atom in map(letters, texts(answer)):
        cuts = range(len(atom))
        assert any(atom[:at] in seen and seen.find(atom[at:], seen.find(atom[:at]) + at) >= 0 for at in cuts), atom


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_can_be_split(answer: str, question: str) -> None:
    """No text makes the splitter fail or lose a sentence."""
    check(answer, question)


def test_real_answers_are_covered() -> None:
    """The transcripts and documents in this folder, read as if they were answers."""
    files = [file for kind in ("wild/*.txt", "seeds/*.txt", "seeds/*.md") for file in FIXTURES.glob(kind)]
    assert len(files) > 10
    for file in files:
        check(file.read_text("utf-8"))


HOSTILE = [
    "，", "；", "“", "（", '"', "(", "[", "**", "|", "# a\n", "- a:\n", "很好，", "A and B, ", "a is b; ", "因为，",
    "因此", "也还", "a b ", "他是，", "价格：5；", "[a](", "她很高兴，", "a, and b is c, ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_repetitions_are_split_quickly(piece: str) -> None:
    """A hundred thousand characters of anything take a second or two: time grows with length, not with its square."""
    answer = piece * (100_000 // len(piece))
    started = time.thread_time()
    split(answer)
    assert time.thread_time() - started < 3


@pytest.mark.parametrize(
    "line", ["# 第{}节\n", "- 第{}排有{}个座位\n", "第{}排有座位，他是{}号，", "a{} is b{}, and c{} is d. "]
)
def test_long_answers_are_split_quickly(line: str) -> None:
    """So do answers in which no two parts are the same."""
    answer = "".join(line.format(*[at] * 3) for at in range(100_000 // len(line)))
    started = time.thread_time()
    split(answer)
    assert time.thread_time() - started < 3
