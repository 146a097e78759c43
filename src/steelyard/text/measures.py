"""Measured values: a number with its unit, and whether two of them are the same or agree as finely as they are written.

Units of one dimension are converted: 两年 is 24 个月, 1.5 kg is 1,500 g. A month has no fixed number of days, so months
and days are two dimensions.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

from steelyard.text import fold
from steelyard.text.quantities import CURRENCY, HAN_NUMERAL, Quantity, quantity

Bound = Literal["", "about", "above", "below"]

# A value is a few words; a paragraph is none, and reading it would take time.
LONGEST_VALUE = 200

# dimension -> factor -> names. English names also stand for their plural.
UNITS: dict[str, dict[str, str]] = {
    "months": {
        "1": "个月 個月 月 month mo",
        "3": "个季度 個季度 季度 quarter",
        "12": "周年 週年 年 year yr",
        "120": "decade",
        "1200": "个世纪 個世紀 世纪 世紀 century centuries",
    },
    "seconds": {
        "0.001": "毫秒 millisecond ms",
        "1": "秒钟 秒鐘 秒 second sec s",
        "60": "分钟 分鐘 minute min",
        "3600": "个小时 個小時 小时 小時 个钟头 個鐘頭 钟头 鐘頭 hour hr h",
        "86400": "天 日 day",
        "604800": "个星期 個星期 星期 周 週 week wk",
    },
    "metres": {
        "0.001": "毫米 公厘 mm millimetre millimeter",
        "0.01": "厘米 公分 cm centimetre centimeter",
        "0.0254": "英寸 inch inches",
        "0.3048": "英尺 foot feet ft",
        "0.9144": "码 碼 yard",
        "1": "公尺 米 m metre meter",
        "500": "里 華里 华里",
        "1000": "公里 千米 km kilometre kilometer",
        "1609.344": "英里 mile mi",
        "1852": "海里 浬",
    },
    "grams": {
        "0.000001": "微克 μg mcg microgram",
        "0.001": "毫克 mg milligram",
        "1": "克 公克 g gram gramme",
        "28.349523125": "盎司 oz ounce",
        "453.59237": "磅 lb",
        "500": "市斤 斤",
        "1000": "公斤 千克 kg kilo kilogram",
        "1000000": "公吨 公噸 吨 噸 tonne",
    },
    "litres": {
        "0.001": "毫升 ml millilitre milliliter",
        "1": "公升 升 l litre liter",
        "1000": "立方米 cum",
    },
    "square metres": {
        "1": "平方米 平米 平方公尺 sqm",
        "10000": "公顷 公頃 hectare ha",
        "1000000": "平方公里 平方千米 sqkm",
    },
    "metres per seconds": {
        "1": "米/秒 m/s",
        "5/18": "公里/小时 公里/小時 公里/时 千米/时 千米/小时 km/h kph kmh",
        "0.44704": "英里/小时 mph",
    },
    "watts": {"1": "瓦特 瓦 w watt", "1000": "千瓦 kw kilowatt"},
    "watt hours": {"1": "瓦时 wh", "1000": "千瓦时 千瓦時 度电 度電 kwh"},
    "volts": {"1": "伏特 伏 v volt", "1000": "千伏 kv"},
    "amperes": {"0.001": "毫安 ma", "1": "安培 安 amp ampere"},
    "hertz": {"1": "赫兹 赫茲 hz", "1000": "千赫 khz", "1000000": "兆赫 mhz", "1000000000": "吉赫 ghz"},
    "degrees": {"1": "摄氏度 攝氏度 °c ℃ 度 degree"},
    "percent": {"1": "% percent", "10": "成"},
    "percentage points": {"1": "个百分点 個百分點 百分点 百分點"},
    "yuan": {"1": "元人民币 人民币 人民幣 元 块钱 块 塊 ¥ rmb cny yuan", "0.1": "角 毛钱"},
    "dollars": {"1": "美元 美金 $ usd dollar", "0.01": "美分 cent"},
    "euros": {"1": "欧元 歐元 € eur euro"},
    "pounds sterling": {"1": "英镑 英鎊 £ gbp"},
    "light years": {"1": "光年 light-year lightyear"},
}
# What is counted, by the words that mean the same. It is no unit: 个 says nothing of what there are so many.
COUNTS = {
    "people": "个人 個人 名 位 人 people person",
    "seats": "个座位 個座位 座位 个座 個座 座 seat",
    "pieces": "个 個",
    "times": "次 times",
}


class Unit(NamedTuple):
    """What is measured, and how many of the smallest such unit it is. An unknown unit is its own dimension."""

    dimension: str
    factor: Fraction = Fraction(1)
    is_known: bool = False


KNOWN = {
    name: Unit(dimension, Fraction(factor), True)
    for dimension, factors in UNITS.items()
    for factor, names in factors.items()
    for name in names.split()
} | {name: Unit(dimension) for dimension, names in COUNTS.items() for name in names.split()}
NAMES = "|".join(
    rf"{re.escape(name)}s?(?![a-z])" if name[-1].isascii() and name[-1].isalpha() else re.escape(name)
    for name in sorted(KNOWN, key=len, reverse=True)
)
UNIT = re.compile(rf"(?P<name>{NAMES})(?:\s?(?:/|每|per\b|an?\b)\s?(?P<per>{NAMES}|\w+))?")

ABOUT = r"大约|大約|约|約|左右|上下|~|≈|\b(?:about|around|approximately|approx|roughly|some|circa|or so)\b"
ABOVE = r"多|余|餘|逾|超过|超過|\+|\b(?:over|more than|above)\b"
BELOW = r"将近|將近|接近|近|不到|\b(?:nearly|almost|just under|close to)\b"
BOUNDS: dict[Bound, re.Pattern[str]] = {
    "about": re.compile(ABOUT),
    "above": re.compile(ABOVE),
    "below": re.compile(BELOW),
}
# What may stand between a number and its unit.
BETWEEN = re.compile(rf"(?:\s|-|{ABOUT}|{ABOVE})*")
# m² is folded to m2, which would be read as a name.
SQUARED = re.compile(r"(?<=[\d\s])(k?)m([23])(?![a-z\d])")
MONEY = {"rmb": "¥", "cny": "¥", "cn¥": "¥", "usd": "$", "us$": "$", "eur": "€", "gbp": "£"}
CODE = re.compile(r"(?<![a-z])(rmb|cny|cn¥|usd|us\$|eur|gbp)\s?(?=\d)")
HALF = re.compile(r"半(?=个|個|小时|小時|年|天|日|公斤|斤|公里|米|升|吨|噸|成)|\bhalf an? (?=[a-z])|\ba half (?=[a-z])")
AND_A_HALF = re.compile(rf"(?<=[\d{HAN_NUMERAL}])(个|個)?(小时|小時|钟头|年|天|月|公斤|斤|公里|米|升|吨)半")
ONE = re.compile(r"\A(?:an?) (?=(?:year|month|week|day|hour|minute|mile|kilo|dozen)\b)")
# 1小时30分, 2 hours and 15 minutes, 2年6个月: the second number counts a smaller unit.
COMPOUND = re.compile(
    rf"\A(?P<first>.*?(?:{NAMES}))\s?,?(?:and |又|零)?\s?(?P<second>(?:[0-9]|[{HAN_NUMERAL}]|half).*)\Z"
)


class Measure(NamedTuple):
    """A value in the smallest unit of its dimension. `step` is how finely it is written, `digits` how many were."""

    value: Fraction
    unit: Unit
    step: Fraction
    digits: int
    bound: Bound = ""


def measure(text: str) -> Measure | None:
    """The one value that a short text states; None without a number or where several do not make one."""
    if len(text) > LONGEST_VALUE:
        return None
    text = CODE.sub(lambda found: MONEY[found[1]], fold(text).strip().casefold())
    text = SQUARED.sub(lambda found: f"{'sq' if found[2] == '2' else 'cu'}{found[1]}m", text)
    text = ONE.sub("1 ", HALF.sub("0.5 ", AND_A_HALF.sub(_and_a_half, text)))
    found = quantity(text)
    if found is not None:
        return _measured(found)
    parts = COMPOUND.match(text)
    if parts is None:
        return None
    minutes = "钟" if parts["second"].endswith("分") else ""
    first, second = quantity(parts["first"]), measure(parts["second"] + minutes)
    if first is None or second is None:
        return None
    larger = _measured(first)
    is_one = larger.unit.dimension == second.unit.dimension and larger.unit.factor > second.unit.factor
    if not (is_one and larger.unit.is_known):
        return None
    return second._replace(value=larger.value + second.value, bound=larger.bound or second.bound)


def _and_a_half(found: re.Match[str]) -> str:
    digits = ".5" if found.string[found.start() - 1].isdigit() and found.string[found.start() - 1].isascii() else "点五"
    return digits + (found[1] or "") + found[2]


def _measured(found: Quantity) -> Measure:
    around = f"{found.before} {found.after}"
    bound: Bound = next((name for name, words in BOUNDS.items() if words.search(around)), "")
    return written(found.value, found.step, _unit(found), bound)


def written(value: Fraction, step: Fraction, unit: Unit, bound: Bound = "") -> Measure:
    """So many of a unit, written so finely."""
    digits_of = abs(value / step)
    digits = len(str(int(digits_of)))
    if bound:
        # About 300 says that the last zeros are not meant; two digits always are.
        while digits > 2 and digits_of % 10 == 0:
            digits_of, step, digits = digits_of / 10, step * 10, digits - 1
    return Measure(value * unit.factor, unit, step * unit.factor, digits, bound)


def _unit(found: Quantity) -> Unit:
    if found.unit.startswith("%"):
        return KNOWN["%"]
    between = BETWEEN.match(found.after)
    rest = found.after[between.end() if between else 0 :]
    if money := CURRENCY.search(found.before):
        known = KNOWN.get(money.group()[0], Unit(money.group()[0]))
        rate = re.match(r"(?:/|每|per\b|an?\b)\s?(\w+)", rest)
        return rated(known, rate[1]) if rate else known
    match = UNIT.match(rest)
    if match is None:
        return Unit(found.unit)
    known = named(match["name"])
    return rated(known, match["per"]) if match["per"] else known


def named(name: str) -> Unit:
    """The unit of a name that `UNIT` matched."""
    return KNOWN[name] if name in KNOWN else KNOWN[name.removesuffix("s")]


def rated(unit: Unit, per: str) -> Unit:
    """So much for each of something: 元/月, $5 a month."""
    of = KNOWN.get(per) or KNOWN.get(per.removesuffix("s")) or Unit(per)
    return Unit(f"{unit.dimension} per {of.dimension}", unit.factor / of.factor, unit.is_known)


# --- agreeing --------------------------------------------------------------------------------------


def comparable(a: Measure, b: Measure) -> bool:
    """Whether code can compare them: one dimension, or a unit that one of them leaves out."""
    names = sorted((a.unit.dimension, b.unit.dimension), key=len)
    # 5 may stand for 5公里, but 0.3 does not stand for 0.3 %, nor 5 for 5元/月.
    return names[0] == names[1] or not (names[0] or names[1] == "percent" or " per " in names[1])


def aligned(a: Measure, b: Measure) -> tuple[Measure, Measure]:
    """Both in the unit of the one that names it: 5 beside 5公里 is 5公里."""
    for bare, other in ((a, b), (b, a)):
        if not bare.unit.dimension and other.unit.dimension:
            factor = other.unit.factor
            put = bare._replace(value=bare.value * factor, step=bare.step * factor, unit=other.unit)
            return (put, other) if bare is a else (other, put)
    return a, b


def agree_as_written(a: Measure, b: Measure) -> bool:
    """Whether the finer value, rounded to the last digit that the coarser one writes, is the coarser one.

    A single digit is not a rounded figure (2 小时 is not 100 分钟), unless a word says so (约 2 小时).
    """
    fine, coarse = sorted((a, b), key=lambda one: (one.step, one.bound, one.value))
    if not coarse.bound and coarse.digits < 2:
        return False
    gap = fine.value - coarse.value
    if coarse.bound == "above" and 0 <= gap < coarse.step:
        return True
    if coarse.bound == "below" and 0 <= -gap < coarse.step:
        return True
    return abs(gap) * 2 <= coarse.step
