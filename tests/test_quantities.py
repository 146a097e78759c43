"""Numbers are read as people write them, compared exactly, and left alone where they are names."""

from __future__ import annotations

import math
import time
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.text.quantities import han_number, magnitude, numbers, quantity, same_magnitude


def _read(text: str) -> tuple[Fraction, str] | None:
    found = quantity(text)
    return found and (found.value, found.unit)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("十", 10),
        ("二十八", 28),
        ("廿八", 28),
        ("两千三", 2300),
        ("兩千零三", 2003),
        ("一万零五十", 10050),
        ("一百二", 120),
        ("三万五", 35000),
        ("一亿两千万", 120_000_000),
        ("三万亿", 3 * 10**12),
        ("十万", 100_000),
        ("一九九七", 1997),
        ("二〇〇八", 2008),
        ("三点五", Fraction(7, 2)),
        ("壹佰贰拾", 120),
        ("一百万零三", 1_000_003),
        ("十二亿三千四百万", 1_234_000_000),
        ("零", 0),
        ("一千零二十", 1020),
        ("貳萬", 20000),
    ],
)
def test_chinese_numerals(text: str, value: int | Fraction) -> None:
    """Numbers in Chinese characters, spoken and formal, with and without zeros."""
    assert han_number(text) == value
    assert _read(text) == (value, "")


@pytest.mark.parametrize("text", ["", "万", "千万", "点五", "abc", "12", "百", "一" * 5000])
def test_what_is_no_chinese_numeral(text: str) -> None:
    """A unit alone, digits of another kind or an endless row are not a number in Chinese characters."""
    assert han_number(text) is None


@given(st.integers(0, 10**12))
def test_written_numerals_are_read_back(number: int) -> None:
    """Any whole number, written out in full in Chinese, is read as itself."""
    assert han_number(in_chinese(number)) == number


def in_chinese(number: int) -> str:
    """Reference writer: sections of four digits, 零 for gaps."""
    if number == 0:
        return "零"
    text, gap = "", False
    for unit, name in ((10**8, "亿"), (10**4, "万"), (1, "")):
        section, number = divmod(number, unit)
        if unit == 10**8 and section >= 10**4:
            text += in_chinese(section) + name
        elif section:
            text += ("零" if text and (gap or section < 1000) else "") + four_digits(section) + name
        gap = not section or (section % 10 == 0 and bool(name))
    return text


def four_digits(number: int) -> str:
    text, gap = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, unit)
        if digit:
            text += ("零" if gap and text else "") + "零一二三四五六七八九"[digit] + name
        gap = not digit
    return text


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1亿2千万", 120_000_000, ""),
        ("1亿2345万元", 123_450_000, "元"),
        ("3万5", 35000, ""),
        ("3万5千人", 35000, "人"),
        ("1.5万", 15000, ""),
        ("2千3百万", 23_000_000, ""),
        ("12,000", 12000, ""),
        ("１２３個", 123, "個"),
        ("百分之三十", 30, "%"),
        ("30%", 30, "%"),
        ("３０％", 30, "%"),
        ("3成", 30, "%"),
        ("三成", 30, "%"),
        ("千分之五", Fraction(1, 2), "%"),
        ("5‰", Fraction(1, 2), "%"),
        ("三分之一", Fraction(1, 3), ""),
        ("30 percent", 30, "%"),
        ("-5度", -5, "度"),
        ("−5度", -5, "度"),
        ("零下5度", -5, "度"),
        ("负三百", -300, ""),
        ("气温约-5度", -5, "度"),
        ("minus five", -5, ""),
        ("约5万多人", 50000, "人"),
        ("128个座位", 128, "个座位"),
        ("3.5k", 3500, ""),
        ("1.2 million", 1_200_000, ""),
        ("$1.2bn", 1_200_000_000, "$"),
        ("5 mn", 5_000_000, ""),
        ("￥5万", 50000, "¥"),
        ("one hundred and twenty-five", 125, ""),
        ("a hundred people", 100, "people"),
        ("two million five hundred thousand", 2_500_000, ""),
        ("about 300 people", 300, "people"),
        ("5km", 5, "km"),
        ("twelve", 12, ""),
        ("5兆", 5, "兆"),
        ("0.5", Fraction(1, 2), ""),
        ("共有20个", 20, "个"),
    ],
)
def test_quantities(text: str, value: int | Fraction, unit: str) -> None:
    """A quantity is its number with multipliers applied, and its unit."""
    assert _read(text) == (value, unit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "没有数字",
        "第二排",
        "第3层",
        "L9",
        "v2",
        "iPhone15",
        "iPhone 15",
        "No. 5",
        "#5",
        "3rd",
        "2.0.1",
        "5号",
        "20-30人",
        "20到30",
        "1小时30分",
        "five, six",
        "half a million",
        "nineteen ninety seven",
        "千万别去",
        "GPT-4",
        "one point five million",
        "9" * 5000,
        "亿" * 5000,
        "1" + "亿" * 5000,
    ],
)
def test_what_is_not_one_quantity(text: str) -> None:
    """Ordinals, names, versions, ranges, compounds and endless digits are not compared by magnitude."""
    assert quantity(text) is None


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    """No text makes the readers fail."""
    quantity(text)
    numbers(text)


