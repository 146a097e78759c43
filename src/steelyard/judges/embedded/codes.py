"""Numbers that name something instead of measuring it: telephone numbers, ports, gates, floors, versions, scores.

Nothing near them is right, so they are read apart from quantities, which the protocols let pass within a magnitude.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from steelyard.text.quantities import HAN_DIGIT, han_number


class Code(NamedTuple):
    """A number that names, as it is written, what it is compared by, and what it is a number of."""

    written: str
    value: tuple[object, ...]
    of: str
    start: int
    end: int


# Without 两, which counts and does not number: 两楼 are two of them.
HAN_UP_TO_99 = "[〇零一二三四五六七八九十廿卅]{1,3}"
SMALL = rf"(?:[0-9]{{1,4}}|{HAN_UP_TO_99})"
# 400-820-1234: a shorter row of digits may be a range or a score.
DASHED = re.compile(r"(?<![\w.-])\+?[0-9]{1,4}(?:[- ][0-9]{2,8}){1,4}(?![\w-]|\.[0-9])")
FEWEST_DIGITS = 7
# Nobody writes a quantity of so many digits without a comma, a unit or a 万.
LONG = re.compile(rf"(?<![\w.,-])[0-9]{{8,}}(?![0-9.,%]*[0-9]|\s?[a-z%]|[多余]?[百千万亿元个人名位吨米{HAN_DIGIT}])")
CUES_ZH = {
    "号码": "电话|热线|号码|手机号?|传真|分机|专线|客服",
    "密码": "密码|口令|验证码|提取码|邀请码",
    "端口": "端口号?",
    "邮编": "邮编|邮政编码",
    "房间": "房间号?|客房",
    "版本": "版本号?",
    "编号": "编号|代码|单号|账号|工号|学号|证号|车牌号?|货号",
    "登机口": "登机口|检票口",
}
CUED_ZH = re.compile(
    "(?:" + "|".join(f"(?P<c{at}>{words})" for at, words in enumerate(CUES_ZH.values())) + ")"
    r"(?:号码?)?\s?(?:已?改?[是为]|[:：])?\s?[“\"「]?(?P<number>[0-9][0-9.\-]*[0-9]|[0-9])(?![0-9%]|\s?[a-z])"
)
# 2号线, 7号, 18路, 503室, 三楼, 15世纪, 八折: what stands behind makes it a name. 5月6号 is read as a date before.
TAILED_ZH = re.compile(
    rf"(?<![0-9.])(?P<number>{SMALL})\s?(?P<tail>号(?:线|楼|门|口|馆|厅|院|桌|窗口|车厢?|机|库|桥|房|厂|井|店|站台|航站楼)?"
    r"|楼(?![梯盘房宇市道])|世纪|(?:房间|室|房)(?![数内外间温]))"
    r"|(?<=公交|巴士|乘坐|公车|专线)(?:车)?\s?(?P<bus>[0-9]{1,4})\s?路"
    r"|(?<![0-9.])(?P<off>[0-9](?:\.[0-9])?|[1-9][0-9]|[一二三四五六七八九]{1,2})折(?![叠扣旧算射断返磨腾])"
    r"|(?<![a-z])(?P<letters>[a-z]{1,2})型(?!号)"
)
CUES_EN = (
    "version|port|room|gate|box|flight|platform|track|line|bus|route|page|chapter|section|article|channel|extension|ext"
    "|pin|code|password|building|floor|terminal|aisle|seat|row|lane|exit|locker|zone|apartment|apt|suite|locker|bay|hall"
)
CUED_EN = re.compile(
    rf"\b(?P<cue>{CUES_EN})\b\.?(?:\s(?:is|number|no\.?))*\s?#?\s?(?P<number>[0-9]+(?:\.[0-9]+)*)(?![0-9%,]|-[a-z])"
)
# A word with a capital and a number with points: Python 3.11, Ubuntu 24.04.
VERSION = re.compile(r"\b(?P<name>[A-Z][A-Za-z]+)\s(?:v|version\s)?(?P<number>[0-9]+(?:\.[0-9]+)+)(?![0-9%])")
SCORE = re.compile(r"(?<![0-9:.,/])(?P<home>[0-9]{1,3})\s?[:：比]\s?(?P<away>[0-9]{1,3})(?![0-9:%]|\s?[ap]\.?m)")
SCORE_EN = re.compile(r"(?<![0-9:.,/-])(?P<home>[0-9]{1,3})[-–](?P<away>[0-9]{1,3})(?![0-9:%-])")
PLAYED = re.compile(
    r"\b(?:won|wins?|beat|lost|loses?|defeat\w*|scor\w+|draw|drew|ended|finals?|victory|match|game)\b|胜|负|平|击败|比分|球"
)

Measures = Callable[[str, int], bool]
"""Whether a known unit of measurement stands at a place: box 9 names, box 9 kg does not."""


def codes(text: str, low: str, measures: Measures) -> Iterator[Code]:
    """The numbers of a text that name; `low` is the text in lower case, of the same length."""
    for match in DASHED.finditer(low):
        digits = re.sub(r"[^0-9]", "", match.group())
        if len(digits) >= FEWEST_DIGITS and not measures(low, match.end()):
            yield _code(match, (digits,), "号码")
    for match in CUED_ZH.finditer(low):
        of = next(name for at, name in enumerate(CUES_ZH) if match[f"c{at}"])
        yield Code(match["number"], (match["number"].replace("-", ""),), of, match.start("number"), match.end("number"))
    for match in LONG.finditer(low):
        if not measures(low, match.end()):
            yield _code(match, (match.group(),), "号码")
    yield from _tailed(low)
    for match in CUED_EN.finditer(low):
        if not measures(low, match.end()):
            yield Code(match.group(), (match["number"],), match["cue"], match.start(), match.end())
    for match in VERSION.finditer(text) if len(text) == len(low) else ():
        if not measures(low, match.end()):
            yield Code(match.group().lower(), (match["number"],), match["name"].lower(), match.start(), match.end())
    yield from _scores(low, measures)


def _code(match: re.Match[str], value: Sequence[object], of: str) -> Code:
    return Code(match.group(), tuple(value), of, match.start(), match.end())


def _tailed(low: str) -> Iterator[Code]:
    for match in TAILED_ZH.finditer(low):
        if match["number"]:
            value = _read(match["number"])
            if value is not None:
                yield _code(match, (value,), "房间" if match["tail"] in ("房间", "室", "房") else match["tail"])
        elif match["bus"]:
            yield Code(f"{match['bus']}路", (int(match["bus"]),), "路", match.start("bus"), match.end())
        elif match["off"]:
            value = _read(match["off"])
            if value is not None:
                yield _code(match, (value / 10 if value >= 10 else value,), "折")
        else:
            yield _code(match, (match["letters"],), "型")


def _read(number: str) -> float | None:
    if number[0].isascii():
        return float(number)
    value = han_number(number)
    return None if value is None else float(value)


def _scores(low: str, measures: Measures) -> Iterator[Code]:
    found = [*SCORE.finditer(low), *(SCORE_EN.finditer(low) if PLAYED.search(low) else ())]
    for match in found:
        # Who won is said by other words: 3:1 for one side is 1:3 for the other.
        if not measures(low, match.end()):
            yield _code(match, sorted((int(match["home"]), int(match["away"]))), "score")
