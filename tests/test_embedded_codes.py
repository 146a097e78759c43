"""Numbers that name: exact, whatever the tolerance for quantities."""

from __future__ import annotations

import pytest

from steelyard.judges.embedded.facts import facts
from steelyard.judges.embedded.labels import findings
from steelyard.judges.embedded.support import read
from steelyard.judges.embedded.voice import voice_for


def label(claim: str, passage: str) -> str:
    found = findings([claim], "", read([passage], "", claim), voice_for(claim), [passage])
    return found[0].label


@pytest.mark.parametrize(
    ("text", "value", "of"),
    [
        ("热线：400-610-2233", "4006102233", "号码"),
        ("call 555-0142", "5550142", "号码"),
        ("验证码是7731。", "7731", "密码"),
        ("监听端口改为8443", "8443", "端口"),
        ("乘地铁十号线", 10.0, "号线"),
        ("公交42路", 42, "路"),
        ("在六楼", 6.0, "楼"),
        ("1806房间", 1806.0, "房间"),
        ("十八世纪", 18.0, "世纪"),
        ("85折", 8.5, "折"),
        ("O型血", "o", "型"),
        ("Boarding at gate 21.", "21", "gate"),
        ("Ubuntu 24.04 is required.", "24.04", "ubuntu"),
        ("主队2比0获胜", (0, 2), "score"),
        ("They won 4-1.", (1, 4), "score"),
    ],
)
def test_a_number_that_names_is_read_as_a_name(text: str, value: object, of: str) -> None:
    """What stands before or behind a number tells whether it names or measures."""
    found = [(fact.value, fact.unit) for fact in facts(text) if fact.kind == "name" and fact.unit == of]
    expected = value if isinstance(value, tuple) else (value,)
    assert found == [(expected, of)]


@pytest.mark.parametrize(
    "text",
    [
        "人口12345678人",
        "售价25000000元",
        "The box weighs 9 kg.",
        "a range of 3-5 km",
        "一共5层",
        "Falcon 1.2 kg",
    ],
)
def test_a_number_that_measures_is_not(text: str) -> None:
    """A unit behind a number makes it a quantity, with the tolerance that quantities have."""
    assert not [fact for fact in facts(text) if fact.kind == "name"]


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("售后电话：0755-8866-1200。", "售后电话是0755-8866-1300。"),
        ("服务默认监听端口8080。", "服务默认监听端口9090。"),
        ("展厅位于六楼。", "展厅位于八楼。"),
        ("可乘地铁4号线到达。", "可乘地铁6号线到达。"),
        ("这座桥始建于13世纪。", "这座桥始建于16世纪。"),
        ("决赛以2:0结束。", "决赛以3:1结束。"),
        ("会员购书享8折。", "会员购书享9折。"),
        ("The parcel is in locker 14.", "The parcel is in locker 17."),
        ("Boarding is at gate 21.", "Boarding is at gate 24."),
        ("The final ended 4-1.", "The final ended 3-2."),
        ("招生每年5月开始。", "招生每年6月开始。"),
    ],
)
def test_a_wrong_code_is_never_within_tolerance(passage: str, claim: str) -> None:
    """Floors, lines, ports, scores and telephone numbers are exact: near is wrong."""
    assert label(claim, passage) == "wrong"
    assert label(passage, passage) == "correct"


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("半年", "6个月"),
        ("半小时", "30分钟"),
        ("half an hour", "30 minutes"),
        ("下午三点", "15:00"),
        ("晚上八点半", "20:30"),
        ("中午12点", "12:00"),
    ],
)
def test_halves_and_hours_are_read(text: str, other: str) -> None:
    """A half is a number, and an hour of the afternoon one of the clock's second half."""
    (one,), (two,) = facts(text), facts(other)
    assert (one.unit, one.value) == (two.unit, two.value)


def test_points_are_no_hours() -> None:
    assert [fact.unit for fact in facts("给出三点建议")] == ["点"]


def test_a_sign_is_part_of_a_number() -> None:
    assert label("昨夜最低气温8度。", "昨夜最低气温零下8度。") != "correct"
