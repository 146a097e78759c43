"""What a text states that can be compared exactly: quantities, dates, ordinals, identifiers, names, listed values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache, partial
from typing import Literal, NamedTuple

from steelyard.judges.embedded.codes import codes
from steelyard.judges.embedded.lexicon import lexicon
from steelyard.judges.embedded.meaning import STOP_WORDS, rarity, simplified, stem
from steelyard.text.quantities import ENGLISH, ENGLISH_UNITS, HAN_DIGIT, LONGEST, han_number, in_words, read_numeral

Kind = Literal["quantity", "date", "ordinal", "name"]


class Fact(NamedTuple):
    """One exact thing a text states. Two facts of the same kind and unit agree when their values do."""

    kind: Kind
    text: str
    value: tuple[object, ...]
    unit: str
    start: int
    end: int


MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), start=1)
    for name in names.split()
}  # fmt: skip
WEEKDAYS = {
    name: number for number, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())
}
HAN_WEEKDAYS = {name: number for number, name in enumerate("一二三四五六日")} | {"天": 6}
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
HAN_UP_TO_99 = "[〇零一二两三四五六七八九十廿卅]{1,3}"
DAY_NUMBER = rf"(?:[0-9]{{1,2}}|{HAN_UP_TO_99})"
# 2000美元 is a sum, not a year.
HAN_UNITS = "|".join(sorted((name for name in lexicon().units if not name.isascii() and name != "年"), key=len)[::-1])
DATE = re.compile(
    rf"(?P<zy>(?<!\d)[0-9]{{4}}|[{HAN_DIGIT}]{{4}})\s?年(?:\s?(?P<zm>{DAY_NUMBER})\s?月(?:份|\s?(?P<zd>{DAY_NUMBER})\s?[日号])?)?"
    rf"|(?<![\d.])(?P<m>{DAY_NUMBER})\s?月(?:份|\s?(?P<d>{DAY_NUMBER})\s?[日号])?(?![球亮饼薪租均嫂])"
    rf"|(?<![\d.:/-])(?P<od>[0-9]{{1,2}})日(?!元|本|内)"
    rf"|(?<!\d)(?P<iy>[12][0-9]{{3}})[-/.](?P<im>[0-9]{{1,2}})(?:[-/.](?P<id>[0-9]{{1,2}}))?(?!\d)"
    rf"|\b(?P<em>{MONTH})\b\.?\s+(?P<ed>[0-9]{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<ey>[12][0-9]{{3}})\b)?"
    rf"|\b(?:(?P<fd>[0-9]{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<fm>{MONTH})\b\.?,?\s+(?P<fy>[12][0-9]{{3}})\b"
    rf"|\b(?P<gd>[0-9]{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<gm>{MONTH})\b"
    rf"|(?:星期|周|礼拜)(?P<hw>[一二三四五六日天])(?!年|期)"
    rf"|\b(?P<ew>{'|'.join(WEEKDAYS)})s?\b"
    rf"|\b(?P<by>[12][0-9]{{3}})(?=s\b)"
    rf"|(?<![\d.,$¥€£:/-])(?P<y>1[0-9]{{3}}|20[0-9]{{2}})(?![\d%,:/-]|\.\d|\s?[a-z]*[0-9]|[{lexicon().counters}房室百千万亿]|\s(?:people|miles|meters|metres|km|dollars|feet|pounds|years)|\s?(?:{HAN_UNITS}))"
    rf"|\b(?P<sm>{'|'.join(name for name in MONTHS if len(name) > 3 and name != 'march')})\b",
)
ORDINAL_WORDS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
}
ORDINAL = re.compile(
    rf"第\s?(?P<zh>[0-9]{{1,6}}|[〇零一二三四五六七八九十百千两]{{1,6}})\s?(?P<unit>[\u4e00-\u9fff])?"
    rf"|\b(?:(?P<word>{'|'.join(ORDINAL_WORDS)})|(?P<digits>[0-9]{{1,4}})(?:st|nd|rd|th))\b(?:[\s-](?P<noun>[a-z]+))?"
)
# Letters with digits, or a word in front of a bare number that is its name: L9, gpt-4, iphone 15, covid-19.
IDENTIFIER = re.compile(
    r"(?<![a-z0-9])(?P<letters>[a-z]+(?:[-.][a-z]+)*)[-.]?(?P<number>[0-9]+(?:\.[0-9]+)*)(?P<tail>[a-z]{0,4})(?![0-9]|\.[0-9])"
    r"|(?<![a-z0-9])(?P<number2>[0-9]{1,4})(?P<letters2>[a-z]{1,3})(?P<number3>[0-9]{0,4})(?![a-z0-9])"
)
CLOCK = re.compile(
    r"(?<![\d:])(?P<hour>[0-9]{1,2})[::](?P<minute>[0-5][0-9])(?![\d])(?:\s?(?P<half>[ap])\.?m\b)?"
    r"|(?<!\d)(?P<whole>[0-9]{1,2})\s?(?P<half2>[ap])\.?m\b"
    r"|(?P<hour3>[0-9]{1,2})时(?:(?P<minute3>[0-9]{1,2})分)?(?!间|代|期|刻)"
    # 三点 alone is as often three points.
    rf"|(?P<day>凌晨|清晨|早上|早晨|上午|中午|午后|下午|傍晚|晚上|夜里|晚间|夜间)\s?(?P<hour4>[0-9]{{1,2}}|{HAN_UP_TO_99})[点时]"
    rf"(?:钟|整|(?P<half4>半)|(?P<minute4>[0-9]{{1,2}}|{HAN_UP_TO_99})分?)?"
    rf"|(?<![第.0-9])(?P<hour5>[0-9]{{1,2}}|{HAN_UP_TO_99})点(?:钟|整|(?P<half5>半)|(?=[前后起至到]|以[前后]|开[始门课馆]|关门|结束))"
)
# What makes an hour of the first half of the day one of the second.
AFTERNOON = frozenset(("午后", "下午", "傍晚", "晚上", "夜里", "晚间", "夜间"))
NUMBER = re.compile(
    r"(?<![a-z0-9.])(?P<money>[$¥€£]\s?)?(?P<sign>(?<![0-9a-z)\u4e00-\u9fff])[-−]|零下|负)?"
    r"(?P<arabic>[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:\s?[百千万亿]+)?(?:[0-9]+[百千万亿]+)*)"
    r"(?P<times>\s?(?:hundred|thousand|million|billion|trillion|mn|bn|k|m|b)\b)?"
    rf"|(?P<han>(?:[{HAN_DIGIT}十百千万亿廿卅]+)(?:点[{HAN_DIGIT}]+)?)"
)
TIMES = {**ENGLISH_UNITS, "m": 10**6, "b": 10**9}
PARTS_OF = re.compile(rf"(百|千|万|[{HAN_DIGIT}十]{{1,3}})分之([0-9]+(?:\.[0-9]+)?|[{HAN_DIGIT}十百点]+)")
UNIT_WORD = re.compile(r"[\s-]{0,2}(%|℃|°c?|percent|per cent|[a-z]+)")
LATIN_UNITS = frozenset("mm cm m km g kg mb gb tb kb kw kwh ml hr min sec yr lb ft".split())


# Without any of these a text states nothing exact, and no further pattern needs to be tried on it.
TELLING = re.compile(
    rf"[0-9{HAN_DIGIT}十百千万亿廿卅半]|[a-z]型|\bhalf an? |(?:星期|周|礼拜)[日天]"
    rf"|\b(?:{MONTH}|{'|'.join(WEEKDAYS)}|{'|'.join(ORDINAL_WORDS)})|{ENGLISH.pattern}"
)


@lru_cache(maxsize=2048)
def facts(text: str) -> tuple[Fact, ...]:
    """The facts of a text in the order they stand there; what is part of a date is not read again as a number."""
    low = simplified(text).lower()
    if not TELLING.search(low):
        return ()
    taken = bytearray(len(low))
    found: list[Fact] = []
    for reader in (_dates, _clock, _ordinals, partial(_codes, simplified(text)), _identifiers, *MEASURING):
        for fact in reader(low):
            if not any(taken[fact.start : fact.end]):
                taken[fact.start : fact.end] = b"\x01" * (fact.end - fact.start)
                found.append(fact)
    return tuple(sorted(found, key=lambda fact: fact.start))


def _small(text: str | None) -> int | None:
    if not text:
        return None
    value = Fraction(text) if text.isascii() else han_number(text)
    return None if value is None else int(value)


def _dates(text: str) -> Iterator[Fact]:
    for match in DATE.finditer(text):
        part = match.groupdict()
        unit = "date"
        if part["hw"] or part["ew"]:
            value: tuple[object, ...] = (HAN_WEEKDAYS[part["hw"]] if part["hw"] else WEEKDAYS[part["ew"]],)
            unit = "weekday"
        elif part["by"]:
            value, unit = (int(part["by"]),), "decade"
        else:
            year = _small(part["zy"] or part["iy"] or part["ey"] or part["fy"] or part["y"])
            named = part["em"] or part["fm"] or part["gm"] or part["sm"]
            month = MONTHS[named] if named else _small(part["zm"] or part["m"] or part["im"])
            day = _small(part["zd"] or part["d"] or part["od"] or part["id"] or part["ed"] or part["fd"] or part["gd"])
            if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
                continue
            value = (year, month, day)
        yield Fact("date", match.group().strip(), value, unit, match.start(), match.end())


def _clock(text: str) -> Iterator[Fact]:
    for match in CLOCK.finditer(text):
        part = match.groupdict()
        names = ("hour", "whole", "hour3", "hour4", "hour5")
        hour = next(_small(part[name]) for name in names if part[name])
        if hour is None or hour > 24:
            continue
        half = part["half"] or part["half2"]
        if half or (part["day"] in AFTERNOON and hour < 12):
            hour = hour % 12 + (0 if half == "a" else 12)
        minute = _small(part["minute"] or part["minute3"] or part["minute4"]) or 0
        minute = 30 if part["half4"] or part["half5"] else minute
        yield Fact("date", match.group(), (hour, minute), "clock", match.start(), match.end())


def _ordinals(text: str) -> Iterator[Fact]:
    for match in ORDINAL.finditer(text):
        number = ORDINAL_WORDS.get(match["word"] or "") or _small(match["zh"] or match["digits"])
        if number is None:
            continue
        unit = match["unit"] or stem(match["noun"] or "")
        end = match.end() if not match["noun"] else match.start("noun") - 1
        yield Fact("ordinal", match.group().strip(), (number,), unit, match.start(), end)


def _identifiers(text: str) -> Iterator[Fact]:
    for match in IDENTIFIER.finditer(text):
        if match["letters"]:
            letters, number = match["letters"], match["number"] + match["tail"]
        else:
            letters, number = match["letters2"], match["number2"] + match["number3"]
            if not match["number3"] and (
                letters in LATIN_UNITS or letters in ("k", "b", "x", "s", "th", "st", "nd", "rd")
            ):
                continue
        yield Fact("name", match.group(), (number,), letters.strip("-."), match.start(), match.end())


def _codes(written: str, text: str) -> Iterator[Fact]:
    for code in codes(written, text, _is_measured):
        yield Fact("name", code.written, code.value, code.of, code.start, code.end)


def _is_measured(text: str, at: int) -> bool:
    return _unit(text, at, None)[0] in lexicon().dimensions


HALF = re.compile(
    r"半\s?个?(?=年|小时|钟头|天|月|公斤|斤|公里|里地|米|公升|升|吨|世纪)|\bhalf an?\s(?=[a-z])|\ba half[\s-](?=[a-z])"
)


def _halves(text: str) -> Iterator[Fact]:
    """半年, half an hour."""
    for match in HALF.finditer(text):
        unit, factor, end = _unit(text, match.end() - ("月" in text[match.end() : match.end() + 1]), None)
        if unit in lexicon().dimensions:
            written = text[match.start() : end]
            yield Fact("quantity", written.strip(), (Fraction(1, 2) * factor,), unit, match.start(), end)


def _shares(text: str) -> Iterator[Fact]:
    for match in PARTS_OF.finditer(text):
        whole = {"百": Fraction(100), "千": Fraction(1000), "万": Fraction(10000)}.get(match[1]) or han_number(match[1])
        value = Fraction(match[2]) if match[2].isascii() else han_number(match[2])
        if whole and value is not None:
            yield Fact("quantity", match.group(), (value / whole * 100,), "percent", match.start(), match.end())


def _numbers(text: str) -> Iterator[Fact]:
    for match in NUMBER.finditer(text):
        written = match["arabic"] or match["han"]
        if len(written) > LONGEST:
            continue
        value = read_numeral(written.replace(" ", ""))
        if value is None:
            continue
        if match["times"]:
            value *= TIMES[match["times"].strip()]
        if match["sign"]:
            value = -value
        unit, factor, end = _unit(text, match.end(), match["money"])
        if match["han"] and not _is_number(text, match, unit):
            continue
        yield Fact("quantity", text[match.start() : end].strip(), (value * factor,), unit, match.start(), end)


def _is_number(text: str, match: re.Match[str], unit: str) -> bool:
    """三辆 states a number, 三思 does not; 一 is seldom more than an article, unless something is measured."""
    if not unit or text[match.start() - 1 : match.start()] in ("第", "星", "周", "之", "唯", "统", "同", "万"):
        return False
    measured = unit in lexicon().dimensions and unit not in ("people", "degrees", "times")
    return measured if match["han"] in ("一", "千", "万", "百", "十") else True


def _number_words(text: str) -> Iterator[Fact]:
    for match in ENGLISH.finditer(text):
        value = in_words(match.group()) if len(match.group()) <= LONGEST * 4 else None
        unit, factor, end = _unit(text, match.end(), None)
        if value is None or (match.group() in ("one", "a", "zero") and unit not in ("months", "seconds", "percent")):
            continue
        yield Fact("quantity", text[match.start() : end].strip(), (value * factor,), unit, match.start(), end)


def _unit(text: str, at: int, money: str | None) -> tuple[str, Fraction, int]:
    """The unit that stands at a place, folded to its dimension: its name, its factor and where it ends."""
    units = lexicon().units
    if money and (known := units.get(money.strip())):
        return known.dimension, known.factor, at
    if match := UNIT_WORD.match(text, at):
        word = match[1]
        for name in (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y"):
            if (known := units.get(name)) and (len(name) > 1 or name in "%°g" or match.start(1) == at):
                return known.dimension, known.factor, match.end()
        return ("", Fraction(1), at) if word in STOP_WORDS else (stem(word), Fraction(1), match.end())
    start = at + len(text[at : at + 4]) - len(text[at : at + 4].lstrip(" 多余来几约"))
    for length in (4, 3, 2, 1):
        if known := units.get(text[start : start + length]):
            return known.dimension, known.factor, start + length
    following = text[start : start + 1]
    if following and following in lexicon().counters:
        return following, Fraction(1), start + 1
    return "", Fraction(1), at


MEASURING = (_halves, _shares, _numbers, _number_words)


# --- agreeing --------------------------------------------------------------------------------------


def comparable(a: Fact, b: Fact) -> bool:
    """Whether two facts could be one another's contradiction: same kind, and a unit that both can have."""
    if a.kind != b.kind:
        return False
    if a.kind == "quantity":
        return a.unit == b.unit or not a.unit or not b.unit or any({a.unit, b.unit} <= each for each in (COUNTED, TIME))
    if a.kind == "ordinal":
        return a.unit == b.unit or not a.unit or not b.unit
    return a.unit == b.unit


