"""All that a short text states: its values in order, and every word that is left over.

Two texts can be compared by code only where the words that are left over are the same.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from steelyard.text import SIMPLIFIED, fold
from steelyard.text.measures import (
    ABOUT,
    ABOVE,
    BOUNDS,
    KNOWN,
    LONGEST_VALUE,
    SQUARED,
    UNIT,
    Bound,
    Measure,
    Unit,
    named,
    rated,
    written,
)
from steelyard.text.moments import Day, Moment, moment_at
from steelyard.text.quantities import (
    ENGLISH,
    ENGLISH_UNIT,
    ENGLISH_UNITS,
    HAN_DIGIT,
    LONGEST,
    MINUS,
    NUMERAL,
    PART_OF,
    PARTS,
    PERCENT,
    han_number,
    in_words,
    last_place,
    read_numeral,
)  # fmt: skip


class Name(NamedTuple):
    """A number that names: 第二排, L9, port 5432. `surely` is False where it may count as well: Windows 11."""

    text: str
    surely: bool = True


Value = Measure | Name | Moment


class Contents(NamedTuple):
    """The values of a text, and its other words with a mark where each value stands."""

    values: tuple[Value, ...]
    words: str


class Number(NamedTuple):
    value: Fraction
    step: Fraction
    end: int
    unit: Unit | None = None
    is_scaled: bool = False
    is_plain: bool = False
    """Written in plain digits, as the number of a name is."""


class PlacedValue(NamedTuple):
    """A value and where it stands in a text."""

    value: Value
    text: str
    start: int
    end: int


MARK = "\0"
DASHES = str.maketrans("−–—―﹣", "-----")
# 两三天, 十几个, 数百, the 90s: about so many, and nobody says how many. 5/1/2023 is two dates.
UNREADABLE = re.compile(
    rf"[几幾]|[数數](?=[十百千万萬亿億个個])|(?<![{HAN_DIGIT}])[一二两三四五六七八九]{{2}}(?![{HAN_DIGIT}])"
    r"|(?<!\d)[12]\d{2}0s\b|\b(?:the|early|late|mid)[\s-]'?\d0s\b"
    r"|(?<![\d/.-])(?P<one>0?[1-9]|1[0-2])(?P<sep>[/.-])(?!(?P=one)(?P=sep))(?:0?[1-9]|1[0-2])(?P=sep)[12]\d{3}(?!\d)",
    re.IGNORECASE,
)
# Ordinals, models, versions, codes and identifiers: nothing near them is right.
CODED = re.compile(
    r"(?!(?i:rmb|cny|usd|eur|gbp|hkd|jpy|twd|cad|aud|sgd|krw|chf)\d)[A-Za-z]++[-.]?\d(?:[.-]?[A-Za-z0-9_]++)*+"
    r"|(?<!\d)\d+\.\d+\.\d(?:\.?[A-Za-z0-9_]++)*+|#\s?\d+|(?<![\d.])0\d+(?:-\d+)*+(?![\d.:])"
    r"|(?<![\d.-])\d{3,4}-\d{3,4}-\d{4}(?!\d)|(?<![\d.])1[3-9]\d{9}(?!\d)|(?<![\w.])[2-6]G\b",
)
NAMING_BEFORE = re.compile(
    r"(?:第|[号號](?![码碼召])|版本|型[号號]|[编編][号號]|端口|[车車]次|航班|[邮郵][编編]|[电電][话話]|手机号?|学号|房号|密码)[::]?\s?\Z"
    r"|\b(?:port|version|room|gate|line|route|flight|model|channel|chapter|section|article|page|type|grade|level|floor"
    r"|platform|track|step|series|no\.|number|zip|postcode)\s\Z|\b[a-z]+[A-Z][A-Za-z]*\s\Z",
)
NAMING_AFTER = re.compile(r"(?:st|nd|rd|th)\b|[号號楼樓](?![码碼召])", re.IGNORECASE)
NAMED_BEFORE = re.compile(
    r"(?:\A|\s)(?!(?:About|Around|Over|Some|Nearly|Almost|Roughly|RMB|CNY|USD)\b)[A-Z][A-Za-z]*\s\Z"
)
MONEY = re.compile(
    r"(?:us(?=\$)|cn(?=¥))?(?P<sign>[$€£¥₩])\s?|(?<![a-z])(?P<code>rmb|cny|usd|eur|gbp)\s?(?=[\d.])", re.IGNORECASE
)
DOTTED = re.compile(r"(?<![\w.])\.\d+(?![\d.])")
HALF = re.compile(
    r"半(?=个|個|小时|小時|年|天|日|公斤|斤|公里|米|升|吨|噸|成)|\bhalf an? (?=[a-z])|(?<!and )\ba half (?=[a-z])"
)
AND_A_HALF = re.compile(r"\s+and a half\b")
ONE = re.compile(r"\ban? (?=(?:year|month|week|day|hour|minute|mile|kilo|dozen)\b)")
BETWEEN = re.compile(rf"(?:\s|-(?=[a-z])|{ABOUT}|{ABOVE})*")
RATE = re.compile(r"\s?(?:/|每|per\b|an?\b)\s?(\w+)")
JOINED = re.compile(r"\s?,?\s?(?:and |又|零)?\s?")
RANGE = re.compile(rf"{MARK}(?:-|~|至|到|to){MARK}")
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
FILLING = frozenset("the is are was were cost costs".split())
BEFORE_MOMENT = frozenset("in on at 于 在".split())
HAN_FILLING = re.compile(r"共有|共计|一共|总共|共|为|是|达到|公元|西元")
BOUND_AT = {
    bound: re.compile(rf"(?:{words.pattern})\s*{MARK}|{MARK}\s*(?:{words.pattern})", re.IGNORECASE)
    for bound, words in BOUNDS.items()
}
OUTSIDE = re.compile(r"[\s,。、;:()\[\]\"'!?.]+")


def read(text: str, *, bare_years: bool = False) -> Contents | None:
    """What a text states; None where a number in it cannot be read. `bare_years`: 1997 is a year, not an amount."""
    if len(text) > LONGEST_VALUE:
        return None
    text = MINUS.sub("-", fold(text).strip().translate(DASHES))
    text = SQUARED.sub(lambda found: f"{'sq' if found[2] == '2' else 'cu'}{found[1]}m", text)
    if UNREADABLE.search(text):
        return None
    values: list[Value] = []
    words: list[str] = []
    scaled: list[bool] = []
    at = 0
    while at < len(text):
        if not text[at].isspace() and (found := _value_at(text, at, values, words, bare_years)):
            value, end, is_scaled = found
            if not isinstance(value, Measure | Name) and words and words[-1] in BEFORE_MOMENT:
                words.pop()
            values.append(value)
            scaled.append(is_scaled)
            words.append(MARK)
            at = end
        elif (word := WORD.match(text, at)) and not (at and text[at - 1].isascii() and text[at - 1].isalpha()):
            words.append(_folded(word.group()))
            at = word.end()
        else:
            if not text[at].isspace():
                words.append(text[at])
            at += 1
    return _bounded(values, "".join(_apart(words)), scaled)


# Where a value can begin: a digit, a sign of money, a letter that begins a number word, a month or a day.
CAN_BEGIN = re.compile(rf"[\d{HAN_DIGIT}十百半$€£¥₩#.-]|[星周週礼禮上下早晚凌清中午傍公西前]|(?<![A-Za-z])[A-Za-z]")
# In characters: all that tells what a value is stands so near to it, and none is longer.
BEFORE, AFTER = 60, 240
# In prose a number after one of these is a year, whatever word follows: built in 1889 and opened in 1890.
IN_YEAR = re.compile(r"\b(?:in|since|until|during|year)\s\Z", re.IGNORECASE)
YEAR = re.compile(r"1\d{3}|20\d{2}")
BOUND_BEFORE = {bound: re.compile(rf"(?:{words.pattern})[\s有]?\Z", re.IGNORECASE) for bound, words in BOUNDS.items()}
DIGITS = re.compile(r"[\d,.]+")


def figures(text: str, *, bare_years: bool = True) -> list[PlacedValue]:
    """Every value of a text with its place in `fold(text)`; words that are part of no value are passed over."""
    text = fold(text)
    minus = {found.end() - 1: found.start() for found in MINUS.finditer(text)}
    plain = MINUS.sub(lambda found: "-".rjust(len(found[0])), text).translate(DASHES)
    found: list[PlacedValue] = []
    at = 0
    while begins := CAN_BEGIN.search(plain, at):
        at = begins.start()
        low = max(0, at - BEFORE)
        near, here = plain[low : at + AFTER], at - low
        before = [MARK] if found and found[-1].end == at else []
        if read_ := _value_at(near, here, [], before, bare_years):
            end, start = low + read_[1], minus.get(at, at)
            if value := _in_prose(read_[0], near[:here], text[start:end], bare_years):
                found.append(PlacedValue(value, text[start:end].strip(), start, end))
            at = end
        elif passed := WORD.match(plain, at) or DIGITS.match(plain, at):
            at = passed.end()
        else:
            at += 1
    return found


def _in_prose(value: Value, before: str, written_as: str, bare_years: bool) -> Value | None:
    """The value as the words before it have it; None where it is an ordinary word: may, march."""
    if isinstance(value, Day) and (value.year, value.day) == (None, None) and written_as.islower():
        return None
    if not isinstance(value, Measure):
        return value
    if bare_years and not value.unit.dimension and YEAR.fullmatch(written_as) and IN_YEAR.search(before):
        return Day(int(written_as))
    bound = value.bound or next((name for name, words in BOUND_BEFORE.items() if words.search(before)), "")
    factor = value.unit.factor
    return written(value.value / factor, value.step / factor, value.unit, bound) if bound != value.bound else value


def _folded(word: str) -> str:
    # mW and MW are not one unit; a longer word is the same in any case, and in the plural.
    folded = word.casefold()
    if folded in FILLING:
        return ""
    return word if len(word) <= 3 and folded not in BEFORE_MOMENT and not word.istitle() else folded.removesuffix("s")


def _apart(words: list[str]) -> list[str]:
    return [f" {word} " if word[:1].isascii() and word[:1].isalpha() else word for word in words]


def _bounded(values: list[Value], words: str, scaled: list[bool]) -> Contents | None:
    words = HAN_FILLING.sub("", words.translate(SIMPLIFIED))
    amounts = [at for at, value in enumerate(values) if isinstance(value, Measure)]
    if len(amounts) == 1 == len(values):
        only = values[0]
        assert isinstance(only, Measure)
        for bound, pattern in BOUND_AT.items():
            if pattern.search(words):
                words = pattern.sub(MARK, words)
                values = [written(only.value / only.unit.factor, only.step / only.unit.factor, only.unit, bound)]
                break
    words = OUTSIDE.sub("", words)
    if len(values) == 2 and RANGE.search(words):
        first, second = values
        if isinstance(first, Measure) and isinstance(second, Measure):
            if scaled[1] and not scaled[0]:
                # 1-2万 is 10,000 to 20,000, or 1 to 20,000.
                return None
            if not first.unit.dimension and second.unit.dimension:
                values = [written(first.value, first.step, second.unit, first.bound), second]
            elif not second.unit.dimension and first.unit.dimension:
                values = [first, written(second.value, second.step, first.unit, second.bound)]
        words = RANGE.sub(f"{MARK}-{MARK}", words)
    return Contents(tuple(values), words)


def _value_at(
    text: str, at: int, values: list[Value], words: list[str], bare_years: bool
) -> tuple[Value, int, bool] | None:
    before = text[:at]
    in_word = bool(
        at and text[at - 1].isascii() and text[at - 1].isalnum() and text[at].isascii() and text[at].isalnum()
    )
    moment = None if in_word and words[-1:] != [MARK] else moment_at(text, at, bare_years=bare_years)
    if moment and not NAMING_BEFORE.search(before) and not _is_span(moment, text, bare_years):
        return *moment, False
    if not in_word and (code := CODED.match(text, at)):
        return Name(code.group()), code.end(), False
    money = MONEY.match(text, at)
    start = money.end() if money else at
    sign = 1
    if text.startswith("-", start) and (words[-1:] != [MARK] or (at and text[at - 1].isspace())):
        if at and text[at - 1].isascii() and text[at - 1].isalnum():
            return None
        start, sign = start + 1, -1
    if not money and (money := MONEY.match(text, start)):
        start = money.end()
    number = _number_at(text, start)
    if number is None:
        return None
    raw = text[start : number.end]
    if not money and (NAMING_BEFORE.search(before) or NAMING_AFTER.match(text, number.end)):
        after = NAMING_AFTER.match(text, number.end)
        return Name(raw), after.end() if after and after.group().isascii() else number.end, False
    value, end = _measured(text, number._replace(value=sign * number.value), money)
    is_bare = not value.unit.dimension and number.is_plain
    if is_bare and NAMED_BEFORE.search(before):
        return Name(raw, surely=not text[end:].strip() and raw.isdigit()), end, False
    return value, end, number.is_scaled


def _is_span(found: tuple[Moment, int], text: str, bare_years: bool) -> bool:
    """Whether 5000年 counts years instead of naming one."""
    moment, end = found
    if bare_years or not isinstance(moment, Day) or moment.year is None or moment.month is not None:
        return False
    return text[end - 1] == "年" and "前" not in text[:end] and not 1500 <= abs(moment.year) <= 2100


def _number_at(text: str, at: int) -> Number | None:
    if part := PART_OF.match(text, at):
        whole = PARTS.get(part[1])
        denominator = None if whole else han_number(part[1])
        found = _number_at(text, part.end())
        if not (whole or denominator) or found is None:
            return None
        scale = whole or 1 / (denominator or Fraction(1))
        return found._replace(value=found.value * scale, step=found.step * scale, unit=KNOWN["%"] if whole else None)
    if half := HALF.match(text, at):
        return Number(Fraction(1, 2), Fraction(1, 2), half.end())
    if one := ONE.match(text, at):
        return _scaled(text, Number(Fraction(1), Fraction(1), one.end() - 1))
    if dotted := DOTTED.match(text, at):
        digits = dotted.group()
        return _scaled(text, Number(Fraction("0" + digits), Fraction(1, 10 ** (len(digits) - 1)), dotted.end()))
    if match := NUMERAL.match(text, at):
        raw = match.group()
        value = read_numeral(raw) if len(raw) <= LONGEST else None
        if value is None or text[match.end() : match.end() + 1].isdecimal():
            return None
        is_scaled = any(character in "万萬亿億" for character in raw)
        number = Number(value, last_place(raw), match.end(), None, is_scaled, raw.isascii() and "," not in raw)
        return _scaled(text, number)
    if (match := ENGLISH.match(text, at)) and len(match.group()) <= LONGEST * 4:
        value = in_words(match.group())
        last = re.findall(r"[a-z]+", match.group().lower())[-1]
        step = Fraction(1 if last == "hundred" else ENGLISH_UNITS.get(last, 1))
        return None if value is None else _scaled(text, Number(value, step, match.end(), is_scaled=step > 1))
    return None


def _scaled(text: str, number: Number) -> Number:
    if unit := ENGLISH_UNIT.match(text, number.end):
        times = ENGLISH_UNITS[unit[1].lower()]
        return number._replace(
            value=number.value * times, step=number.step * times, end=unit.end(), is_scaled=True, is_plain=False
        )
    if half := AND_A_HALF.match(text, number.end):
        return number._replace(value=number.value + Fraction(1, 2), step=Fraction(1, 2), end=half.end())
    if dozen := re.compile(r"\s?dozen\b").match(text, number.end):
        return number._replace(value=number.value * 12, end=dozen.end())
    return number


def _measured(text: str, number: Number, money: re.Match[str] | None) -> tuple[Measure, int]:
    value, step, end = number.value, number.step, number.end
    lower = text.lower() if len(text.lower()) == len(text) else text
    if number.unit:
        return written(value, step, number.unit), end
    if money:
        unit = KNOWN.get(money["sign"] or money["code"].lower(), Unit(money["sign"] or ""))
        if rate := RATE.match(lower, end):
            unit, end = rated(unit, rate[1]), rate.end()
        return written(value, step, unit), end
    after = end + (1 if text[end : end + 1] == " " else 0)
    if percent := PERCENT.match(text, after):
        return written(value, step, KNOWN["%"]), percent.end()
    if text.startswith("‰", end):
        return written(value / 10, step / 10, KNOWN["%"]), end + 1
    half = re.compile(r"[个個]半(?=小时|小時|月|钟头|鐘頭|世纪|星期)").match(text, end)
    if half:
        value, step, end = value + Fraction(1, 2), Fraction(1, 2), half.end()
    between = BETWEEN.match(lower, end)
    start = between.end() if between else end
    match = UNIT.match(lower, start)
    # 5M is five million to some and five metres to others.
    if match is None or re.match(r"[MB](?![A-Za-z])", text[start:]):
        return written(value, step, Unit("")), end
    bound: Bound = next((name for name, pattern in BOUNDS.items() if pattern.search(lower[end:start])), "")
    unit = named(match["name"])
    end = match.end()
    if not match["per"] and re.match(r"半(?!径|徑|天|年|夜)", text[end:]) and not half:
        value, step, end = value + Fraction(1, 2), Fraction(1, 2), end + 1
    if match["per"]:
        unit = rated(unit, match["per"])
    found = written(value, step, unit, bound)
    return (found, end) if match["per"] else _compound(text, found, end)


def _compound(text: str, larger: Measure, end: int) -> tuple[Measure, int]:
    """1小时30分, 2 hours and 15 minutes, 2年6个月: the second number counts a smaller unit."""
    joined = JOINED.match(text, end)
    start = joined.end() if joined else end
    number = _number_at(text, start) if larger.unit.is_known and not text.startswith("第", start) else None
    if number is None:
        return larger, end
    smaller, after = _measured(text, number, None)
    if not smaller.unit.dimension and larger.unit.factor == 3600 and re.match(r"分(?!之)", text[after:]):
        smaller, after = written(number.value, number.step, KNOWN["分钟"]), after + 1
    is_one = smaller.unit.dimension == larger.unit.dimension and smaller.unit.factor < larger.unit.factor
    if not is_one or not smaller.unit.is_known or not 0 <= smaller.value < larger.unit.factor:
        return larger, end
    return smaller._replace(value=larger.value + smaller.value, bound=larger.bound or smaller.bound), after
