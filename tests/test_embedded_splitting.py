"""Answers into atoms: clauses, lists, dropped subjects, causes; nothing lost and nothing made up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feeding import FIXTURES, seed
from steelyard.judges.embedded.splitting import split
from steelyard.protocols.atoms import Split, uncovered
from steelyard.records import RagSample


def texts(answer: str, question: str = "") -> list[str]:
    return [atom.text for atom in split(answer, question)]


def links(answer: str, question: str = "") -> dict[str, str]:
    """Cause → effect, by text."""
    atoms = {atom.id: atom for atom in split(answer, question)}
    return {atom.text: atoms[atom.causal_of].text for atom in atoms.values() if atom.causal_of}


# --- the worked examples ---------------------------------------------------------------------------


def test_the_headlamp_example_splits_as_its_document_does() -> None:
    """The dropped subject of the second clause is carried over; the advice keeps none."""
    sample, expected = seed("atomic-headlamp-film")
    assert isinstance(sample, RagSample)
    assert texts(sample.answer, sample.question) == [item["text"] for item in expected["items"]]


def test_the_longest_name_example_names_the_country_throughout() -> None:
    """其, 这个国家 and 它 become 奥匈帝国, and the examples stay with their statement."""
    sample, expected = seed("atomic-longest-name")
    assert isinstance(sample, RagSample)
    wanted = [item["text"].rstrip("。") for item in expected["items"]]
    wanted[-1] = wanted[-1].replace("它", "奥匈帝国")
    assert texts(sample.answer, sample.question) == wanted


def test_the_mother_and_daughter_example_gets_its_subjects_back() -> None:
    """从小家境优越 is said of 王珞丹, whom the question names."""
    sample, _ = seed("atomic-mother-daughter")
    assert isinstance(sample, RagSample)
    assert texts(sample.answer, sample.question)[2:] == [
        "王珞丹从小家境优越",
        "王珞丹的父母是银行职员",
        "身为老大的王珞丹或许从小就承担了一定的责任",
    ]


# --- Chinese ---------------------------------------------------------------------------------------

CHINESE = {
    "dropped subjects": (
        "自习室在第三层，紧邻东侧电梯，有128个座位。",
        ["自习室在第三层", "自习室紧邻东侧电梯", "自习室有128个座位"],
    ),
    "Traditional characters": (
        "雲雀檯燈2021年上市，重約1千克，支援藍牙、無線網路和語音控制。",
        ["雲雀檯燈2021年上市", "雲雀檯燈重約1千克", "雲雀檯燈支援藍牙", "雲雀檯燈支援無線網路", "雲雀檯燈支援語音控制"],
    ),
    "a shared subject": ("张三、李四和王五都是工程师。", ["张三是工程师", "李四是工程师", "王五是工程师"]),
    "a list that makes one whole": ("水由氢、氧两种元素组成。", ["水由氢、氧两种元素组成"]),
    "a list of examples": ("园区种有多种树木，如松树、柏树等。", ["园区种有多种树木，如松树、柏树等"]),
    "a condition": ("如果电量不足，增程器会自动启动。", ["如果电量不足，增程器会自动启动"]),
    "who reports it": ("李明表示，公司将扩大生产。", ["李明表示，公司将扩大生产"]),
    "a concession": ("虽然价格较高，但是质量很好。", ["价格较高", "质量很好"]),
    "numbers": ("理想L9售价45.98万元，续航为1,315公里。", ["理想L9售价45.98万元", "理想L9的续航为1,315公里"]),
    "quotations": ("他说：“先别走，等等我。”", ["他说：“先别走，等等我。”"]),
    "brackets": ("该车（第二代，2022年款）支持快充。", ["该车（第二代，2022年款）支持快充"]),
    "an action as subject": (
        "大灯非常重要，使用劣质灯膜会影响照明。",
        ["大灯非常重要", "使用劣质灯膜会影响照明"],
    ),
    "what it brings about": ("车速过快，导致刹车失灵。", ["车速过快，导致刹车失灵"]),
    "said twice": ("北京是中国的首都。北京是中国的首都。", ["北京是中国的首都"]),
    "greeting and question": ("您好！北京是中国的首都。还想知道什么？", ["北京是中国的首都"]),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "atoms"), CHINESE.values(), ids=CHINESE.keys())
def test_chinese(answer: str, atoms: list[str]) -> None:
    """Clauses that state something become atoms; the others stay where they belong."""
    assert texts(answer) == atoms


SUBJECTS = {
    "an apology": ("很抱歉让您久等。包裹会在明天送达。", "包裹在哪？", ["很抱歉让您久等", "包裹会在明天送达"]),
    "a welcome": ("发票由财务提供，非常感谢您的支持。", "", ["发票由财务提供", "非常感谢您的支持"]),
    "an owner who is a pronoun": ("她的身高是1米6，星座是狮子座。", "身高？", ["她的身高是1米6", "她的星座是狮子座"]),
    "an owner by name": ("陈浩的血型是B型，籍贯是湖南。", "", ["陈浩的血型是B型", "陈浩的籍贯是湖南"]),
    "an owner without 的": ("公司地址是解放路8号，电话是5566。", "", ["公司地址是解放路8号", "公司的电话是5566"]),
    "a side that was asked for": ("支持7天无理由退货。", "保修期多久？", ["支持7天无理由退货"]),
    "a work and who plays in it": (
        "《渡江》由方子瑜执导，冯霖主演，改编自同名小说，2003年上映。", "",
        ["《渡江》由方子瑜执导", "《渡江》由冯霖主演", "《渡江》改编自同名小说", "《渡江》2003年上映"],
    ),
    "what a firm made": ("云雀公司推出了台灯。它重1千克。", "", ["云雀公司推出了台灯", "它重1千克"]),
    "a thing": ("云雀台灯2021年上市。它重1千克。", "", ["云雀台灯2021年上市", "云雀台灯重1千克"]),
    "a person is no it": ("王芳毕业于北京大学。它很有名。", "", ["王芳毕业于北京大学", "它很有名"]),
    "one person": ("鲁迅1881年出生于绍兴。他的原名是周樟寿。", "", ["鲁迅1881年出生于绍兴", "鲁迅的原名是周樟寿"]),
    "one person, later": (
        "南丁格尔女士出生于1820年。1860年，她创办了护士学校。", "",
        ["南丁格尔女士出生于1820年", "1860年，南丁格尔女士创办了护士学校"],
    ),
    "a name with dates": (
        "杜甫（712年—770年），字子美，是唐代诗人。他的诗流传很广。", "",
        ["杜甫（712年—770年），字子美，是唐代诗人", "杜甫的诗流传很广"],
    ),
    "two people": ("陈静认识李明。她是教师。", "", ["陈静认识李明", "她是教师"]),
    "a relative": ("王芳和丈夫住在北京。他是医生。", "", ["王芳和丈夫住在北京", "他是医生"]),
    "a title": ("居里夫人住在巴黎。他是医生。", "", ["居里夫人住在巴黎", "他是医生"]),
    "a place before the subject": ("比赛期间，门口会拥堵。", "", ["比赛期间，门口会拥堵"]),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "question", "atoms"), SUBJECTS.values(), ids=SUBJECTS.keys())
def test_chinese_subjects(answer: str, question: str, atoms: list[str]) -> None:
    """A subject is carried over where it can be meant and nothing else can; otherwise the words stay."""
    assert texts(answer, question) == atoms


OWN = {
    "compared": ("甲车比乙车便宜，乙车空间更大。", ["甲车比乙车便宜", "乙车空间更大"]),
    "with a term": ("主机质保两年，配件质保半年。", ["主机质保两年", "配件质保半年"]),
    "with a price": ("儿童免票，老人收费10元。", ["儿童免票", "老人收费10元"]),
    "in Traditional characters": ("入場免費，停車收費30元。", ["入場免費", "停車收費30元"]),
    "with times": ("开馆时间为9点以后，闭馆时间为17点以前。", ["开馆时间为9点以后", "闭馆时间为17点以前"]),
    "with labels": (
        "规格：长度：3米；材质：铝；产地：浙江。",
        ["规格：长度：3米", "规格：材质：铝", "规格：产地：浙江"],
    ),
    "with labels and no heading": ("地址：解放路8号，电话：5566。", ["地址：解放路8号", "电话：5566"]),
    "with a measure": ("姚明身高226厘米，体重140公斤。", ["姚明身高226厘米", "姚明的体重140公斤"]),
    "and what follows": ("该产品保修一年，支持七天退货。", ["该产品保修一年", "该产品支持七天退货"]),
    "a condition stays": ("如果会员免费，非会员收费20元。", ["如果会员免费，非会员收费20元"]),
    "no third subject": ("停车免费，早餐收费30元，不提供接机。", ["停车免费", "早餐收费30元，不提供接机"]),
    "a time is no subject": ("展厅在二层，周一闭馆。", ["展厅在二层", "展厅周一闭馆"]),
}


@pytest.mark.parametrize(("answer", "atoms"), OWN.values(), ids=OWN.keys())
def test_clauses_with_subjects_of_their_own(answer: str, atoms: list[str]) -> None:
    """Two facts side by side are two atoms, though no verb tells them apart."""
    assert texts(answer) == atoms


def test_an_effect_is_apart_from_its_cause() -> None:
    """A condition or a cause without a statement of its own stays; the effect is an atom that it points to."""
    assert links("由于芯片短缺，工厂停产两周，因此交付推迟到了11月。") == {
        "由于芯片短缺，工厂停产两周": "交付推迟到了11月"
    }


def test_thoughts_stand_apart_from_the_answer() -> None:
    """What a model thought first is no part of the sentence after it."""
    assert texts("<think>用户想知道价格是多少</think>价格为50元。")[-1] == "价格为50元"


def test_a_pronoun_with_two_candidates_stays() -> None:
    """Better a pronoun than the wrong name."""
    assert "它更便宜" in texts("甲车有六个座位，乙车有七个座位。它更便宜。")


def test_the_question_gives_the_subject_of_a_bare_answer() -> None:
    """L9有小桌板么？有小桌板 speaks of L9."""
    assert texts("有小桌板，位于第二排。", "L9有小桌板么？") == ["L9有小桌板", "L9位于第二排"]


def test_a_long_phrase_is_not_carried_across_a_full_stop() -> None:
    """读者生日当月逾期 is no name, so the next sentence does not get it for a subject."""
    assert texts("读者生日当月借书逾期可以免费。没有缴清之前不能再借书。")[1] == "没有缴清之前不能再借书"


def test_causes_point_to_their_effects() -> None:
    """因为…，…; …，因此…; and across sentences."""
    assert links("因为加了柔光罩，云雀台灯不刺眼。") == {"加了柔光罩": "云雀台灯不刺眼"}
    assert links("膜会降低亮度，因此不建议贴膜。") == {"膜会降低亮度": "不建议贴膜"}
    assert links("桥梁年久失修。因此，政府关闭了桥梁。") == {"桥梁年久失修": "政府关闭了桥梁"}
    assert links("他缺席了会议，因为他生病了。") == {"他生病了": "他缺席了会议"}


def test_a_refusal_has_no_atoms() -> None:
    """An answer that declines as a whole states nothing."""
    assert texts("很抱歉，我无法回答这个问题。") == []


# --- English ---------------------------------------------------------------------------------------

ENGLISH = {
    "shared subject": (
        "Marie Curie was born in 1867 and moved to Paris in 1891.",
        ["Marie Curie was born in 1867.", "Marie Curie moved to Paris in 1891."],
    ),
    "shared auxiliary": (
        "The tower was designed by Ito and built in 1990.",
        ["The tower was designed by Ito and built in 1990."],
    ),
    "pronoun": ("The app is free. It supports USB.", ["The app is free.", "The app supports USB."]),
    "possessive": ("Marie Curie won. Her work was new.", ["Marie Curie won.", "Marie Curie's work was new."]),
    "nobody's it": ("The app is free. It is important to update.", ["The app is free.", "It is important to update."]),
    "list": (
        "The app supports Bluetooth, Wi-Fi, and NFC.",
        ["The app supports Bluetooth.", "The app supports Wi-Fi.", "The app supports NFC."],
    ),
    "condition": ("If it rains and is cold, the lamp turns off.", ["If it rains and is cold, the lamp turns off."]),
    "abbreviations": (
        "Dr. Smith lives in the U.S. and is 3.5 m tall, e.g. in boots.",
        ["Dr. Smith lives in the U.S.", "Dr. Smith is 3.5 m tall, e.g. in boots."],
    ),
    "a relative clause": (
        "The museum, which has two floors, opened in 1912.",
        ["The museum, which has two floors, opened in 1912."],
    ),
    "this is because": ("It failed. This is because it was old.", ["It failed.", "This is because it was old."]),
}


@pytest.mark.parametrize(("answer", "atoms"), ENGLISH.values(), ids=ENGLISH.keys())
def test_english(answer: str, atoms: list[str]) -> None:
    """English sentences are cut only where both sides can stand."""
    assert texts(answer) == atoms


SUBJECTS_EN = {
    "a person is no it": ("Dr. Jones moved to Leeds. It cost a fortune.", "It cost a fortune."),
    "a person by given name is no it": ("Emma is tall. It was a long day.", "It was a long day."),
    "a firm is no she": ("Brightside Ltd was founded in 1990. She left in 2001.", "She left in 2001."),
    "what was founded is no he": ("Orlo was founded in 1990. He left in 2001.", "He left in 2001."),
    "two people": ("Emma met Laura in Oslo. She is a lawyer.", "She is a lawyer."),
    "two people of other names": ("Haruto met Yuki. He is tall.", "He is tall."),
    "somebody named beside the subject": ("Brightside Ltd was founded by Emma Stone. She left.", "Emma Stone left."),
    "prizes are nobody": ("Emma Stone won two Orion Prizes. Her work was new.", "Emma Stone's work was new."),
    "a relative": ("Emma lives with her sister. She is a lawyer.", "She is a lawyer."),
    "a given name against the pronoun": ("Robert is tall. She left.", "She left."),
    "what a firm made": ("Orlo released a phone. It costs $300.", "It costs $300."),
    "a firm": ("Orlo was founded in 1990. It makes lamps.", "Orlo makes lamps."),
    "a side": ("Your booking code is X7. It leaves at nine.", "It leaves at nine."),
    "plural possessive": ("Members pay nothing. Their guests pay $5.", "Members' guests pay $5."),
    "a wife after a semicolon": (
        "Mr. Orr, who came in 1990, left in 2005; his wife, a nurse, stayed on.",
        "Mr. Orr's wife, a nurse, stayed on.",
    ),
    "after a semicolon": ("Adults pay £12; children under 12 enter free.", "Children under 12 enter free."),
    "after a firm's name": ("She joined Acme Inc. They make lamps there.", "They make lamps there."),
}


@pytest.mark.parametrize(("answer", "last"), SUBJECTS_EN.values(), ids=SUBJECTS_EN.keys())
def test_english_subjects(answer: str, last: str) -> None:
    """A pronoun becomes a name only where its kind fits and nobody else was named."""
    assert texts(answer)[-1] == last


def test_the_question_may_name_the_person() -> None:
    """Who is…? names one person, and the answer speaks of her."""
    assert texts("She was a mathematician.", "Who is Ada Lovelace?") == ["Ada Lovelace was a mathematician."]


def test_english_labels() -> None:
    """Values with labels of their own, under their heading."""
    assert texts("Specs: weight: 2 kg; colour: black.") == ["Specs: weight: 2 kg.", "Specs: colour: black."]


def test_english_causes() -> None:
    """because, so and therefore link."""
    assert links("Because she handled radium, she fell ill.") == {"She handled radium.": "She fell ill."}
    assert links("A strip bends, so the kettle switches off.") == {"A strip bends.": "The kettle switches off."}
    assert links("The bridge was old. Therefore, it was closed.") == {"The bridge was old.": "The bridge was closed."}


# --- pages -----------------------------------------------------------------------------------------


def test_list_items_stand_under_their_heading() -> None:
    """An item alone would not say what it is an item of."""
    answer = "## 缺点\n- 价格高\n- **停车**：不便\n\n## 总结\n- 值得考虑"
    assert texts(answer) == ["缺点：价格高", "缺点：停车：不便", "值得考虑"]


def test_an_introduction_goes_on_in_its_items() -> None:
    """套餐包括： and its items make sentences; an introduction that only announces is kept apart from them."""
    assert texts("套餐包括：\n1. 早餐\n2. 午餐") == ["套餐包括早餐", "套餐包括午餐"]
    assert texts("以下是主要优点：\n- 续航长\n- 空间大") == ["续航长", "空间大", "以下是主要优点"]


def test_table_cells_are_statements() -> None:
    """Row, column and value make one statement."""
    table = "| 车型 | 价格 | 续航 |\n|---|---|---|\n| L9 | 45.98万 | 1315公里 |\n| L8 | 35万 | - |"
    assert texts(table) == ["L9的价格是45.98万", "L9的续航是1315公里", "L8的价格是35万"]
    assert texts("| Car | Price |\n|---|---|\n| L9 | $50,000 |") == ["Price of L9: $50,000."]


def test_markup_is_taken_off() -> None:
    """Emphasis, links and citations are not part of what is said."""
    assert texts("**北京**是[中国](https://example.org/cn)的首都[1]。") == ["北京是中国的首都"]
    assert texts("The `app` is *free*.[^2]") == ["The app is free."]


def test_code_is_one_piece() -> None:
    """A block of code is neither cut nor lost."""
    assert texts("运行：\n```python\na = 1; b = 2\nprint(a, b)\n```") == ["a = 1; b = 2\nprint(a, b)"]


# --- nothing is lost, whatever the answer ----------------------------------------------------------

CLAUSES = st.sampled_from(
    "自习室在第二层|共有120个座位|它很安静|因为加了柔光罩|所以不刺眼|但是价格较高|如松树、柏树等|如果下雨|在北京"
    "|父母是教师|此外|支持蓝牙、快充和导航|您好|很抱歉|谢谢|我觉得不错|建议提前预约|不知道|以下是总结"
    "|其面积为3.5平方公里|The app is free|and it has six seats|because it is old|so it closed|It supports A, B and C"
    "|However|if it rains|1,315 km|Dr. Lee won|（见附录，第2页）|“先别走，等等”|**续航**|[链接](http://a.b/c?d=e)"
    "|x = 1; y = 2|“你知道吗？”|他说：“走吧？”".split("|")
)
STOPS = st.sampled_from(
    [
        "，",
        "。",
        "；",
        "\n",
        "\n- ",
        "\n1. ",
        "\n## ",
        "：\n",
        "！",
        "？",
        ", ",
        ". ",
        "; ",
        " ",
        "\n| ",
        " | ",
        "\n|---|---|\n",
        "、",
    ]
)
PAGES = st.lists(st.tuples(CLAUSES, STOPS), max_size=14).map(lambda parts: "".join(a + b for a, b in parts))


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


@settings(max_examples=300, deadline=None)
@given(PAGES, st.sampled_from(["", "自习室在哪里？", "Is the app free?"]))
def test_pages_are_covered(answer: str, question: str) -> None:
    """However clauses, marks and lines are put together, no sentence is passed over and no atom repeats another."""
    check(answer, question)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_can_be_split(answer: str, question: str) -> None:
    """No text makes the splitter fail or lose a sentence."""
    check(answer, question)


def test_real_answers_are_covered() -> None:
    """The transcripts and documents in this folder, read as if they were answers."""
    files = [
        *(FIXTURES / "wild").glob("*.txt"),
        *(FIXTURES / "seeds").glob("*.txt"),
        *(FIXTURES / "seeds").glob("*.md"),
    ]
    assert len(files) > 10
    for file in files:
        check(file.read_text("utf-8"))


def test_atoms_add_no_words_of_their_own() -> None:
    """Every run of Chinese characters in an atom stands in the answer, the question, or is the 的 of a possessor."""
    for name in ("atomic-headlamp-film", "atomic-longest-name", "atomic-mother-daughter"):
        sample, _ = seed(name)
        assert isinstance(sample, RagSample)
        for text in texts(sample.answer, sample.question):
            pairs = {text[at : at + 2] for at in range(len(text) - 1) if "的" not in text[at : at + 2]}
            source = sample.answer + sample.question
            assert sum(pair in source for pair in pairs) >= 0.8 * len(pairs)


@pytest.mark.parametrize(
    "piece",
    [
        "，",
        "“",
        "（",
        "很好，",
        "A and B, ",
        "|",
        "**",
        "因为，",
        "它的",
        "a is b; ",
        "常",
        "极其",
        "也还",
        "最为，",
        "a b ",
        "这",
        "Emma Stone met Bob Dow. She left. ",
        "王芳毕业了。她很高兴，",
        "价格：5；",
    ],
)
def test_long_repetitions_are_split_quickly(piece: str) -> None:
    """Time grows with the length of the answer, not with its square."""
    import time

    started = time.thread_time()
    split(piece * (20000 // len(piece)))
    assert time.thread_time() - started < 4


def test_sentences_of_numbers_are_not_cut() -> None:
    """A decimal point, a thousands comma and a version are parts of their number."""
    for text in ("圆周率约为3.14159", "人口为1,315,000人", "该版本为v2.0.1"):
        assert texts(f"{text}。") == [text]
    assert not any(re.fullmatch(r"\d+", text) for text in texts("The price is $1,299.99 and the mass is 3.5 kg."))
