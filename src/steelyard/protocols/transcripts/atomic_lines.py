"""What the single lines of an `atomic` transcript say: headings, levels, steps, scores. No state, no guessing."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from steelyard.protocols.transcripts.forms import FormPattern, PatternMatch, folded
from steelyard.protocols.transcripts.lines import (
    CLOSING,
    COLON,
    DECORATION,
    LEAD,
    NUMBER,
    OPENING,
    SIGNS,
    D,
    closing,
    nesting,
    undecorated,
    unescape,
)
from steelyard.records import AtomLabel

Level = Literal[1, 2, 3]
Section = Literal["atoms", "levels", "accuracy", "fallback"]

POINTS: dict[AtomLabel, str] = {"correct": "1", "wrong": "0", "undetermined": "-1"}
LABELS: dict[str, AtomLabel] = {points: label for label, points in POINTS.items()}
OPEN = "未判定"

ORDINAL = rf"(?:[一二三四五]、|（[一二三四五]）|{NUMBER}|(?:步骤|step)\s?\d\s?{COLON}?|第[一二三四五]步\s?{COLON}?)?"
ATOM = r"(?:原子(?:信息|资讯|讯息|事实))"
SECTIONS: dict[Section, str] = {
    "atoms": rf"(?:{ATOM}(?:生成|切分|拆分|提取|列表)?"
    r"|atom(?:s|ic\s(?:information|facts?|claims?|statements?))(?:\s(?:generation|extraction|split(?:ting)?|list))?)",
    "levels": rf"(?:{ATOM}?的?相关性(?:等级(?:划分)?|分级|划分)"
    r"|(?:atomic\sinformation\s)?relevance\s(?:levels?|grading|grades?|classification)"
    r"(?:\s(?:classification|assignment|grading|division))?)",
    "accuracy": rf"(?:{ATOM}?的?准确性(?:评估|评价|判断)"
    r"|(?:atomic\sinformation\s)?accuracy(?:\s(?:assessment|evaluation|judge?ment|check))?)",
    "fallback": r"(?:兜底(?:回复)?(?:检测|判断|评估)?"
    r"|fall-?back(?:\s(?:reply|response|answer))?(?:\s(?:detection|check|judge?ment))?)",
}
HEADINGS = {
    name: FormPattern(rf"{LEAD}{ORDINAL}{D}[【\[]?{words}(?:结果|\sresults?)?[】\]]?{D}{COLON}?{D}")
    for name, words in SECTIONS.items()
}
HINT = re.compile("原子|性|兜底|atom|relevan|accura|fall", re.IGNORECASE)
FALLBACK_PROSE = FormPattern(rf"{LEAD}(?:[四五]、)?{SECTIONS['fallback']}{D}{COLON}{D}(.*)")
LB, RB = r"[【\[〖]", r"[】\]〗]"
IN_BRACKETS = rf"{LB}\s*+([^】\]〗\s]{{0,12}})\s*+{RB}"
IN_PARENTHESES = r"[（(]\s*+([^（()）\s]{0,12})\s*+[）)]"
# Braces belong to another form, but models mix them up.
IN_BRACES = r"\{{1,2}\s*+([^{}\s]{0,12})\s*+\}{1,2}"
MARKED = rf"(?:{IN_BRACKETS}|{IN_PARENTHESES}|{IN_BRACES}|(-?\d{{1,4}}))"
IS_FALLBACK = (
    r"(?:(?:是否)?(?:为|是|属于)?兜底(?:回复)?"
    r"|(?:(?:is|whether)\s(?:it|this|the\s(?:answer|reply|content))\s(?:is\s)?(?:a\s)?)?"
    r"fall-?back(?:\s(?:reply|response|answer))?)"
    r"(?:[（(][^（()）]{0,12}[）)])?[？?]?"
)
FALLBACK_SCORE = FormPattern(
    rf"{LEAD}{ORDINAL}{D}{IS_FALLBACK}{D}{COLON}{D}(?:(?:[打得]分|score){D}{COLON}?{D})?"
    rf"(?:{MARKED}|(不是|是|否|yes|no)){D}分?{D}(?:[。.，,；;（(—].*)?"
)
FALLBACK_VALUES = {"0": 0, "否": 0, "不是": 0, "no": 0, "1": 1, "是": 1, "yes": 1}
GROUP = FormPattern(
    rf"{LEAD}{LB}?(?:相关性(?:等级)?|等级|(?:relevance\s)?level)\s?{LB}?\s?([1-3一二三])\s?{RB}?\s?级?{RB}?{D}"
    rf"(?:[（(][^（()）]{{1,40}}[）)]{D})?{COLON}?{D}"
)
UNGRADED = FormPattern(rf"{LEAD}(?:未划分等级|ungraded){COLON}?{D}")
NEED = FormPattern(
    rf"{LEAD}{NUMBER}?{D}(?:是否(?:需要|需|要)?(?:进行)?(?:事实性?)?(?:准确性)?(?:判断|核查|评估)|事实性判断"
    r"|(?:is\s|whether\s(?:to\s(?:perform|make)\s)?)?(?:a\s)?factual\s(?:judge?ment|check|verification)"
    r"(?:\s(?:is\s)?(?:needed|required|necessary))?"
    rf"|needs?\s(?:a\s)?(?:factual\s)?(?:check(?:ing)?|judge?ment|verification))[？?]?{D}{COLON}{D}(.*)",
    re.DOTALL,
)
ACCURACY = FormPattern(
    rf"{LEAD}{NUMBER}?{D}(?:{SECTIONS['accuracy']}|准确性|verdict|label){D}{COLON}{D}(.+)", re.DOTALL
)
# A ratio of the whole answer, not of an atom.
STATED = FormPattern(
    rf"{LEAD}(?:[总综]上[，,]?|(?:总体|整体|overall|total)\s?)?(?:准确率|准确性得分|accuracy(?:\s(?:rate|score))?)"
    rf"{D}(?:为|是|is|{COLON}){D}\{{{{0,2}}(?:(\d{{1,6}})\s?/\s?(\d{{1,6}})|(\d{{1,3}}(?:\.\d{{1,6}})?)(\s?%)?)\}}{{0,2}}[\s。.*_`]*+"
)

LEVEL_WORD = r"(?:相关性)?等级(?:划分)?|(?:relevance\s)?level(?:\s(?:classification|assignment|division))?"
# So far and no further: a note may begin at every line break of a long run of them.
NEAR = r"[\s*_`•\-]{0,40}+"
LEVEL_NOTE = FormPattern(
    rf"(?:[（(]|\n|[—\-]{{1,2}}\s?|[:：，,；;]\s?){NEAR}(?:{LEVEL_WORD}){D}{COLON}?{D}"
    rf"(?:{IN_BRACKETS}|{IN_PARENTHESES}|([1-3一二三])(?![\d.]))"
    rf"|[（(]{D}{LB}?([1-3]){RB}?\s?级|{LB}([1-3])\s?级{RB}"
)
LEVEL_FIELD = FormPattern(rf"{D}(?:{LEVEL_WORD}|(?:划分)?理由|reason){D}{COLON}.*")
LEVEL_REASON = FormPattern(rf"\s?级?\s?[，,；;。]?(?:\s?|\n[\s•\-*]*+)(?:(?:(?:划分)?理由|reason){D}{COLON}{D})?")

PUNCTUATION = "，,。.；;、!！ \t\n*_`"
SCORE_WORD = r"(?:准确性|accuracy\s)?(?:[打得评]分|\bscor(?:ed?|ing))"
GAP = r"[\s，,。.；;、*_`\-]*+"
END = rf"{GAP}(?:评估|流程)?(?:结束|end(?:ed)?|done)?[\s。.！!*_`]*+"
WORDED = rf"{SCORE_WORD}{D}(?:[:：为是]|is\b)?{D}{MARKED}{D}分?"
SCORE = FormPattern(rf"{GAP}{WORDED}{END}")
BARE_SCORE = FormPattern(rf"{GAP}(?:{IN_BRACKETS}{D}分?|(-?\d{{1,4}}){D}分){END}")
FIRST_SCORE = FormPattern(rf"{GAP}{WORDED}(?:(?=[\s，,。.；;（(])|(?<=\s))")
FIRST_BARE = FormPattern(rf"{D}{IN_BRACKETS}{D}分?(?=[\s，,。.；;（(])")
ENDING = FormPattern(END)
SCORE_START = FormPattern(SCORE_WORD)
SCORE_WINDOW = 60
PROSE: tuple[tuple[FormPattern, AtomLabel], ...] = (
    (FormPattern(OPEN), "unjudged"),
    (FormPattern(r"不正确|不准确|错误|(?:incorrect|inaccurate|wrong|false|not\s(?:correct|accurate))\b"), "wrong"),
    (
        FormPattern(
            r"无法(?:直接)?(?:判断|确定)|不确定|(?:undetermined|uncertain|unverifiable"
            r"|(?:cannot\sbe|can't\sbe)\s(?:determined|judged|verified)|unable\sto\s(?:determine|judge|verify))\b"
        ),
        "undetermined",
    ),
    (FormPattern(r"正确|准确|(?:correct|accurate|true)\b"), "correct"),
)
UNNEEDED = FormPattern(
    r"不需要|不需|无需要?|无须|不用|不必|否|(?:no(?:t\s(?:needed|required|necessary|applicable))?|n/a|unnecessary|exempt)\b"
)
NUMERALS = str.maketrans("一二三", "123")


def heading_of(line: str) -> tuple[Section, bool] | None:
    """Which section the line opens, and whether its heading is a numbered one."""
    if not HINT.search(line):
        return None
    for name, pattern in HEADINGS.items():
        if match := pattern.fullmatch(line):
            return name, match.numbered
    return None


def level_of(mark: str) -> Level | None:
    digit = folded(mark).translate(NUMERALS).removesuffix("级")
    return {"1": 1, "2": 2, "3": 3}.get(digit)  # type: ignore[return-value]


def ratio_of(stated: PatternMatch) -> float | None:
    """A stated total as a ratio: 2/3, 67% or 0.67."""
    part, whole, number, percent = (stated.word(group) for group in range(1, 5))
    if part:
        return int(part) / int(whole) if int(whole) else None
    value = float(number) / (100 if percent else 1)
    return None if value > 1 else int(value) if value.is_integer() else value


class LevelNote(NamedTuple):
    """What follows an atom in 相关性等级划分; `readable` is False where no level, and no 未判定, stands there."""

    level: Level | None
    reason: str
    readable: bool


def note_start(line: str, known: str | None) -> int | None:
    """Where the note behind the atom's text begins: right after the listed text, else where the only note is.

    Text may itself contain such a note; where that leaves two to choose from, neither is chosen.
    """
    plain = line.lstrip(DECORATION) if known and known[0] not in DECORATION else line
    if known is not None and plain.startswith(known):
        gap = len(line) - len(plain) + len(known)
        while line[gap : gap + 1] in (" ", *DECORATION):
            gap += 1
        if LEVEL_NOTE.match(line, gap):
            return gap
    notes = LEVEL_NOTE.finditer(line)
    first, second = next(notes, None), next(notes, None)
    return first.start if first and not second else None


def read_note(note: str) -> LevelNote:
    match = LEVEL_NOTE.match(note)
    if not match:
        return LevelNote(None, "", readable=False)
    mark = match.first()
    level = level_of(mark)
    rest = note[match.end :]
    if prefix := LEVEL_REASON.match(rest):
        rest = rest[prefix.end :]
    end = closing("（" + rest) if note[0] in OPENING else None
    reason = rest[: end - 1] if end is not None else rest
    return LevelNote(level, unescape(undecorated(reason)), readable=level is not None or mark == OPEN)


class Judgement(NamedTuple):
    """What one step of a block says about its atom."""

    label: AtomLabel
    reason: str = ""
    flags: tuple[str, ...] = ()


def read_need(value: str) -> Judgement | None:
    """Step （1）: exempt, or None where the atom goes on to step （2）."""
    word = UNNEEDED.match(value)
    return Judgement("exempt", _plain_reason(value[word.end :])) if word else None


INLINE = FormPattern(r"[\s:：—\-→=>|]*+(?:[（(](.*)[）)][。.]?|(.+))", re.DOTALL)
ACCURACY_NAME = FormPattern(rf"{D}(?:准确性(?:评估|判断)?|accuracy){D}{COLON}{D}")


INLINE_EXEMPT = FormPattern(r"不需要|无需|无须|(?:exempt|not\s(?:needed|required|applicable))\b")


def read_inline(tail: str) -> tuple[Literal["need", "accuracy"], str] | None:
    """What an item's own line says behind the atom's text, as one of the steps would say it; None if it is neither."""
    match = INLINE.fullmatch(tail)
    value = (match[1] or match[2]) if match else ""
    if name := ACCURACY_NAME.match(value):
        value = value[name.end :]
    if INLINE_EXEMPT.match(value):
        return "need", value
    return ("accuracy", value) if value and "score_missing" not in read_accuracy(value).flags else None


def read_accuracy(value: str) -> Judgement:
    """Step （2）: the score behind the reason's closing parenthesis; without one, what the word before it says."""
    value = value.lstrip(SIGNS)
    said, word = next(((label, match.end) for pattern, label in PROSE if (match := pattern.match(value))), (None, 0))
    rest = value[word:].lstrip(" \t*_`")
    score, reason, unclosed = _score_of(rest)
    if first := FIRST_SCORE.match(rest) or (FIRST_BARE.match(rest) if said else None):
        # Some write the score before the reason; what the reason then says about scores is only talk.
        if score is None and unclosed is None:
            score, reason = first.first(), _plain_reason(rest[first.end :])
        elif first.first() not in (score, unclosed):
            return Judgement("unjudged", reason, ("blocks_conflict",))
    if score is None:
        return _from_prose(said, reason, unclosed)
    label = LABELS.get(score)
    if label is None:
        return Judgement("unjudged", reason, ("score_out_of_range",))
    return Judgement(label, reason, ("prose_contradicts_score",) if said and said != label else ())