TIME = frozenset(("months", "seconds"))
SECONDS_A_MONTH = Fraction(86400 * 1461, 48)
# A month has 28 to 31 days: 30 days and one month may be the same.
ROUGHLY = Fraction(1, 12)
COUNTED = frozenset(("people", "个", "人", "名", "位", "家", "只", "户", "口"))


def agree(a: Fact, b: Fact) -> bool:
    """Whether two comparable facts say the same; a date that says less than another agrees with it."""
    if a.unit == "date" and b.unit == "date":
        shared = [(x, y) for x, y in zip(a.value, b.value, strict=True) if x is not None and y is not None]
        return bool(shared) and all(x == y for x, y in shared)
    if a.unit == "clock" and b.unit == "clock":
        return a.value == b.value or _clock12(a.value) == _clock12(b.value)
    if {a.unit, b.unit} == TIME:
        short, long = sorted((_seconds(a), _seconds(b)))
        return long - short <= ROUGHLY * long
    return a.value == b.value


def _seconds(fact: Fact) -> Fraction:
    value = Fraction(str(fact.value[0]))
    return value * SECONDS_A_MONTH if fact.unit == "months" else value


def _clock12(value: tuple[object, ...]) -> tuple[object, ...]:
    hour, minute = value
    return (int(str(hour)) % 12, minute)


