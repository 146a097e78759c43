"""Which values may be off, and by how much: a table of pairs under every policy, and the arithmetic behind it."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from feeding import RAG, changed, judge
from steelyard.engine.runner import run_to_end
from steelyard.errors import ConfigError
from steelyard.judges import PanelJudge, ScriptedJudge
from steelyard.protocols import get_protocol
from steelyard.protocols.atoms import Rules, atom_item
from steelyard.protocols.common import Collected
from steelyard.records import Atom, Numbered, Tolerance
from steelyard.tasks import AtomVerdict, Difference, GradedAtomVerdict
from steelyard.text.measures import agree_as_written, measure
from steelyard.text.moments import Clock, Day
from steelyard.text.tolerance import ruling
from steelyard.text.values import Contents, read

Kind = Literal["statistic", "specification", "date", "political_date"]
STAT, SPEC, DATE, POLITICAL = "statistic", "specification", "date", "political_date"

# kind, claimed, stated; then under statistics, exact, magnitude and 10%. S same, W within, B beyond, - the judge's.
QUANTITIES = """
specification | $900 | $300 | B B W B
specification | 6 tablets | 2 tablets | B B W B
specification | 七座 | 六座 | B B W B
specification | 9% | 3% | B B W B
specification | 200 kg | 75 kg | B B W B
specification | 两年 | 24个月 | S S S S
specification | 1.2万 | 12,000 | S S S S
specification | 约3.1万 | 31,200 | W B W W
specification | 3.1万 | 31,200 | W B W W
specification | 3.1万 | 3.4万 | B B W W
specification | 3.1万 | 34,000 | B B W W
specification | 1.5 kg | 1500 g | S S S S
specification | 1.5公斤 | 1500克 | S S S S
specification | 5 km | 5000米 | S S S S
specification | 90 minutes | 1.5 hours | S S S S
specification | 1小时30分 | 90分钟 | S S S S
specification | 2 hours and 15 minutes | 135 min | S S S S
specification | 一年半 | 18个月 | S S S S
specification | 半年 | 6个月 | S S S S
specification | half an hour | 30 minutes | S S S S
specification | 2 hours | 100 minutes | B B W B
specification | 两年 | 20个月 | B B W B
specification | 约2小时 | 100分钟 | W B W B
specification | two weeks | 14 days | S S S S
specification | 24小时 | 1天 | S S S S
specification | 一个月 | 30天 | - - - -
specification | 百分之三十 | 30% | S S S S
specification | 三成 | 30% | S S S S
specification | 98% | 98.4% | W B W W
specification | 0.3 | 30% | - - - -
specification | 30% | 35% | B B W B
specification | 5% | 0.5% | B B B B
specification | RMB300 | 300元 | S S S S
specification | ￥300 | 300块 | S S S S
specification | $300 | 300 dollars | S S S S
specification | $5 a month | $60 a year | S S S S
specification | 10元/月 | 10元/年 | B B B B
specification | costs 300 dollars | $300 | S S S S
specification | 220 V | 380 V | B B W B
specification | 0.22 kV | 220伏 | S S S S
specification | 120 m² | 120平方米 | S S S S
specification | 60 km/h | 1 km/min | S S S S
specification | 60公里/小时 | 80公里/小时 | B B W B
specification | -5度 | 5度 | B B B B
specification | 500 mg | 0.5 g | S S S S
specification | 500 mg | 250 mg | B B W B
specification | 2.4 mg | 2.41 mg | W B W W
specification | 2 mg | 2.4 mg | B B W B
specification | 下午3点 | 15:00 | S S S S
specification | 9点 | 10点 | B B B B
specification | 9:30 | 10:30 | B B B B
specification | 3:00 | 15:00 | - - - -
specification | 20-30人 | 10-15人 | B B - -
specification | about 300 people | 298 people | W B W W
specification | about 300 people | 340 people | B B W B
specification | over 300 | 305 | W B W W
specification | 近3万人 | 29,500人 | W B W W
specification | 128座 | 128个座位 | S S S S
specification | 7座 | 6个座位 | B B W B
specification | 三百 | 300 | S S S S
specification | free | no charge | - - - -
specification | 第三排 | 第二排 | B B B B
specification | 第2排 | 第二排 | - - - -
specification | L9 | L8 | B B B B
specification | port 5432 | port 5433 | B B B B
specification | iPhone 15 | iPhone 14 | B B B B
specification | v1.3.2 | v1.3.1 | B B B B
specification | 5号线 | 6号线 | B B B B
specification | the 3rd floor | the 2nd floor | B B B B
specification | 5月3日 | May 3 | S S S S
specification | 5月3日 | 5月5日 | B B B B
statistic | 30亿元 | 52亿元 | W B W B
statistic | 30亿 | 2亿 | B B B B
statistic | 一亿两千万 | 1.2亿 | S S S S
statistic | 120萬人次 | 1,183,400人次 | W B W W
statistic | 1.2 million | 900 thousand | W B W B
statistic | 99 | 100 | W B W W
statistic | 31 | 100 | B B B B
statistic | $1.2bn | $1.9bn | W B W B
statistic | 9% | 3% | B B W B
statistic | 第二 | 第三 | B B B B
statistic | 138亿年 | 137亿年 | W B W W
statistic | thirty thousand | 34,800 | W B W B
"""
# kind, claimed, stated; then under seed, exact and year.
DATES = """
date | 2019年5月1日 | 2019年6月3日 | W B W
date | 2018年 | 2019年6月3日 | B B B
date | 二〇〇八年八月 | 2008-08-08 | S S S
date | in May 1997 | 1997 | S S S
date | 3 May 1997 | May 5, 1997 | W B W
date | 公元前221年 | 公元221年 | B B B
date | 1046 BC | 公元前1046年 | S S S
date | 5月3日 | 5月5日 | B B B
date | 去年 | 2019年 | - - -
date | 1867–1919 | 1867–1918 | B B B
date | 星期三 | 星期四 | B B B
date | 周三 | Wednesday | S S S
date | 上午九点 | 9:00 am | S S S
political_date | 1949年10月2日 | 1949年10月1日 | B B W
political_date | 1949年10月1日 | October 1, 1949 | S S S
political_date | 1949年10月 | 1949年10月1日 | S S S
political_date | 1948年 | 1949年10月1日 | B B B
"""
MEANS = {"S": "same", "W": "within", "B": "beyond", "-": None}
POLICIES = [Tolerance(quantities=policy) for policy in ("statistics", "exact", "magnitude", "10%")]
DATE_POLICIES = [Tolerance(dates="seed"), Tolerance(dates="exact"), Tolerance(dates="year")]


def rows(table: str, policies: list[Tolerance]) -> list[Any]:
    found = []
    for line in table.strip().splitlines():
        kind, claimed, stated, expected = (cell.strip() for cell in line.split("|"))
        for policy, sign in zip(policies, expected.split(), strict=True):
            found.append(pytest.param(kind, claimed, stated, policy, MEANS[sign], id=f"{line} @ {policy}"))
    return found


ROWS = [*rows(QUANTITIES, POLICIES), *rows(DATES, DATE_POLICIES)]


def labelled(said: str, difference: Difference, policy: Tolerance, *, graded: bool) -> Atom:
    """What becomes of an atom that a judge labelled so, in `atomic` (graded) or in `scorecard`."""
    passage = "这是资料原文。"
    fields: dict[str, Any] = {"id": 1, "quote": passage, "label": said, "source": "reference", "difference": difference}
    verdict = GradedAtomVerdict(**fields, reference=0, level=1) if graded else AtomVerdict(**fields)
    collected = Collected(labels={"atoms": {1: verdict}})
    return atom_item(Numbered(id=1, text="…"), collected, (passage,), Rules(tolerance=policy))


@pytest.mark.parametrize(("kind", "claimed", "stated", "policy", "expected"), ROWS)
def test_every_pair_under_every_policy(
    kind: Kind, claimed: str, stated: str, policy: Tolerance, expected: str | None
) -> None:
    """Code rules on the pair as the table says, and the label follows it in both protocols, whatever the judge said."""
    difference = Difference(kind=kind, claimed=claimed, stated=stated)
    assert ruling(difference, policy) == expected
    for said in ("correct", "wrong"):
        for graded in (True, False):
            atom = labelled(said, difference, policy, graded=graded)
            assert atom.label == {"same": "correct", "within": "correct", "beyond": "wrong", None: said}[expected]
            assert ("within_tolerance" in atom.flags) is (expected == "within")
            assert atom.difference
            assert (atom.difference.claimed, atom.difference.stated) == (claimed, stated)


def test_the_table_is_long_enough() -> None:
    """At least sixty pairs, in both languages."""
    lines = [*QUANTITIES.strip().splitlines(), *DATES.strip().splitlines()]
    assert len(lines) >= 60
    assert sum(line.isascii() for line in lines) >= 20
    assert sum(not line.isascii() for line in lines) >= 30


# --- the options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["atomic", "scorecard"])
def test_policies_are_options_of_both_protocols(protocol: str) -> None:
    """Nested, dotted or both; the dotted name wins, since it comes from a flag."""
    parse = get_protocol(protocol).parse_options
    given = parse({"tolerance": {"quantities": "exact", "dates": "year"}, "tolerance.quantities": "5 %"})
    assert given.model_dump()["tolerance"] == {"quantities": "5%", "dates": "year"}
    assert parse({}).model_dump()["tolerance"] == {"quantities": "statistics", "dates": "seed"}


@pytest.mark.parametrize(
    ("name", "value"), [("tolerance.quantities", "loose"), ("tolerance.dates", "month"), ("tolerance.prices", "exact")]
)
def test_an_unknown_policy_is_named(name: str, value: str) -> None:
    """The error says which option it is about."""
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        get_protocol("atomic").parse_options({name: value})


@pytest.mark.parametrize("policy", ["statistics", "exact", "magnitude", "0%", "5%", "2.5 %", "１０％"])
def test_known_policies(policy: str) -> None:
    """Words and percentages, also full-width."""
    if policy == "１０％":
        with pytest.raises(ValidationError):
            Tolerance(quantities=policy)
    else:
        assert Tolerance(quantities=policy).quantities == policy.replace(" ", "")


def test_a_difference_without_a_kind_of_its_own_is_a_specification() -> None:
    """Recordings of earlier versions say `quantity`: they stay readable, and in doubt a value is a specification."""
    old = Difference.model_validate({"kind": "quantity", "claimed": "128", "stated": "120"})
    assert old.kind == "specification"
    assert ruling(old, Tolerance()) == "beyond"


# --- several judges --------------------------------------------------------------------------------


def scripted(**label: Any) -> ScriptedJudge:
    from feeding import respond

    return ScriptedJudge(lambda ask: respond(ask, atoms={1: label}) if ask.task == "atomic.judge" else respond(ask))


CROWD = {"kind": "statistic", "claimed": "150万", "stated": "120万"}
PRICE = {"kind": "specification", "claimed": "150元", "stated": "120元"}


@pytest.mark.parametrize(
    ("difference", "policy", "ends_as"),
    [
        (CROWD, "statistics", "correct"),
        (CROWD, "exact", "wrong"),
        (PRICE, "statistics", "wrong"),
        (PRICE, "magnitude", "correct"),
    ],
)
def test_a_panel_counts_as_the_protocol_does(difference: dict[str, str], policy: str, ends_as: str) -> None:
    """Three judges found the same difference and labelled it differently: one label, no split, the values told."""
    from steelyard.evaluation import evaluate_async

    panel = PanelJudge([scripted(label=said, difference=difference) for said in ("correct", "wrong", "correct")])
    options = {"tolerance": {"quantities": policy}, "date": "2026-01-01"}
    results = run_to_end(evaluate_async([RAG], "atomic", panel, options=options))
    atom = results[0].items[0]
    assert isinstance(atom, Atom)
    assert (atom.label, atom.confidence) == (ends_as, 1.0)
    assert atom.difference
    assert ("within_tolerance" in atom.flags) is (ends_as == "correct")


def test_the_values_are_told_whoever_is_quoted() -> None:
    """One judge saw no difference, the other did, and the tolerance lets it pass: the item has the flag."""
    from steelyard.evaluation import evaluate_async

    panel = PanelJudge([scripted(label="correct"), scripted(label="wrong", difference=CROWD)])
    atom = run_to_end(evaluate_async([RAG], "atomic", panel, options={"date": "2026-01-01"}))[0].items[0]
    assert isinstance(atom, Atom)
    assert (atom.label, atom.flags) == ("correct", ("within_tolerance",))


def test_scorecard_has_the_same_policy() -> None:
    """The atoms of a scorecard carry differences too."""
    split = {"atoms": [{"id": 1, "text": "自习室共有128个座位"}]}
    for difference, label in ((CROWD, "correct"), (PRICE, "wrong")):
        said = changed(atoms={1: {"label": "correct", "difference": difference}})
        atom = next(
            i for i in judge("scorecard", RAG, split, split, otherwise=said).verdict.items if isinstance(i, Atom)
        )
        assert atom.label == label
        assert atom.difference


# --- arithmetic ------------------------------------------------------------------------------------

amounts = st.integers(1, 10**9)
FAMILIES = [("个月", "年", 12), ("g", "kg", 1000), ("米", "公里", 1000), ("minutes", "hours", 60), ("毫升", "升", 1000)]


@given(amounts, st.sampled_from(FAMILIES))
def test_conversion_is_exact(amount: int, family: tuple[str, str, int]) -> None:
    """So many of a large unit are that many times the factor of the small one, under every policy."""
    small, large, factor = family
    difference = Difference(kind="specification", claimed=f"{amount} {large}", stated=f"{amount * factor} {small}")
    assert all(ruling(difference, policy) == "same" for policy in POLICIES)


@given(amounts, amounts, st.sampled_from(["", "元", "kg", "人"]))
def test_policies_are_ordered(a: int, b: int, unit: str) -> None:
    """What is exact passes everywhere; what passes as a specification passes as a statistic; order does not matter."""
    for kind in (STAT, SPEC):
        one = Difference.model_validate({"kind": kind, "claimed": f"{a}{unit}", "stated": f"{b}{unit}"})
        other = Difference.model_validate({"kind": kind, "claimed": f"{b}{unit}", "stated": f"{a}{unit}"})
        for policy in POLICIES[:3]:
            assert ruling(one, policy) == ruling(other, policy)
    specification = Difference(kind="specification", claimed=f"{a}{unit}", stated=f"{b}{unit}")
    statistic = Difference(kind="statistic", claimed=f"{a}{unit}", stated=f"{b}{unit}")
    if a != b:
        assert ruling(specification, Tolerance()) == "beyond"
        assert ruling(statistic, Tolerance(quantities="exact")) == "beyond"
        assert ruling(statistic, Tolerance()) == ruling(specification, Tolerance(quantities="magnitude"))


@given(amounts, st.fractions(0, 3), st.integers(0, 100))
def test_percentages_are_of_the_stated_value(stated: int, share: Fraction, percent: int) -> None:
    """N% lets pass exactly what is no further from the stated value than N% of it."""
    claimed = Fraction(round(stated * share * 1000), 1000)
    difference = Difference(kind="specification", claimed=f"{float(claimed):.3f}", stated=str(stated))
    read = measure(difference.claimed)
    assert read
    expected = abs(read.value - stated) * 100 <= percent * stated
    found = ruling(difference, Tolerance(quantities=f"{percent}%"))
    assert found == ("same" if read.value == stated else "within" if expected else "beyond")


@given(st.integers(10, 99_999), st.integers(0, 3))
def test_rounding_is_recognised(value: int, dropped: int) -> None:
    """A number rounded to two digits or more agrees with what it was rounded from, and with no other such number."""
    step = 10**dropped
    written = Fraction(value * 10 + 4, 10) * step
    coarse, fine = measure(f"{value}"), measure(str(float(Fraction(value * 10 + 4, 10))))
    assert coarse
    assert fine
    assert agree_as_written(coarse, fine)
    assert agree_as_written(fine, coarse)
    next_one = measure(f"{value + 1}")
    assert next_one
    assert not agree_as_written(next_one, fine)
    assert written > value * step


@given(st.integers(0, 23), st.integers(0, 59))
def test_clocks_are_read_back(hour: int, minute: int) -> None:
    """Any time of day, with 24 hours or with am and pm."""
    found = read(f"{hour:02}:{minute:02}")
    assert found
    (time_of_day,) = found.values
    assert isinstance(time_of_day, Clock)
    assert time_of_day.minutes == hour * 60 + minute
    half = f"{(hour - 1) % 12 + 1}:{minute:02} {'am' if hour < 12 else 'pm'}"
    assert read(half) == Contents((Clock(hour * 60 + minute, True),), "\0")


@given(st.dates())
def test_dates_are_read_back(day: Any) -> None:
    """Any date of four digits of year, in three ways of writing it."""
    if day.year >= 1000 and day.year < 2101:
        expected = Contents((Day(day.year, day.month, day.day),), "\0")
        assert read(f"{day.year}年{day.month}月{day.day}日") == expected
        assert read(day.isoformat()) == expected
        assert read(f"{day:%B} {day.day}, {day.year}") == expected


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from([STAT, SPEC, DATE, POLITICAL]))
def test_any_two_texts_can_be_compared(claimed: str, stated: str, kind: str) -> None:
    """Nothing that a judge may write makes code fail, and order never matters."""
    one = Difference.model_validate({"kind": kind, "claimed": claimed, "stated": stated})
    other = Difference.model_validate({"kind": kind, "claimed": stated, "stated": claimed})
    assert ruling(one, Tolerance()) == ruling(other, Tolerance())


@given(
    st.text("0123456789,.:-/$¥%零一二两三四五六七八九十百千万亿点分之成半年月日个小时元kgm约多近第 ", max_size=40),
    st.text("0123456789,.:-/$¥%零一二两三四五六七八九十百千万亿点分之成半年月日个小时元kgm约多近第 ", max_size=40),
)
def test_any_two_rows_of_numerals_can_be_compared(claimed: str, stated: str) -> None:
    """Nor do the very characters that it looks for."""
    for kind in (STAT, SPEC, DATE):
        difference = Difference.model_validate({"kind": kind, "claimed": claimed, "stated": stated})
        assert ruling(difference, Tolerance()) in ("same", "within", "beyond", None)


@pytest.mark.parametrize("piece", ["1年", "半", "9", "第", "3 hours ", "$", "一", "约", "a "])
def test_a_long_value_is_none_and_takes_no_time(piece: str) -> None:
    """A paragraph in the place of a value is left to the judge at once."""
    start = time.process_time()
    difference = Difference(kind="specification", claimed=piece * 100_000, stated="5")
    assert ruling(difference, Tolerance()) is None
    # Up to the longest value that is looked at, reading takes no time either.
    ruling(Difference(kind="specification", claimed=(piece * 200)[:200], stated="5"), Tolerance())
    assert time.process_time() - start < 2
