"""Claims that have all the words of a passage and say something else."""

from __future__ import annotations

import pytest

from steelyard.judges.embedded.comparing import worked_out
from steelyard.judges.embedded.limits import bounded
from steelyard.judges.embedded.roles import crossed, denied_there, exchanged
from steelyard.judges.embedded.support import read
from steelyard.judges.embedded.turning import reversed_roles

CROSSED = [
    ("研发中心在苏州，仓库在无锡。", "研发中心在无锡。"),
    ("研发中心在苏州，仓库在无锡。", "仓库在苏州。"),
    ("成人票占七成，儿童票占三成。", "儿童票占七成。"),
    ("小说由林岚创作，周野配图。", "小说由周野创作。"),
    ("先放姜，然后放蒜。", "先放蒜。"),
    ("惠灵顿是新西兰的首都，奥克兰是其最大城市。", "新西兰的首都是奥克兰。"),
    ("The office is in Oslo and the warehouse is in Bergen.", "The office is in Bergen."),
    (
        "Wellington is the capital of New Zealand. Auckland is its largest city.",
        "The capital of New Zealand is Auckland.",
    ),
    ("The song was composed by Mara Lund and sung by Ida Roth.", "The song was composed by Ida Roth."),
    ("Bicycles are allowed; scooters are not.", "Scooters are allowed."),
]
NOT_CROSSED = [
    ("《远山》由贺岚执导，丁野主演，2021年上映。", "《远山》由丁野主演。"),
    ("海州大学设有法学院。该校还设立了医学院。", "海州大学设有医学院。"),
    ("手环重25克，续航14天，配有心率计。", "手环有心率计。"),
    ("两类读者都可以借书。成人可借十册。", "成人读者可以借书。"),
    ("清河全长340公里，在白沙注入东湖。", "清河注入东湖。"),
    ("研发中心在苏州，仓库在无锡。", "公司的仓库在无锡。"),
    ("周岚是演员，1984年出生于上海，毕业于戏剧学院。", "周岚出生于上海。"),
    ("成人票占七成，儿童票占三成。", "儿童票占三成。"),
    ("苹果5元，香蕉3元。", "香蕉售价3元。"),
    ("保鲜室适合存放蔬菜。冰淇淋应放在冷冻室。", "保鲜室不适合存放冰淇淋。"),
    ("Fines are refunded, tolls are not.", "Tolls are not refunded."),
    ("The office is in Oslo and the warehouse is in Bergen.", "The warehouse is in Bergen."),
]
REVERSED = [
    ("青云队2:0击败白石队。", "白石队击败了青云队。"),
    ("晨光集团收购了远山公司。", "晨光集团被远山公司收购。"),
    ("大刘借给小陈300元。", "小陈借给大刘300元。"),
    ("北馆比南馆高12米。", "南馆比北馆高12米。"),
    ("In 2019 Harrow bought Linden.", "Linden bought Harrow in 2019."),
    ("Harrow acquired Linden.", "Harrow was acquired by Linden."),
    ("Oak is harder than pine.", "Pine is harder than oak."),
]
NOT_REVERSED = [
    ("财务科每月核对一次账目。", "账目每月由财务科核对一次。"),
    ("Kent will play Surrey on Sunday.", "Surrey will play Kent on Sunday."),
    ("蓝队昨天战胜绿队。", "绿队昨天败给了蓝队。"),
    ("Rowing is thought riskier than running.", "Running is thought safer than rowing."),
    ("晨光集团收购了远山公司。", "远山公司被晨光集团收购。"),
    ("北馆比南馆高12米。", "南馆比北馆低12米。"),
    ("大刘和小陈是同学。", "小陈和大刘是同学。"),
    ("In 2019 Harrow bought Linden.", "Harrow bought Linden in 2019."),
    ("Harrow acquired Linden.", "Linden was acquired by Harrow."),
    ("Harrow met Linden in Rome.", "Linden met Harrow in Rome."),
]
EXCHANGED = [
    ("公司上季度盈利80万元。", "公司上季度亏损80万元。"),
    ("图书馆每周二闭馆。", "图书馆周二开放。"),
    ("指示灯变成红色。", "指示灯变为绿色。"),
    ("门把手是黄铜做的。", "门把手是塑料做的。"),
    ("这种药应饭前服用。", "这种药应饭后服用。"),
    ("The gallery has two floors. It is closed on Fridays.", "The gallery is open on Fridays."),
    ("The patch disables logging.", "The patch enables logging."),
    ("Helmets are compulsory.", "A helmet is optional."),
    ("The roof is slate.", "The roof is steel."),
]
NOT_EXCHANGED = [
    ("公园东门靠近车站，西门设有售票处。", "售票处在公园西门。"),
    ("The pool is open daily except Tuesday.", "The pool is closed on Tuesdays."),
    ("Tea contains less caffeine than coffee.", "Coffee contains more caffeine than tea."),
    ("图书馆每周二闭馆。", "图书馆周二不开放。"),
    ("The gallery is closed on Fridays.", "The gallery is not open on Fridays."),
    ("指示灯变成红色。", "指示灯变为红色。"),
]
BOUNDED = [
    ("Sales reached 4 million, a rise of 9%.", "Sales dropped 9%."),
    ("You can invite up to 25 guests.", "You can invite at least 25 guests."),
    ("每队至少5人。", "每队最多5人。"),
    ("用水量同比减少7%。", "用水量增长了7%。"),
]
NOT_BOUNDED = [
    ("Sales rose by 9%.", "Sales increased 9%."),
    ("每队至少5人。", "每队不少于5人。"),
    ("Sales rose by 9% and costs fell by 4%.", "Costs fell by 4%."),
]
WORKED_OUT = [
    ("轻享版售价1899元，旗舰版售价2499元。", "轻享版比旗舰版贵。"),
    ("东塔高88米，西塔高102米。", "东塔比西塔高。"),
    ("The Wren weighs 900 g, the Lark 1.1 kg.", "The Wren is heavier than the Lark."),
    ("Ticket A costs $30; ticket B costs $45.", "Ticket A is more expensive than ticket B."),
]
NOT_WORKED_OUT = [
    ("风扇甲原价300元，现价180元。风扇乙售价200元。", "风扇甲比风扇乙便宜。"),
    (
        "The Basic plan costs $9 a month. The Plus plan costs $80 a year.",
        "The Basic plan is more expensive than the Plus plan.",
    ),
    ("轻享版售价1899元，旗舰版售价2499元。", "旗舰版比轻享版贵。"),
    ("轻享版售价1899元，重1.2千克。", "轻享版比旗舰版贵。"),
    ("The Wren weighs 900 g, the Lark 1.1 kg.", "The Wren is lighter than the Lark."),
    ("The Wren weighs 900 g, the Lark is 20 cm long.", "The Wren is heavier than the Lark."),
]
# A claim of several clauses is read clause by clause.
IN_CLAUSES = [
    ("允许带猫，不允许带狗。", "允许带狗，不允许带猫。"),
    ("The office is in Oslo and the shop is in Bergen.", "The office is in Bergen and the shop is in Oslo."),
    ("明日晴，最高气温28度，后日有雨。", "明日有雨，最高气温28度。"),
]
DENIED = [
    ("旅馆允许带猫，不允许带狗。", "旅馆不允许带猫。"),
    ("旅馆提供早餐，不提供接送服务。", "旅馆提供免费接送服务。"),
    ("Overtime is paid, not given as leave.", "Overtime is not paid."),
]