# What is counted off may be written as a count: 二楼 is 第二层, version 4 the fourth version.
FLOORS = frozenset(("楼", "层", "floor", "storey", "story", "level"))


def same(fact: Fact, other: Fact) -> bool:
    """Whether another fact states this one, in whatever form."""
    if comparable(fact, other) and agree(fact, other):
        return True
    kinds = {fact.kind, other.kind}
    if kinds == {"ordinal", "quantity"} or kinds == {"ordinal", "name"}:
        if str(fact.value[0]) != str(other.value[0]):
            return False
        units = {fact.unit, other.unit}
        return "" in units or units <= FLOORS or len(units) == 1 or "name" in kinds
    return False


def is_written(fact: Fact, text: str) -> bool:
    """Whether a text has the very characters of a fact; `text` is folded already."""
    return bool(re.search(rf"(?<![\d.])(?<!零下)(?<![负-]){re.escape(fact.text)}(?!\d)", text))


# --- names -----------------------------------------------------------------------------------------

NAME = re.compile(
    r"(?<![A-Za-z0-9])[A-Z][A-Za-z\u00c0-\u024f'’-]*(?:\s+(?:of\s+|the\s+|de\s+|van\s+|von\s+)?[A-Z][A-Za-z\u00c0-\u024f'’.-]*)*"
)
SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\"“”(]\s*)\Z")
HAN_NAME = re.compile(r"[\u4e00-\u9fff]{1,6}(?:[·•][\u4e00-\u9fff]{1,6})+|《[^《》]{1,30}》|[“\"][^“”\"]{2,12}[”\"]")

