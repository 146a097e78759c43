"""Criteria that code can decide: lengths, counts, openings and endings, JSON, language, brackets, emoji.

A criterion is read clause by clause, as known constraints plus filler words. A clause with anything left
over is not understood. One understood clause that fails settles the criterion (partly is not fully); it is
satisfied only where every clause is understood. Conditions, exceptions and parts of an answer are the judge's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from steelyard.quantities import han_number
from steelyard.text import HAN, LATIN_WORD, language_of, sentences


class Ruling(NamedTuple):
    """What code found, and the count or words that prove it."""

    satisfied: bool
    reason: str


class Finding(NamedTuple):
    holds: bool
    reason: str


NUMBER = r"(\d+|[一二两三四五六七八九十百千]+)"
QUOTED = r"[“\"'「『‘《]([^”\"'」』’》]{1,60})[”\"'」』’》]"
EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a\u231b\u23e9-\u23f3\u23f8-\u23fa\u3030\u303d\u3297\u3299]"
)
BRACKETED = re.compile(r"[（(][^）)]+[）)]")


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else int(han_number(text) or 0)


# --- what can be counted in an answer --------------------------------------------------------------


def _characters(answer: str) -> int:
    """字数 as people count it: each Chinese character and mark, each Latin word or number, is one."""
    latin = len(re.findall(r"[A-Za-z0-9\u00c0-\u024f]+", answer))
    rest = re.sub(r"[A-Za-z0-9\u00c0-\u024f]+|\s", "", answer)
    return latin + len(rest)


def _plain_characters(answer: str) -> int:
    return len(HAN.findall(answer)) + len(re.findall(r"[A-Za-z0-9\u00c0-\u024f]+", answer))


def _words(answer: str) -> int:
    return len(re.findall(r"[^\W_]+(?:['’\-][^\W_]+)*", answer))


def _paragraphs(answer: str) -> int:
    return len([block for block in re.split(r"\n\s*\n", answer) if block.strip()])


def _list_items(answer: str) -> int:
    return len(re.findall(r"(?m)^\s*(?:[-*+•]|\d{1,3}[.)、]|[（(]\d{1,3}[）)]|[①-⑳])\s*\S", answer))


COUNTERS: dict[str, Callable[[str], int]] = {
    "字符": len, "characters": len, "character": len,
    "字": _characters, "个字": _characters,
    "words": _words, "word": _words,
    "句": lambda a: len(sentences(a)), "句话": lambda a: len(sentences(a)),
    "sentences": lambda a: len(sentences(a)), "sentence": lambda a: len(sentences(a)),
    "段": _paragraphs, "paragraphs": _paragraphs, "paragraph": _paragraphs,
    "点": _list_items, "条": _list_items, "bullet points": _list_items, "bullets": _list_items,
    "list items": _list_items,
}  # fmt: skip
UNIT = "(" + "|".join(sorted(COUNTERS, key=len, reverse=True)) + ")"


def _compare(answer: str, unit: str, low: int | None, high: int | None) -> Finding | None:
    unit = unit.lower()
    count = COUNTERS[unit](answer)
    holds = (low is None or count >= low) and (high is None or count <= high)
    if unit in ("字", "个字"):
        # Whether punctuation counts is a matter of taste: where that decides, leave it to the judge.
        other = _plain_characters(answer)
        if ((low is None or other >= low) and (high is None or other <= high)) != holds:
            return None
    if unit in ("点", "条", "bullet points", "bullets", "list items") and not count:
        return None
    bounds = f"{'' if low is None else low}–{'' if high is None else high}"
    return Finding(holds, f"{count} {unit} ({bounds})")


# --- the constraints code knows --------------------------------------------------------------------


def _at_most(match: re.Match[str], answer: str) -> Finding | None:
    return _compare(answer, match[2], None, _number(match[1]))


def _below(match: re.Match[str], answer: str) -> Finding | None:
    return _compare(answer, match[2], None, _number(match[1]) - 1)


def _at_least(match: re.Match[str], answer: str) -> Finding | None:
    return _compare(answer, match[2], _number(match[1]), None)


def _above(match: re.Match[str], answer: str) -> Finding | None:
    return _compare(answer, match[2], _number(match[1]) + 1, None)


def _between(match: re.Match[str], answer: str) -> Finding | None:
    return _compare(answer, match[3], _number(match[1]), _number(match[2]))


def _exactly(match: re.Match[str], answer: str) -> Finding | None:
    return _compare(answer, match[2], _number(match[1]), _number(match[1]))


def _begins(match: re.Match[str], answer: str) -> Finding:
    wanted = match[1].strip()
    return Finding(_bare(answer).startswith(wanted), f"{answer.strip()[:20]!r}")


def _ends(match: re.Match[str], answer: str) -> Finding:
    wanted = match[1].strip()
    bare = _bare(answer)
    return Finding(bare.endswith(wanted) or bare.rstrip("。.!！?？~～").endswith(wanted), f"{bare[-20:]!r}")


def _bare(answer: str) -> str:
    return answer.strip().strip("*_“”\"'「」『』 \n")


def _json(match: re.Match[str], answer: str) -> Finding:
    try:
        json.loads(answer)
    except (ValueError, RecursionError) as error:
        return Finding(False, f"not JSON: {error}")
    return Finding(True, "JSON")


def _chinese(match: re.Match[str], answer: str) -> Finding:
    return Finding(language_of(answer) != "en", language_of(answer))


def _english(match: re.Match[str], answer: str) -> Finding | None:
    if not LATIN_WORD.search(answer):
        return Finding(False, "no English word")
    return Finding(not HAN.search(answer), "Chinese characters" if HAN.search(answer) else "English")


def _no_emoji(match: re.Match[str], answer: str) -> Finding:
    found = EMOJI.search(answer)
    return Finding(not found, found.group() if found else "no emoji")


def _has_emoji(match: re.Match[str], answer: str) -> Finding:
    found = EMOJI.search(answer)
    return Finding(bool(found), found.group() if found else "no emoji")


def _has_brackets(match: re.Match[str], answer: str) -> Finding:
    found = BRACKETED.search(answer)
    return Finding(bool(found), found.group()[:20] if found else "no ()")


def _no_brackets(match: re.Match[str], answer: str) -> Finding:
    found = BRACKETED.search(answer)
    return Finding(not found, found.group()[:20] if found else "no ()")


Constraint = tuple[re.Pattern[str], Callable[[re.Match[str], str], Finding | None]]
I = re.IGNORECASE  # noqa: E741

CONSTRAINTS: tuple[Constraint, ...] = (
    (re.compile(rf"{NUMBER}\s*(?:-|–|—|~|～|到|至|to)\s*{NUMBER}\s*{UNIT}(?:之间|以内)?", I), _between),
    (re.compile(rf"between {NUMBER} and {NUMBER} {UNIT}", I), _between),
    (re.compile(rf"(?:不(?:得|能|要|可)?(?:超过|多于|大于|高于)|最多|至多|不超出|控制在)\s*{NUMBER}\s*{UNIT}(?:以内|之内)?", I), _at_most),
    (re.compile(rf"{NUMBER}\s*{UNIT}(?:以内|之内|以下)", I), _at_most),
    (re.compile(rf"(?:少于|低于|小于)\s*{NUMBER}\s*{UNIT}", I), _below),
    (re.compile(rf"(?:不(?:得|能|要|可)?(?:少于|低于|小于)|至少|最少)\s*(?:有|包含|列出|给出)?\s*{NUMBER}\s*{UNIT}", I), _at_least),
    (re.compile(rf"{NUMBER}\s*{UNIT}以上", I), _at_least),
    (re.compile(rf"(?:超过|多于|大于)\s*{NUMBER}\s*{UNIT}", I), _above),
    (re.compile(rf"(?:no more than|at most|up to|within|not (?:to )?exceed(?:ing)?|maximum(?: of)?|under or equal to) {NUMBER} {UNIT}", I), _at_most),
    (re.compile(rf"(?:fewer than|less than|under|below) {NUMBER} {UNIT}", I), _below),
    (re.compile(rf"(?:at least|no (?:fewer|less) than|minimum(?: of)?) {NUMBER} {UNIT}", I), _at_least),
    (re.compile(rf"(?:more than|over) {NUMBER} {UNIT}", I), _above),
    (re.compile(rf"(?:恰好|正好|刚好|只有|仅有?|exactly|only)\s*{NUMBER}\s*{UNIT}", I), _exactly),
    (re.compile(rf"(?:以|用)\s*{QUOTED}\s*(?:作为|为|来|做)?\s*(?:开头|开始|起始|开场)", I), _begins),
    (re.compile(rf"(?:begins?|starts?|opens?) with (?:the (?:words?|phrase|sentence) )?{QUOTED}", I), _begins),
    (re.compile(rf"(?:以|用)\s*{QUOTED}\s*(?:作为|为|来|做)?\s*(?:结尾|结束|收尾)", I), _ends),
    (re.compile(rf"(?:ends?|closes?|finish(?:es)?) with (?:the (?:words?|phrase|sentence) )?{QUOTED}", I), _ends),
    (re.compile(r"(?:以|用|按|使用|采用)?\s*(?:合法|有效|严格|valid|strict|pure)?的?\s*JSON\s*(?:格式|形式|对象|format|object)?", I), _json),
    (re.compile(r"(?:只|仅|全程|必须|始终)*(?:使用|用|以|采用)\s*(?:简体|繁体)?(?:中文|汉语)(?:来)?(?:回答|回复|作答|输出|交流)?|(?:in|use) chinese(?: only)?", I), _chinese),
    (re.compile(r"(?:只|仅|全程|必须|始终)*(?:使用|用|以|采用)\s*(?:英文|英语)(?:来)?(?:回答|回复|作答|输出|交流)?|(?:in|use) english(?: only)?", I), _english),
    (re.compile(r"(?:不(?:得|能|要|可以?|应)?(?:使用|用|包含|含有|出现|带)|没有|禁止(?:使用)?|避免(?:使用)?|勿用)(?:任何)?\s*(?:emoji|表情符号|颜文字)|(?:no|without|not (?:use|contain|include)|avoids?)(?: any)? emojis?", I), _no_emoji),
    (re.compile(r"(?:使用|包含|含有|带有?|加入|有)(?:至少一个|一个)?\s*(?:emoji|表情符号)|(?:uses?|contains?|includes?)(?: an?| at least one)? emojis?", I), _has_emoji),
    (re.compile(r"(?:不(?:得|能|要|可以?|应)?(?:使用|用|包含|含有|出现|带)|没有|禁止(?:使用)?|避免(?:使用)?)(?:任何)?\s*(?:括号|（）|\(\))", I), _no_brackets),
    (re.compile(r"(?:使用|包含|含有|带有?|有)?\s*(?:括号|（）|\(\))(?:中|内|里)?", I), _has_brackets),
)  # fmt: skip

FILLER = re.compile(
    r"回答|回复|答案|输出|内容|文本|文字|字数|长度|总字数|篇幅|全文|每次|每轮|本轮|模型|助手|AI|应该|应当|应|需要|需|必须"
    r"|要求|要|须|请|保持|控制|限制|限定|范围|在|为|是|的|地|得|都|均|且|并且|并|和|以及|进行|形式|格式|语言|使用|用|以|来"
    r"|answer|response|reply|output|text|the|its?|a|an|must|should|shall|has|have|to|be|is|are|and|of|in|written|given"
    r"|returns?|contains?|includes?|uses?|length|format|only|with|total|model|assistant|valid",
    I,
)
PUNCTUATION = re.compile(r"[\W_]+")


# A condition, an exception or a part of the answer changes what is asked; that is for the judge to read.
CONDITION = re.compile(
    r"如果|若|当|的时候|时，|除非|除了|除外|一旦|每当|\b(?:if|when|whenever|unless|except|otherwise|first|last)\b"
    r"|每(?:一|个|句|段|条|行)|各(?:句|段|条)|标题|第[一二三四五六七八九十\d]|首|末|前|后|\b(?:each|every|per|title|heading)\b",
    I,
)
NEGATION = re.compile(
    r"(?:不|勿|别|非|无|未|禁止|避免|没|\b(?:not|no|never|avoid|without|don't|doesn't)\b)[^，,；;]{0,8}\Z", I
)
NECESSARY = (_has_brackets, _has_emoji)
CLAUSE_END = re.compile(r"[，,；;。]|并且|而且|同时|且(?!不\b)|\band\b", I)


def rule_on(criterion: str, answer: str) -> Ruling | None:
    """The ruling of code on one criterion (without its type), or None where it is the judge's."""
    if CONDITION.search(criterion):
        return None
    whole = _examine(criterion, answer)
    findings = [whole] if whole else [_examine(clause, answer) for clause in _clauses(criterion)]
    known = [finding for finding in findings if finding]
    failed = [finding for finding in known if not finding.holds]
    if failed:
        return Ruling(False, "; ".join(finding.reason for finding in failed))
    if not known or len(known) < len(findings):
        return None
    return Ruling(True, "; ".join(finding.reason for finding in known))