@given(st.text("0123456789,.-零一二两三四五六七八九十百千万亿点分之成%k $年前第", max_size=60))
def test_any_row_of_numerals_can_be_read(text: str) -> None:
    """Nor does any row of the very characters they look for."""
    found = quantity(text)
    assert found is None or isinstance(found.value, Fraction)


@pytest.mark.parametrize(
    "piece", ["一", "9", "9,", "亿", "1亿", "five ", "minus ", "-", "公元", "a ", "九点", "一 ", "百分之"]
)
def test_reading_takes_linear_time(piece: str) -> None:
    """Four times the text takes no more than some four times the time."""

    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        start = time.process_time()
        quantity(text)
        return time.process_time() - start

    assert seconds(400_000) < 8 * seconds(100_000) + 1


# --- magnitude -------------------------------------------------------------------------------------

positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**12)


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        ("100", "999", True),
        ("99", "100", True),
        ("31", "100", False),
        ("32", "100", True),
        ("1", "10", False),
        ("9", "28", True),
        ("9", "29", False),
        ("0", "0", True),
        ("0", "1", False),
        ("-5", "5", False),
        ("-50", "-60", True),
        ("0.5", "0.9", True),
        ("1/3", "1", True),
        ("3/10", "1", False),
    ],
)
def test_magnitude_goldens(a: str, b: str, agree: bool) -> None:
    """Same power of ten, or apart by at most √10; signs must agree, and zero only equals zero."""
    assert same_magnitude(Fraction(a), Fraction(b)) is agree
    assert same_magnitude(Fraction(b), Fraction(a)) is agree


@given(positive)
def test_magnitude_brackets_its_value(value: Fraction) -> None:
    """10^m ≤ value < 10^(m+1), exactly."""
    power = magnitude(value)
    assert Fraction(10) ** power <= value < Fraction(10) ** (power + 1)


@given(positive, positive)
def test_magnitude_agrees_with_decimals(a: Fraction, b: Fraction) -> None:
    """The rule, computed a second way with fifty decimal digits, gives the same answer."""
    with localcontext() as context:
        context.prec = 50
        x, y = (Decimal(v.numerator) / Decimal(v.denominator) for v in (a, b))
        same_power = math.floor(x.log10()) == math.floor(y.log10())
        expected = same_power or max(x / y, y / x) <= Decimal(10).sqrt()
    assert same_magnitude(a, b) is expected


@given(st.integers(-60, 60))
def test_powers_of_ten_are_exact(power: int) -> None:
    """A power of ten belongs to its own magnitude, where a float logarithm would slip."""
    assert magnitude(Fraction(10) ** power) == power


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("300", 1),
        ("三百", 1),
        ("3.1万", 1000),
        ("3万", 10_000),
        ("1亿2千万", 10_000_000),
        ("三万五", 1000),
        ("二十八", 1),
        ("一万零五十", 1),
        ("3.50", Fraction(1, 100)),
        ("三点五", Fraction(1, 10)),
        ("1.2 million", 100_000),
        ("two million", 1_000_000),
        ("two hundred", 1),
        ("5‰", Fraction(1, 10)),
    ],
)
def test_how_finely_a_number_is_written(text: str, step: int | Fraction) -> None:
    """The step of a number is what its last written digit counts; 三百 is written out, not three of a larger unit."""
    found = quantity(text)
    assert found
    assert found.step == step


def test_all_numbers_of_a_text() -> None:
    """Every number in order, also of ranges and names."""
    assert numbers("20到30人，第3排，iPhone 15") == [20, 30, 3, 15]
    assert numbers("none here") == []
