"""What code can verify in an answer, one function per constraint: counts, words at a place, format, language, marks.

Each says whether the constraint holds and why, in both languages, or None where careful people could
disagree (does punctuation count? is ✓ an emoji?). `rules.py` finds the constraint in a criterion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from steelyard.quantities import ENGLISH_NUMBERS, han_number
from steelyard.text import HAN, KANA, LATIN_WORD, fold, normalise, script_votes, sentences


class Finding(NamedTuple):
    """Whether a constraint holds, with the reason in both languages."""

    holds: bool
    zh: str
    en: str


Check = Callable[[re.Match[str], str], Finding | None]

# --- what can be counted in an answer; each way of counting that people use ------------------------

LATIN_RUN = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+")
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
    in_order = numbers == list(range(1, len(numbers) + 1))
    return [len(items)] if len(kinds) == 1 and in_order else []


def _bullets(answer: str) -> list[int]:
    return _list_items(answer) if not re.search(r"(?m)^[ \t]{0,12}[（(]?[\d①-⑳]", answer) else []


COUNTERS: dict[str, Callable[[str], list[int]]] = {
    r"个?字符|characters?": _signs,
    r"个?汉字": lambda answer: [len(HAN.findall(answer))],
    r"个?字": _characters,
    r"个?(?:英文)?单词|words?": _words,
    r"句话?|个句子|sentences?": _sentences,
    r"段话?|个?(?:自然)?段落?|paragraphs?": _paragraphs,
    r"个?要点|点|条|list items": _list_items,
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
# 以“亲爱的XX”开头 asks for a name in that place.
STAND_IN = re.compile(r"[\[\]{}<>【】_…×]|X{2,}|\.\.\.|[某]|[Nn]ame|姓名|昵称")
DECORATION = "*_#>“”\"'「」『』 \t\n"
FINAL_MARKS = "。.!！?？~～…，,"


def _quoted(match: re.Match[str]) -> str | None:
    words = next(group for group in match.groups() if group).strip()
    return None if STAND_IN.search(words) or not normalise(words) else words


def begins(match: re.Match[str], answer: str) -> Finding | None:
    bare = answer.strip(DECORATION)
    return _at_edge(_quoted(match), bare, bare[:20], str.startswith, "开头", "begins")


def ends(match: re.Match[str], answer: str) -> Finding | None:
    bare = answer.strip(DECORATION).rstrip(FINAL_MARKS + DECORATION)
    return _at_edge(_quoted(match), bare, bare[-20:], str.endswith, "结尾", "ends")


def _at_edge(
    words: str | None, bare: str, edge: str, has: Callable[[str, str], bool], zh: str, en: str
) -> Finding | None:
    if words is None:
        return None
    wanted = fold(words).strip(DECORATION).rstrip(FINAL_MARKS)
    if has(fold(bare), wanted):
        return Finding(True, f"回答以“{words}”{zh}", f"the answer {en} with “{words}”")
    # A near miss in punctuation, case or spacing is for the judge.
    if has(normalise(bare), normalise(wanted)):
        return None
    return Finding(False, f"回答的{zh}是“{edge}”，不是“{words}”", f"the answer {en} with “{edge}”, not “{words}”")


def contains(match: re.Match[str], answer: str) -> Finding | None:
    return _mention(match, answer, wanted=True)


def lacks(match: re.Match[str], answer: str) -> Finding | None:
    return _mention(match, answer, wanted=False)


def _mention(match: re.Match[str], answer: str, *, wanted: bool) -> Finding | None:
    words = _quoted(match)
    # A single character may be part of a longer word (我 in 我们).
    if words is None or len(words) < 2:
        return None
    exact = fold(words) in fold(answer)
    if not exact and normalise(words) in normalise(answer):
        return None
    if exact and LATIN_WORD.fullmatch(words) and not re.search(rf"\b{re.escape(words)}\b", answer):
        return None
    zh, en = ("有", "is") if exact else ("没有", "is not")
    return Finding(exact == wanted, f"回答中{zh}“{words}”", f"“{words}” {en} in the answer")


# --- format, language, marks -----------------------------------------------------------------------


def is_json(match: re.Match[str], answer: str) -> Finding | None:
    """The whole answer is one JSON value; JSON in a code block or amid prose is JSON to some readers only."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        if re.search(r"[{\[]", answer) and not answer.lstrip().startswith(("{", "[")):
            return None
        return Finding(False, "回答不是合法的JSON", "the answer is not valid JSON")
    asks_object = re.search(r"对象|object", match.group(), re.IGNORECASE)
    if isinstance(value, dict) or (isinstance(value, list) and not asks_object):
        return Finding(True, "整个回答是合法的JSON", "the whole answer is valid JSON")
    return None


ENGLISH_WORDS = re.compile(r"\b(?:the|and|are|you|for|that|this|with|have|was)\b", re.IGNORECASE)


CLEARLY_A_SCRIPT = 3


def in_language(match: re.Match[str], answer: str) -> Finding | None:
    """Clear cases only: a few foreign words in an answer may be names."""
    wanted = match["language"].lower()
    han, latin = len(HAN.findall(answer)), len(LATIN_WORD.findall(answer))
    if KANA.search(answer) or han + latin < 2:
        return None
    if wanted.startswith(("英", "english")):
        if not han and ENGLISH_WORDS.search(answer):
            return Finding(True, "回答全部是英文", "the answer is in English")
        return Finding(False, "回答是中文", "the answer is in Chinese") if han > 5 * latin else None
    if han * 5 < latin:
        return Finding(False, "回答不是中文", "the answer is not in Chinese")
    if han < 5 * latin:
        return None
    simplified, traditional = script_votes(answer)
    if wanted.startswith(("简", "simplified")):
        right, amiss, script = simplified, traditional, ("简体", "Simplified")
    elif wanted.startswith(("繁", "traditional")):
        right, amiss, script = traditional, simplified, ("繁体", "Traditional")
    else:
        return Finding(True, "回答是中文", "the answer is in Chinese")
    if (right and amiss) or max(right, amiss) < CLEARLY_A_SCRIPT:
        return None
    zh, en = ("", "") if right else ("不", " not")
    return Finding(bool(right), f"回答{zh}是{script[0]}中文", f"the answer is{en} in {script[1]} Chinese")


EMOJI = re.compile("[\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001faff\U0001f1e6-\U0001f1ff]")
NEARLY_EMOJI = re.compile(
    r"[\u2190-\u27bf\u2b00-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff]|[:;=]-?[()DPp]|[(（][^\w\s()（）“\"‘']"
)
BRACKETS = re.compile(r"[（(][^（()）\n]{1,200}[）)]")
ANY_BRACKET = re.compile(r"[()（）\[\]【】〔〕{}［］]")


def _found(pattern: re.Pattern[str], unsure: re.Pattern[str], zh: str, en: str, *, wanted: bool) -> Check:
    def check(match: re.Match[str], answer: str) -> Finding | None:
        found = pattern.search(answer)
        if not found and unsure.search(answer):
            return None
        if not found:
            return Finding(not wanted, f"回答中没有{zh}", f"the answer has no {en}")
        shown = found.group()[:20]
        return Finding(wanted, f"回答中有{zh}：{shown}", f"the answer has {en}: {shown}")

    return check


has_emoji = _found(EMOJI, NEARLY_EMOJI, "表情符号", "emoji", wanted=True)
no_emoji = _found(EMOJI, NEARLY_EMOJI, "表情符号", "emoji", wanted=False)
has_brackets = _found(BRACKETS, ANY_BRACKET, "括号", "brackets", wanted=True)
no_brackets = _found(BRACKETS, ANY_BRACKET, "括号", "brackets", wanted=False)


def something_in_brackets(match: re.Match[str], answer: str) -> Finding | None:
    """What must stand in brackets is the judge's to read; without any bracket it cannot stand there."""
    finding = has_brackets(match, answer)
    return finding if finding and not finding.holds else None