def _clauses(criterion: str) -> list[str]:
    """The criterion at its commas and conjunctions, except inside quotation marks."""
    hidden = re.sub(QUOTED, lambda m: "\x00" * len(m.group()), criterion)
    ends = [0, *(m.end() for m in CLAUSE_END.finditer(hidden)), len(criterion)]
    clauses = (criterion[a:b] for a, b in pairwise(ends))
    return [clause for clause in clauses if re.search(r"[^\W_]", _without_filler(CLAUSE_END.sub("", clause)))]


def _examine(clause: str, answer: str) -> Finding | None:
    """What code finds about a clause it understands entirely; of one it half understands, only that what
    must at least be there is not."""
    rest, findings = clause, list[Finding]()
    for pattern, examine in CONSTRAINTS:
        match = pattern.search(rest)
        if match is None:
            continue
        finding = examine(match, answer)
        if finding is None or NEGATION.search(rest[: match.start()]):
            return None
        rest = rest[: match.start()] + " " + rest[match.end() :]
        findings.append(finding)
        if examine in NECESSARY and not finding.holds:
            return finding
    if not findings or re.search(r"[^\W_]", _without_filler(rest)):
        return None
    return Finding(all(f.holds for f in findings), "; ".join(f.reason for f in findings))


def _without_filler(text: str) -> str:
    pattern = FILLER.pattern if HAN.search(text) else rf"\b(?:{FILLER.pattern})\b"
    return PUNCTUATION.sub("", re.sub(pattern, "", text, flags=I))