@pytest.mark.parametrize(("passage", "claim"), CROSSED)
def test_a_neighbours_value_is_not_ones_own(passage: str, claim: str) -> None:
    """What is said of the one is not true of the other, though all words are there."""
    assert crossed(claim, [passage])
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(("passage", "claim"), NOT_CROSSED)
def test_what_a_clause_says_of_the_thing_itself_is_its_own(passage: str, claim: str) -> None:
    """Subjects that are left out, and clauses that deny, are no crossing."""
    assert crossed(claim, [passage]) is None


@pytest.mark.parametrize(("passage", "claim"), REVERSED)
def test_who_did_it_to_whom_counts(passage: str, claim: str) -> None:
    assert reversed_roles(claim, [passage])
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(("passage", "claim"), NOT_REVERSED)
def test_the_same_told_from_the_other_end_is_the_same(passage: str, claim: str) -> None:
    """Passives, opposites and what is mutual turn the order round and not the sense."""
    assert reversed_roles(claim, [passage]) is None


@pytest.mark.parametrize(("passage", "claim"), EXCHANGED)
def test_an_opposite_or_another_value_of_the_kind_is_seen(passage: str, claim: str) -> None:
    texts = [part for part in passage.split(". ") if part]
    assert exchanged(claim, texts)
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(("passage", "claim"), NOT_EXCHANGED)
def test_two_denials_cancel_out(passage: str, claim: str) -> None:
    assert exchanged(claim, [passage]) is None
    assert read([passage]).support(claim).label != "contradicted"


@pytest.mark.parametrize(("passage", "claim"), DENIED)
def test_a_clause_that_denies_the_claim_is_seen_beside_others(passage: str, claim: str) -> None:
    assert denied_there(claim, [passage])
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(("passage", "claim"), BOUNDED)
def test_the_same_number_with_the_opposite_said_of_it_is_seen(passage: str, claim: str) -> None:
    assert bounded(claim, [passage])
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(("passage", "claim"), NOT_BOUNDED)
def test_the_same_said_of_the_same_number_is_no_clash(passage: str, claim: str) -> None:
    assert bounded(claim, [passage]) is None


@pytest.mark.parametrize(("passage", "claim"), WORKED_OUT)
def test_a_comparison_that_the_figures_contradict_is_seen(passage: str, claim: str) -> None:
    assert worked_out(claim, [passage])
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(("passage", "claim"), NOT_WORKED_OUT)
def test_a_comparison_without_both_figures_is_left_alone(passage: str, claim: str) -> None:
    assert worked_out(claim, [passage]) is None


@pytest.mark.parametrize(("passage", "claim"), IN_CLAUSES)
def test_each_clause_of_a_claim_is_held_against_the_passage(passage: str, claim: str) -> None:
    assert read([passage]).support(claim).label == "contradicted"


@pytest.mark.parametrize(
    ("passages", "claim"),
    [
        ("The Harbour Gallery opened in 1994. It is closed on Mondays.", "The Harbour Gallery is closed on Mondays."),
        ("Supported languages: English, French, German.", "It supports French."),
        ("The soup contains no milk and no eggs.", "The soup contains no milk."),
        ("The Harbour Gallery is closed on Mondays.", "No, the Harbour Gallery is not open on Mondays."),
    ],
)
def test_what_the_passage_says_elsewhere_is_not_held_against_a_claim(passages: str, claim: str) -> None:
    assert read([passages]).support(claim).label != "contradicted"
