"""Numbers and dates as people write them, and the tolerance the protocols grant them.

Quantities agree when their order of magnitude does: same floor(log10), or a ratio of at most √10. Dates
agree when the year does. Exact arithmetic throughout.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {
    "〇": 0, "两": 2, "兩": 2, "壹": 1, "贰": 2, "貳": 2, "叁": 3, "參": 3, "肆": 4, "伍": 5, "陆": 6,
    "陸": 6, "柒": 7, "捌": 8, "玖": 9,
}  # fmt: skip
SMALL_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
LARGE_UNITS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}
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

HAN_DIGIT = "".join(DIGITS)
HAN_UNIT = "".join(SMALL_UNITS)
ARABIC = re.compile(
    r"(?P<sign>(?<![\w.])-)?(?P<number>\d[\d,]*(?:\.\d+)?)\s*"
    rf"(?P<units>[{HAN_UNIT}{''.join(LARGE_UNITS)}]+|(?:hundred|thousand|million|billion|trillion|mn|bn|k)\b)?",
    re.IGNORECASE,
)
HAN_NUMBER = re.compile(rf"[{HAN_DIGIT}{HAN_UNIT}{''.join(LARGE_UNITS)}]+(?:点[{HAN_DIGIT}]+)?")
WORD = re.compile(r"[a-z]+", re.IGNORECASE)
APPROXIMATION = re.compile(
    r"大约|大約|约|約|近|超过|超過|左右|上下|多|余|餘|about|around|approximately|roughly|nearly|almost|over|some|~|≈"
    r"|[\s,，。.()（）]",
    re.IGNORECASE,
)


def quantity(text: str) -> tuple[Fraction, str] | None:
    """The first number in the text with its multiplier applied, and the unit that follows it; None without one."""
    text = unicodedata.normalize("NFKC", text).strip()
    candidates = [(found[0], found) for found in (_arabic(text), _han(text), _english(text)) if found is not None]
    if not candidates:
        return None
    _, (_, value, rest) = min(candidates, key=lambda c: c[0])
    return value, APPROXIMATION.sub("", rest).casefold()


def _arabic(text: str) -> tuple[int, Fraction, str] | None:
    match = ARABIC.search(text)
    if match is None:
        return None
    value = Fraction(match["number"].replace(",", ""))
    for unit in _multipliers(match["units"] or ""):
        value *= unit
    return match.start(), -value if match["sign"] else value, text[match.end() :]


def _multipliers(units: str) -> list[int]:
    if units.lower() in ENGLISH_UNITS:
        return [ENGLISH_UNITS[units.lower()]]
    return [(SMALL_UNITS | LARGE_UNITS)[unit] for unit in units]


def _han(text: str) -> tuple[int, Fraction, str] | None:
    match = HAN_NUMBER.search(text)
    if match is None:
        return None
    value = han_number(match.group())
    return None if value is None else (match.start(), value, text[match.end() :])


def han_number(text: str) -> Fraction | None:
    """A number in Chinese characters: 二十八, 一亿两千万, 一九九七, 三点五; None where it is not one."""
    whole, _, decimals = text.partition("点")
    if not whole or not (DIGITS.keys() & set(whole) or whole[0] in "十拾"):
        return None
    if all(c in DIGITS for c in whole):
        value = Fraction(int("".join(str(DIGITS[c]) for c in whole)))
    else:
        value = Fraction(_positional(whole))
    if decimals:
        value += Fraction(int("".join(str(DIGITS[c]) for c in decimals)), 10 ** len(decimals))
    return value


def _positional(text: str) -> int:
    total = section = digit = 0
    for character in text:
        if character in DIGITS:
            digit = DIGITS[character]
        elif character in SMALL_UNITS:
            section += (digit or 1) * SMALL_UNITS[character]
            digit = 0
        elif total and total < LARGE_UNITS[character]:
            # 三万亿: the larger unit multiplies all that stands before it.
            total, section, digit = (total + section + digit) * LARGE_UNITS[character], 0, 0
        else:
            total, section, digit = total + (section + digit) * LARGE_UNITS[character], 0, 0
    return total + section + digit


def _english(text: str) -> tuple[int, Fraction, str] | None:
    total = section = 0
    start = end = -1
    for match in WORD.finditer(text):
        word = match.group().lower()
        if word in ENGLISH_NUMBERS:
            section += ENGLISH_NUMBERS[word]
        elif word in ENGLISH_UNITS and len(word) > 2 and start >= 0:
            unit = ENGLISH_UNITS[word]
            if unit == 100:
                section *= unit
            else:
                total, section = total + section * unit, 0
        elif start >= 0 and word != "and":
            break
        elif word != "and":
            continue
        if start < 0 and word != "and":
            start = match.start()
        end = match.end()
    return None if start < 0 else (start, Fraction(total + section), text[end:])


def magnitude(value: Fraction) -> int:
    """floor(log10) of a positive fraction, exactly."""
    power = len(str(value.numerator)) - len(str(value.denominator))
    return power if value >= Fraction(10) ** power else power - 1


def same_magnitude(a: Fraction, b: Fraction) -> bool:
    """Whether two quantities agree within the tolerance."""
    if a == b:
        return True
    if a == 0 or b == 0 or (a < 0) != (b < 0):
        return False
    a, b = abs(a), abs(b)
    return magnitude(a) == magnitude(b) or max(a / b, b / a) ** 2 <= 10


def quantities_agree(claimed: str, stated: str) -> bool | None:
    """Whether two written quantities agree; None where code cannot compare them (no number, other units)."""
    left, right = quantity(claimed), quantity(stated)
    if left is None or right is None:
        return None
    if left[1] and right[1] and left[1] != right[1]:
        return None
    return same_magnitude(left[0], right[0])


YEAR = re.compile(rf"(?<!\d)(1\d{{3}}|20\d{{2}}|2100)(?!\d)|([{HAN_DIGIT}]{{4}})年")


def years(text: str) -> list[int]:
    """The years named in a text, in order."""
    text = unicodedata.normalize("NFKC", text)
    return [int(arabic) if arabic else int("".join(str(DIGITS[c]) for c in han)) for arabic, han in YEAR.findall(text)]


def dates_agree(claimed: str, stated: str) -> bool | None:
    """Whether two written dates name the same years; None where either names none."""
    left, right = years(claimed), years(stated)
    return left == right if left and right else None
