"""Constraints that code can verify in an answer, a function each: counts, and words at a place or anywhere.

Each says whether the constraint holds and why, in both languages, or None where careful people could
disagree (does punctuation count?). What the judged texts say stands in “” there. `rules.py` finds the
constraint in a criterion; `forms.py` has the constraints on format, language and marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from steelyard.text import HAN, KANA, LATIN_WORD, MINUS, fold, in_simplified, normalise, sentences
from steelyard.text.quantities import ENGLISH_NUMBERS, han_number


class Finding(NamedTuple):
    """Whether a constraint holds, with the reason in both languages."""

    holds: bool
    zh: str
    en: str


Check = Callable[[re.Match[str], str], Finding | None]

# --- what can be counted in an answer; each way of counting that people use ------------------------

LATIN_RUN = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+")
# 1. 便宜 2. 好看 3. 耐用: a list in one line; 3.5 and 17:40 are none.
NUMBERED_WITHIN = re.compile(
    r"(?:^|(?<=[\s:：;；,，。]))(\d{1,2})(?:[.)](?![\d.])|、|）)(?=[ \t]*[^\s\d])", re.MULTILINE
)
LIST_ITEM = re.compile(r"(?m)^([ \t]{0,12})([-*+•]|\d{1,3}[.)、]|[（(]\d{1,3}[）)]|[①-⑳])[ \t]*\S")


def _characters(answer: str) -> list[int]:
    """字数: with and without punctuation, a Latin word as one or as its letters."""
    han, runs = len(HAN.findall(answer)), LATIN_RUN.findall(answer)
    marks = len(re.sub(r"\s", "", LATIN_RUN.sub("", HAN.sub("", answer))))
    return [han + len(runs) + marks, han + len(runs), han + sum(map(len, runs))]


def _signs(answer: str) -> list[int]:
    return [len(answer.strip()), len(re.sub(r"\s", "", answer))]


def _words(answer: str) -> list[int]:
    if HAN.search(answer) or KANA.search(answer):
        return []
    return [len(re.findall(rf"[^\W_]+(?:[{joint}][^\W_]+)*", answer)) for joint in (r"'’\-", "'’")]


def _sentences(answer: str) -> list[int]:
    return [len(sentences(answer)), len(re.findall(r"[。！？!?.…]+", answer))]


def _paragraphs(answer: str) -> list[int]:
    lines = [line for line in answer.splitlines() if line.strip()]
    return [len(lines), len([block for block in re.split(r"\n[ \t]*\n", answer) if block.strip()])]


def _list_items(answer: str) -> list[int]:
    """Items of one plain list. Nested, mixed or restarted lists, or points without marks, have no one count."""
    items = LIST_ITEM.findall(answer)
    kinds = {(indent, re.sub(r"\d+|[①-⑳]", "1", mark)) for indent, mark in items}
    numbers = [int(number) for _, mark in items for number in re.findall(r"\d+", mark) if not "①" <= mark <= "⑳"]
    inline = [int(number) for number in NUMBERED_WITHIN.findall(answer)]
    if len(inline) > max(1, len(items)) and len(kinds) == bool(numbers) and _in_order(inline):
        return [len(inline)]
    return [len(items)] if len(kinds) == 1 and _in_order(numbers) else []


def _in_order(numbers: list[int]) -> bool:
    return numbers == list(range(1, len(numbers) + 1))


def _numbered_items(answer: str) -> list[int]:
    return _list_items(answer) if not re.search(r"(?m)^[ \t]{0,12}[-*+•][ \t]", answer) else []


def _bullets(answer: str) -> list[int]:
    return _list_items(answer) if not re.search(r"(?m)^[ \t]{0,12}[（(]?[\d①-⑳]", answer) else []


COUNTERS: dict[str, Callable[[str], list[int]]] = {
    r"个?字符|characters?": _signs,
    r"个?汉字": lambda answer: [len(HAN.findall(answer))],
    r"个?字": _characters,
    r"个?(?:英文)?单词|words?": _words,
    r"句话?|个句子|sentences?": _sentences,
    r"段话?|个?(?:自然)?段落?|paragraphs?": _paragraphs,
    r"(?:编号的?|带编号的?)(?:步骤|要点|条目)|numbered (?:steps?|points?|items?|list items?)": _numbered_items,
    r"个?(?:要点|步骤)|点|条|步|list items|steps": _list_items,
    r"bullets?(?: points?)?|bullet-points?": _bullets,
}
NUMBER = rf"(\d[\d,]{{0,9}}|[一二两三四五六七八九十百千万]{{1,8}}|{'|'.join(ENGLISH_NUMBERS)})"
UNIT = f"({'|'.join(COUNTERS)})"


def _number(text: str) -> int:
    plain = text.replace(",", "").lower()
    if plain.isdecimal():
        return int(plain)
    return int(ENGLISH_NUMBERS.get(plain) or han_number(plain) or 0)


def _count(answer: str, unit: str, low: int, high: int | None) -> Finding | None:
    """Whether the count lies within the bounds; None where the ways of counting disagree about that."""
    ways = next(ways for names, ways in COUNTERS.items() if re.fullmatch(names, unit, re.IGNORECASE))
    counts = ways(answer)
    rulings = {low <= count and (high is None or count <= high) for count in counts}
    if len(rulings) != 1 or (high is not None and low > high):
        return None
    zh, en = _bounds(low, high)
    return Finding(rulings.pop(), f"共{counts[0]}{unit}，要求{zh}{unit}", f"{counts[0]} {unit}; {en} asked for")


def _bounds(low: int, high: int | None) -> tuple[str, str]:
    if high is None:
        return f"至少{low}", f"at least {low}"
    if low == high:
        return f"恰好{low}", f"exactly {low}"
    return (f"{low}到{high}", f"{low} to {high}") if low else (f"不超过{high}", f"at most {high}")


def at_most(match: re.Match[str], answer: str) -> Finding | None:
    return _count(answer, match[2], 0, _number(match[1]))


def below(match: re.Match[str], answer: str) -> Finding | None:
    return _count(answer, match[2], 0, _number(match[1]) - 1)


def at_least(match: re.Match[str], answer: str) -> Finding | None:
    return _count(answer, match[2], _number(match[1]), None)


def above(match: re.Match[str], answer: str) -> Finding | None:
    return _count(answer, match[2], _number(match[1]) + 1, None)


def between(match: re.Match[str], answer: str) -> Finding | None:
    return _count(answer, match[3], _number(match[1]), _number(match[2]))


def exactly(match: re.Match[str], answer: str) -> Finding | None:
    return _count(answer, match[2], _number(match[1]), _number(match[1]))


# --- words at a place, or anywhere ------------------------------------------------------------------

QUOTED = r"(?:“([^”]{1,60})”|\"([^\"]{1,60})\"|「([^」]{1,60})」|『([^』]{1,60})』|‘([^’]{1,60})’|'([^']{1,60})')"
SEVERAL = rf"{QUOTED}(?:(?: ?[、,/和及与] ?| and |, and )?{QUOTED}){{0,9}}"
ANY_OF = rf"{QUOTED}(?:(?: ?[、,/和及与或] ?|, | and | or |, (?:and|or) )?{QUOTED}){{0,9}}"
# 以“亲爱的XX”开头 asks for a name in that place.
STAND_IN = re.compile(r"[\[\]{}<>【】_…×]|X{2,}|\.\.\.|[某]|[Nn]ame|姓名|昵称")
DECORATION = "*_#>“”\"'「」『』 \t\n"
AND_THE_LIKE = re.compile(r"等|之类|\b(?:etc|and the like|or similar|such as)\b")
FINAL_MARKS = "。.!！?？~～…，,"


def _all_quoted(match: re.Match[str]) -> list[str] | None:
    """Everything that a criterion quotes; None where one of it stands for something else."""
    found = [next(filter(None, groups)).strip() for groups in re.findall(QUOTED, match.group())]
    return None if any(STAND_IN.search(words) or not normalise(words) for words in found) else found


def _quoted(match: re.Match[str]) -> str | None:
    found = _all_quoted(match)
    return found[0] if found else None


def begins(match: re.Match[str], answer: str) -> Finding | None:
    bare = answer.strip(DECORATION)
    return _at_edge(_quoted(match), bare, bare[:20], str.startswith, "开头", "begins")


def ends(match: re.Match[str], answer: str) -> Finding | None:
    bare = answer.strip(DECORATION).rstrip(FINAL_MARKS + DECORATION)
    return _at_edge(_quoted(match), bare, bare[-20:], str.endswith, "结尾", "ends")


NEAR_THE_EDGE = 40


def begins_somehow(match: re.Match[str], answer: str) -> Finding | None:
    """开头加上“您好” is not broken by a word before it: only where it is nowhere near."""
    return _unless_near(begins(match, answer), _quoted(match), answer.strip()[:NEAR_THE_EDGE])


def ends_somehow(match: re.Match[str], answer: str) -> Finding | None:
    return _unless_near(ends(match, answer), _quoted(match), answer.strip()[-NEAR_THE_EDGE:])


def _unless_near(finding: Finding | None, words: str | None, edge: str) -> Finding | None:
    near = words is not None and normalise(in_simplified(words)) in normalise(in_simplified(edge))
    return None if finding and not finding.holds and near else finding


def _at_edge(
    words: str | None, bare: str, edge: str, has: Callable[[str, str], bool], zh: str, en: str
) -> Finding | None:
    if words is None:
        return None
    wanted, edge = fold(words).strip(DECORATION).rstrip(FINAL_MARKS), " ".join(edge.split())
    if has(fold(bare), wanted):
        return Finding(True, f"回答以“{words}”{zh}", f"the answer {en} with “{words}”")
    # A near miss in punctuation, case, spacing or script is for the judge.
    if has(normalise(in_simplified(bare)), normalise(in_simplified(wanted))):
        return None
    return Finding(False, f"回答的{zh}是“{edge}”，不是“{words}”", f"the answer {en} with “{edge}”, not “{words}”")


def contains(match: re.Match[str], answer: str) -> Finding | None:
    return _mention(match, answer, wanted=True)


def lacks(match: re.Match[str], answer: str) -> Finding | None:
    return _mention(match, answer, wanted=False)


def _mention(match: re.Match[str], answer: str, *, wanted: bool) -> Finding | None:
    quoted = _all_quoted(match)
    if not quoted:
        return None
    found = {words: _is_there(words, answer) for words in quoted}
    if amiss := [words for words, is_there in found.items() if is_there is not wanted and is_there is not None]:
        return _presence(amiss, is_there=not wanted, holds=False)
    # “可能”“也许”等词: others than those named may be meant.
    if None in found.values() or (not wanted and AND_THE_LIKE.search(match.group())):
        return None
    return _presence(list(found), is_there=wanted, holds=True)


def _is_there(words: str, answer: str) -> bool | None:
    # A single character may be part of a longer word (我 in 我们).
    if len(words) < 2:
        return None
    exact = fold(words) in fold(answer)
    if not exact and normalise(in_simplified(words)) in normalise(in_simplified(answer)):
        return None
    if exact and LATIN_WORD.fullmatch(words) and not re.search(rf"\b{re.escape(words)}\b", answer):
        return None
    return exact


def _presence(words: list[str], *, is_there: bool, holds: bool) -> Finding:
    zh, en = ("有" if is_there else "没有"), ("is" if len(words) == 1 else "are") + ("" if is_there else " not")
    named = [f"“{one}”" for one in words]
    return Finding(holds, f"回答中{zh}{''.join(named)}", f"{', '.join(named)} {en} in the answer")


# --- numbers, addresses: exact wherever they stand ---------------------------------------------------

LITERAL = r"(?P<literal>\+?\d[\d\-]{3,18}\d|[\w.+\-]{1,40}@[\w\-]{1,40}(?:\.[\w\-]{1,20}){1,3}|(?:https?://|www\.)[\w./\-]{3,80})"


def gives(match: re.Match[str], answer: str) -> Finding | None:
    """A telephone number or an address stands there, however its figures are grouped, or it does not."""
    literal = match["literal"].rstrip(".")
    if re.fullmatch(r"[+\d\-]+", literal):
        figures = re.sub(r"\D", "", literal)
        is_there = bool(re.search(r"(?<!\d)" + r"[-\s]?".join(figures) + r"(?!\d)", fold(answer).translate(MINUS)))
    else:
        is_there = literal.casefold() in fold(answer).casefold()
    return _presence([literal], is_there=is_there, holds=is_there)