def _from_prose(said: AtomLabel | None, reason: str, unclosed: str | None) -> Judgement:
    if said is None:
        return Judgement("unjudged", reason, ("score_missing",))
    if said == "unjudged":
        return Judgement("unjudged", reason)
    if unclosed is not None and LABELS.get(unclosed) != said:
        return Judgement("unjudged", reason, ("prose_contradicts_score",))
    return Judgement(said, reason, ("label_inferred",))


def _score_of(rest: str) -> tuple[str | None, str, str | None]:
    """The score, the reason, and a score that stands inside a parenthesis which never closes."""
    if bare := BARE_SCORE.fullmatch(rest):
        return bare.first(), "", None
    if rest[:1] and rest[0] in OPENING and (end := closing(rest)) is not None:
        if tail := SCORE.fullmatch(rest, end + 1) or BARE_SCORE.fullmatch(rest, end + 1):
            return tail.first(), unescape(undecorated(rest[1:end])), None
        if not rest[end + 1 :].strip(PUNCTUATION):
            return None, unescape(undecorated(rest[1:end])), None
    begin = max(0, len(rest) - SCORE_WINDOW)
    for start in reversed([match.start for match in SCORE_START.finditer(rest, begin)]):
        if tail := SCORE.fullmatch(rest, start):
            reason = _plain_reason(rest[:start])
            inside = nesting(rest[:start]) > 0
            return (None, reason, tail.first()) if inside else (tail.first(), reason, None)
    return None, _plain_reason(rest), None


def ending_score(line: str) -> str | None:
    """The score that the line ends with."""
    begin = max(0, len(line) - SCORE_WINDOW)
    found = (SCORE.fullmatch(line, start.start) for start in SCORE_START.finditer(line, begin))
    return next((score.first() for score in found if score), None)


def _plain_reason(text: str) -> str:
    """A reason without the punctuation and the one pair of parentheses around it."""
    text = text.strip(PUNCTUATION)
    if text[:1] and text[0] in OPENING:
        end = closing(text)
        if end is not None and ENDING.fullmatch(text, end + 1):
            text = text[1:end]
        else:
            text = text[1:-1] if text[-1] in CLOSING else text[1:]
    return unescape(undecorated(text))


FALLBACK_NO = FormPattern(
    r"(?:不是|并非|不属于|不为|非|没有)兜底|正常回答|\bnot\s(?:an?\s)?fall-?back|\bnormal\sanswer"
)
FALLBACK_YES = FormPattern(r"(?:为|是|属于)兜底|\bis\s(?:an?\s)?fall-?back")


def read_fallback_prose(prose: str) -> int | None:
    if FALLBACK_NO.search(prose):
        return 0
    return 1 if FALLBACK_YES.search(prose) else None
