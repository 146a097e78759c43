"""Numbers and years as people write them: exact values, units, and how finely a number is written.

Exact arithmetic throughout; where a text can be read in two ways, None.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from steelyard.text import fold

DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {
    "〇": 0, "两": 2, "兩": 2, "壹": 1, "贰": 2, "貳": 2, "叁": 3, "參": 3, "肆": 4, "伍": 5, "陆": 6,
    "陸": 6, "柒": 7, "捌": 8, "玖": 9,
}  # fmt: skip
TENS = {"廿": 20, "卅": 30, "卌": 40}
SMALL_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
# 兆 is a million to some and a million millions to others, so it stays a unit.
LARGE_UNITS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
ENGLISH_UNITS = {
    "hundred": 10**2, "thousand": 10**3, "k": 10**3, "million": 10**6, "mn": 10**6,
    "billion": 10**9, "bn": 10**9, "trillion": 10**12,
}  # fmt: skip
ENGLISH_NUMBERS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen".split()
    )
} | {
    word: value * 10
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}

# Nobody writes a quantity with more digits; what does is an identifier, or an attack on the arithmetic.
LONGEST = 40

HAN_DIGIT = "".join(DIGITS)
HAN_NUMERAL = HAN_DIGIT + "".join(TENS) + "".join(SMALL_UNITS) + "".join(LARGE_UNITS)
ARABIC = r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?"
# 1亿2千万, 3.5万, 二十八, 12,000: digits of either kind with Chinese units between and after them.
NUMERAL = re.compile(
    rf"(?:{ARABIC}|[{HAN_NUMERAL}])(?:\s?[{HAN_NUMERAL}]|(?<=[{HAN_NUMERAL}]){ARABIC})*(?:点[{HAN_DIGIT}]+)?"
)
TOKEN = re.compile(rf"{ARABIC}|[{HAN_NUMERAL}]")
ENGLISH_UNIT = re.compile(r"\s?(hundred|thousand|million|billion|trillion|mn|bn|k)\b", re.IGNORECASE)
NUMBER_WORD = "|".join([*ENGLISH_NUMBERS, "hundred", "thousand", "million", "billion", "trillion"])
ENGLISH = re.compile(
    rf"\b(?:an? (?=hundred|thousand|million|billion|trillion))?(?:{NUMBER_WORD})"
    rf"(?:(?:[\s-]|,\s|\sand\s)(?:{NUMBER_WORD}))*\b",
    re.IGNORECASE,
)
MINUS = re.compile(
    rf"(?:[−﹣－]|零下|负|負|\bminus |\bnegative )\s?(?=[0-9{HAN_NUMERAL}]|(?:{NUMBER_WORD})\b)", re.IGNORECASE
)
SIGN = re.compile(r"(?<![A-Za-z0-9)])-\Z")
CURRENCY = re.compile(r"[$€£¥₩]\s?-?\Z")
# What is counted off or named, not measured, is exact: 第二排, L9, v2, No. 5, 3rd.
NAMING_BEFORE = re.compile(r"(?:(?:第|号|版本|型号|编号|\b[Nn]o\.)\s?|[A-Za-z#_.]-?)\Z")
# An English word right before a number is usually its name (iPhone 15, No. 5); these are not.
PLAIN_BEFORE = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|over|some|than|to|least|most|of|is|are|was|were|has|have"
    r"|had|only|just|the|a|by|at|total|and|for|in)|[^A-Za-z\s])\s*\Z|\A\s*\Z",
    re.IGNORECASE,
)
NAMING_AFTER = re.compile(r"(?:st|nd|rd|th)\b|号|號|[A-Za-z]*[0-9]", re.IGNORECASE)
APPROXIMATION = re.compile(
    r"大约|大約|约|約|超过|超過|左右|上下|多|余|餘|\b(?:about|around|approximately|roughly|nearly|almost|over|some)\b"
    r"|[\s,，。.()~≈+]",
    re.IGNORECASE,
)
PERCENT = re.compile(r"%|percent\b(?!age)|per cent\b|pct\b", re.IGNORECASE)
PARTS = {"百": Fraction(1), "千": Fraction(1, 10), "万": Fraction(1, 100), "萬": Fraction(1, 100)}
PART_OF = re.compile(rf"([百千万萬]|[{HAN_NUMERAL}]{{1,20}})分之(?=[0-9{HAN_NUMERAL}])")


class Quantity(NamedTuple):
    """A number with its multiplier applied, and the unit that follows it (or the currency before it).

    `step` is the place of the last digit that was written: 1000 in 3.1万. `before` and `after` are the text around it.
    """

    value: Fraction
    unit: str
    step: Fraction
    before: str
    after: str


class Found(NamedTuple):
    start: int
    end: int
    value: Fraction
    step: Fraction


def quantity(text: str) -> Quantity | None:
    """The quantity a short text states; None without a number, with several, or where the number is a name."""
    text = MINUS.sub("-", fold(text).strip())
    scale, unit = Fraction(1), ""
    if part := PART_OF.search(text):
        whole = PARTS.get(part[1])
        denominator = None if whole else han_number(part[1])
        if not whole and not denominator:
            return None
        scale, unit = (whole, "%") if whole else (1 / (denominator or Fraction(1)), "")
        text = text[: part.start()] + text[part.end() :]
    found = _first(text)
    if found is None:
        return None
    before, rest = text[: found.start], text[found.end :]
    is_name = NAMING_BEFORE.search(before) or not PLAIN_BEFORE.search(before) or NAMING_AFTER.match(rest)
    if is_name or _first(rest):
        return None
    value = -found.value if SIGN.search(before) else found.value
    after = rest
    if percent := PERCENT.match(rest.lstrip()):
        unit, rest = "%", rest.lstrip()[percent.end() :]
    elif rest.startswith("‰"):
        unit, scale, rest = "%", Fraction(1, 10), rest[1:]
    elif rest.startswith("成"):
        unit, scale, rest = "%", Fraction(10), rest[1:]
    if not unit and (currency := CURRENCY.search(before)):
        unit = currency.group()[0]
    written = unit + APPROXIMATION.sub("", rest).casefold()
    return Quantity(value * scale, written, found.step * scale, before.casefold(), after.casefold())


def numbers(text: str) -> list[Fraction]:
    """Every number of a text, in order, whatever it counts or names."""
    text, found = MINUS.sub("-", fold(text)), []
    while one := _first(text):
        found.append(one.value)
        text = text[one.end :]
    return found


def _first(text: str) -> Found | None:
    found = [found for found in (_numeral(text), _english(text)) if found]
    return min(found, default=None)


def _numeral(text: str) -> Found | None:
    for match in NUMERAL.finditer(text):
        if len(match.group()) > LONGEST:
            return None
        value, end = read_numeral(match.group()), match.end()
        if value is None:
            continue
        step = last_place(match.group())
        if unit := ENGLISH_UNIT.match(text, end):
            times = ENGLISH_UNITS[unit[1].lower()]
            value, step, end = value * times, step * times, unit.end()
        return Found(match.start(), end, value, step)
    return None


def last_place(numeral: str) -> Fraction:
    """What the last written digit of a numeral counts: 1000 in 3.1万, 1 in 三百 and in 300."""
    whole, _, decimals = numeral.partition("点")
    if decimals:
        return Fraction(1, 10 ** len(decimals))
    tokens = TOKEN.findall(whole)
    if tokens and tokens[-1] in DIGITS and any(token in LARGE_UNITS for token in tokens):
        # 三万五 is 35,000: the last digit counts thousands.
        unit = next(token for token in reversed(tokens) if token in LARGE_UNITS or token in SMALL_UNITS)
        return Fraction(LARGE_UNITS.get(unit, SMALL_UNITS.get(unit, 10)), 10) if "零" not in tokens else Fraction(1)
    large = small = Fraction(1)
    for token in reversed(tokens):
        if token in LARGE_UNITS:
            large *= LARGE_UNITS[token]
        elif token in SMALL_UNITS:
            small *= SMALL_UNITS[token]
        elif token[0].isascii():
            return large * small / Fraction(10) ** len(token.partition(".")[2])
        else:
            break
    # 三百 is how 300 is written in Chinese, not 3 of a larger unit.
    return large


def han_number(text: str) -> Fraction | None:
    """A number in Chinese characters: 二十八, 一亿两千万, 两千三, 一九九七, 三点五; None where it is not one."""
    is_han = len(text) <= LONGEST and re.fullmatch(rf"[{HAN_NUMERAL}]+(?:点[{HAN_DIGIT}]+)?", text)
    return read_numeral(text) if is_han else None


def read_numeral(text: str) -> Fraction | None:
    """A number in digits of either kind; None where units stand alone or in an order that makes no number."""
    whole, _, decimals = text.partition("点")
    tokens = TOKEN.findall(whole)
    if all(token in DIGITS for token in tokens):
        value: Fraction | None = Fraction(_digits(whole))
    elif tokens[0] in LARGE_UNITS or (tokens[0] in SMALL_UNITS and SMALL_UNITS[tokens[0]] > 10):
        return None
    else:
        value = _positional(tokens)
    if value is not None and decimals:
        value += Fraction(_digits(decimals), 10 ** len(decimals))
    return value


def _digits(text: str) -> int:
    return int("".join(str(DIGITS[character]) for character in text if character in DIGITS))


def _positional(tokens: list[str]) -> Fraction | None:
    total, section, pending = Fraction(0), Fraction(0), None
    last_unit, after_zero = 1, False
    for token in tokens:
        if token in SMALL_UNITS:
            section += (Fraction(1) if pending is None else pending) * SMALL_UNITS[token]
            pending, last_unit, after_zero = None, SMALL_UNITS[token], False
        elif token in LARGE_UNITS:
            unit = LARGE_UNITS[token]
            section += pending or 0
            # 三万亿: a larger unit multiplies all that stands before it.
            total = (total + section) * unit if total < unit else total + section * unit
            section = Fraction(0)
            pending, last_unit, after_zero = None, unit, False
        elif token in TENS:
            section, last_unit = section + TENS[token], 10
        elif pending is not None and pending:
            return None
        elif token in DIGITS:
            pending, after_zero = Fraction(DIGITS[token]), after_zero or not DIGITS[token]
        else:
            pending, after_zero = Fraction(token.replace(",", "")), after_zero or len(token) > 1
    if pending and not after_zero and last_unit > 10:
        # 两千三 is 2300: a last digit counts in the next smaller unit.
        pending *= Fraction(last_unit, 10)
    return total + section + (pending or 0)


def _english(text: str) -> Found | None:
    match = ENGLISH.search(text)
    if match is None or len(match.group()) > LONGEST * 4:
        return None
    words = re.findall(r"[a-z]+", match.group().lower())
    value = _in_words(words)
    step = Fraction(1 if words[-1] == "hundred" else ENGLISH_UNITS.get(words[-1], 1))
    return None if value is None else Found(match.start(), match.end(), Fraction(value), step)


def in_words(text: str) -> Fraction | None:
    """A number in English words: twenty-eight, two hundred and five million; None where it is not one."""
    value = _in_words(re.findall(r"[a-z]+", text.lower()))
    return None if value is None else Fraction(value)


def _in_words(words: list[str]) -> int | None:
    total = section = 0
    room = 100
    for word in words:
        if word in ENGLISH_NUMBERS:
            value = ENGLISH_NUMBERS[word]
            if value >= room:
                return None
            section, room = section + value, 10 if value >= 20 else 0
        elif word == "hundred":
            section, room = (section or 1) * 100, 100
        elif word in ENGLISH_UNITS:
            total, section, room = total + (section or 1) * ENGLISH_UNITS[word], 0, 100
    return total + section


# --- magnitude -------------------------------------------------------------------------------------


def magnitude(value: Fraction) -> int:
    """floor(log10) of a positive fraction, exactly."""
    power = len(str(value.numerator)) - len(str(value.denominator))
    return power if value >= Fraction(10) ** power else power - 1


def same_magnitude(a: Fraction, b: Fraction) -> bool:
    """Whether two values have the same order of magnitude: the same floor(log10), or a ratio of at most √10."""
    if a == b:
        return True
    if a == 0 or b == 0 or (a < 0) != (b < 0):
        return False
    a, b = abs(a), abs(b)
    return magnitude(a) == magnitude(b) or max(a / b, b / a) ** 2 <= 10


# --- years -----------------------------------------------------------------------------------------