AFTER_NAME = re.compile(
    r"(?<=[·•][\u4e00-\u9fff])([\u4e00-\u9fff]*?)(?:告诉|表示|说|称|认为|指出|介绍|的|在|和|与|是).*$"
)
# A word this rare at the start of a sentence has its capital letter from itself.
UNCOMMON = 20.0


@lru_cache(maxsize=2048)
def names(text: str) -> tuple[str, ...]:
    """What looks like a name: capitalised words (not merely at the start of a sentence), 约翰·史密斯, 《标题》."""
    read = simplified(text)
    found = []
    for match in NAME.finditer(read):
        name = match.group().removesuffix("'s").removesuffix("’s").rstrip(".'’-")
        first, _, rest = name.partition(" ")
        if SENTENCE_START.search(read, max(0, match.start() - 4), match.start()) and (
            first.lower() in STOP_WORDS or (not rest and rarity(first.lower()) < UNCOMMON)
        ):
            name = rest
        if len(name) > 1 and name.lower() not in STOP_WORDS and name.lower() not in MONTHS:
            found.append(name)
    found += [AFTER_NAME.sub(r"\1", match.group().strip('《》“”"')) for match in HAN_NAME.finditer(read)]
    return tuple(found)


def is_han_name(stretch: str) -> bool:
    """Whether a stretch of Chinese looks like a name: spelt like a foreign one, by its surname or by its ending."""
    tables = lexicon()
    if not 2 <= len(stretch) <= 14:
        return False
    if stretch.endswith(tables.endings):
        return True
    if len(stretch) <= 4 and stretch[0] in tables.surnames and rarity(stretch) >= UNCOMMON:
        return True
    return len(stretch) >= 3 and sum(character in tables.spelling for character in stretch) >= 0.7 * len(stretch)


def is_place(stretch: str) -> bool:
    """Whether a stretch is one of the places that the tables know."""
    return lexicon().values["place"].fullmatch(stretch) is not None


# --- listed values ---------------------------------------------------------------------------------

ENTRY = re.compile(r"(?:^|[;；\n，,])\s*([^:：;；\n，,]{1,12})[:：]\s*([^:：;；\n]{1,60})")


@lru_cache(maxsize=1024)
def listed(passage: str) -> tuple[tuple[str, str], ...]:
    """The entries of a passage that is a list of facts (所在地：湖北 武汉；性别：女); nothing for prose."""
    read = simplified(passage[:2000])
    entries = tuple((match[1].strip(), match[2].strip()) for match in ENTRY.finditer(read))
    covered = sum(len(key) + len(value) + 2 for key, value in entries)
    return entries if len(entries) >= 2 and covered >= 0.8 * len(read.strip()) else ()
