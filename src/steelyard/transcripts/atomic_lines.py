"""What the single lines of an `atomic` transcript say: headings, levels, steps, scores. No state, no guessing."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from steelyard.records import AtomLabel
from steelyard.transcripts.lines import (
    CLOSING,
    COLON,
    DECORATION,
    LEAD,
    NUMBER,
    OPENING,
    D,
    closing,
    nesting,
    undecorated,
    unescape,
)

Level = Literal[1, 2, 3]
Section = Literal["atoms", "levels", "accuracy", "fallback"]

POINTS: dict[AtomLabel, str] = {"correct": "1", "wrong": "0", "undetermined": "-1"}
LABELS: dict[str, AtomLabel] = {points: label for label, points in POINTS.items()}
OPEN = "未判定"

ORDINAL = rf"(?:[一二三四五]、|{NUMBER}|步[骤驟]\s?\d\s?{COLON}?)?"
SECTIONS: dict[Section, str] = {
    "atoms": r"原子(?:信息|資訊|訊息|资讯)(?:生成|切分|拆分)",
    "levels": r"(?:原子(?:信息|資訊))?相[关關]性(?:等[级級][划劃]分|分[级級])",
    "accuracy": r"(?:原子(?:信息|資訊))?[准準][确確]性(?:[评評]估|[评評][价價]|判[断斷])",
    "fallback": r"兜底(?:回[复復覆])?(?:[检檢][测測]|判[断斷])?",
}
HEADINGS = {name: re.compile(rf"{LEAD}{ORDINAL}{D}{words}{D}{COLON}?{D}") for name, words in SECTIONS.items()}
HINT = re.compile("原子|性|兜底")
FALLBACK_PROSE = re.compile(rf"{LEAD}(?:[四五]、)?{SECTIONS['fallback']}{D}{COLON}{D}(.*)")
LB, RB = r"[【［\[〖]", r"[】］\]〗]"
IN_BRACKETS = rf"{LB}\s*+([^】］\]〗\s]{{0,12}})\s*+{RB}"
FALLBACK_SCORE = re.compile(
    rf"{LEAD}{ORDINAL}{D}是否(?:[为為是]|[属屬][于於])?兜底(?:回[复復覆])?{D}{COLON}{D}(?:[打得]分)?{IN_BRACKETS}[\s*_`。.，,；;分]*+"
)
GROUP = re.compile(rf"{LEAD}相[关關]性(?:等[级級])?\s?{LB}?\s?([1-3１-３一二三])\s?{RB}?\s?[级級]?{D}{COLON}?{D}")
UNGRADED = re.compile(rf"{LEAD}未[划劃]分等[级級]{COLON}?{D}")
NEED = re.compile(rf"{LEAD}{NUMBER}?{D}是否(?:需要|需|要)?[进進]行(?:事[实實]性?)?判[断斷]{D}{COLON}{D}(.*)", re.DOTALL)
ACCURACY = re.compile(rf"{LEAD}{NUMBER}?{D}{SECTIONS['accuracy']}{D}{COLON}{D}(.+)", re.DOTALL)

LEVEL_NOTE = re.compile(rf"[（(]{D}(?:相[关關]性)?等[级級](?:[划劃]分)?{D}{COLON}?{D}{IN_BRACKETS}")
LEVEL_REASON = re.compile(rf"\s?[级級]?\s?[，,；;。]?\s?(?:(?:[划劃]分)?理由{D}{COLON}{D})?")

PUNCTUATION = "，,。.；;、!！ \t\n*_`"
SCORE_WORD = r"(?:[准準][确確]性)?[打得评評]分"
GAP = r"[\s，,。.；;、*_`\-]*+"
END = rf"{GAP}(?:[评評]估|流程)?(?:[结結]束)?[\s。.！!*_`]*+"
WORDED = rf"{SCORE_WORD}{D}[:：为為是]?{D}(?:{IN_BRACKETS}|([-−－–]?[0-9０-９]{{1,4}}))[\s*_`]*+分?"
SCORE = re.compile(rf"{GAP}{WORDED}{END}")
BARE_SCORE = re.compile(rf"{GAP}{IN_BRACKETS}[\s*_`]*+分?{END}")
FIRST_SCORE = re.compile(rf"{GAP}{WORDED}(?=[\s，,。.；;（(])")
ENDING = re.compile(END)
SCORE_START = re.compile(SCORE_WORD)
SCORE_WINDOW = 60
PROSE: tuple[tuple[re.Pattern[str], AtomLabel], ...] = (
    (re.compile(OPEN), "unjudged"),
    (re.compile(r"不正[确確]|不[准準][确確]|[错錯][误誤]"), "wrong"),
    (re.compile(r"[无無]法(?:直接)?(?:判[断斷]|[确確]定)|不[确確]定"), "undetermined"),
    (re.compile(r"正[确確]|[准準][确確]"), "correct"),
)
UNNEEDED = re.compile(r"不需要|不需|[无無]需要?|[无無][须須]|不用|不必|否")
DIGITS = str.maketrans("０１２３４５６７８９−－–一二三", "0123456789---123")


def heading_of(line: str) -> tuple[Section, bool] | None:
    """Which section the line opens, and whether its heading is a numbered one."""
    if not HINT.search(line):
        return None
    for name, pattern in HEADINGS.items():
        if match := pattern.fullmatch(line):
            return name, any(match.groups())
    return None


def level_of(mark: str) -> Level | None:
    digit = mark.translate(DIGITS).removesuffix("级").removesuffix("級")
    return {"1": 1, "2": 2, "3": 3}.get(digit)  # type: ignore[return-value]


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
    return first.start() if first and not second else None


def read_note(note: str) -> LevelNote:
    match = LEVEL_NOTE.match(note)
    if not match:
        return LevelNote(None, "", readable=False)
    level = level_of(match[1])
    rest = note[match.end() :]
    if prefix := LEVEL_REASON.match(rest):
        rest = rest[prefix.end() :]
    end = closing("（" + rest)
    reason = rest[: end - 1] if end is not None else rest
    return LevelNote(level, unescape(undecorated(reason)), readable=level is not None or match[1] == OPEN)


class Judgement(NamedTuple):
    """What one step of a block says about its atom."""

    label: AtomLabel
    reason: str = ""
    flags: tuple[str, ...] = ()


def read_need(value: str) -> Judgement | None:
    """Step （1）: exempt, or None where the atom goes on to step （2）."""
    word = UNNEEDED.match(value)
    return Judgement("exempt", _plain_reason(value[word.end() :])) if word else None


def read_accuracy(value: str) -> Judgement:
    """Step （2）: the score behind the reason's closing parenthesis; without one, what the word before it says."""
    said, word = next(((label, match.end()) for pattern, label in PROSE if (match := pattern.match(value))), (None, 0))
    rest = value[word:].lstrip(" \t*_`")
    score, reason, unclosed = _score_of(rest)
    if first := FIRST_SCORE.match(rest):
        # Some write the score before the reason; what the reason then says about scores is only talk.
        if score is None and unclosed is None:
            score, reason = _value(first), _plain_reason(rest[first.end() :])
        elif _value(first) not in (score, unclosed):
            return Judgement("unjudged", reason, ("blocks_conflict",))
    if score is None:
        return _from_prose(said, reason, unclosed)
    label = LABELS.get(score.translate(DIGITS))
    if label is None:
        return Judgement("unjudged", reason, ("score_out_of_range",))
    return Judgement(label, reason, ("prose_contradicts_score",) if said and said != label else ())


def _from_prose(said: AtomLabel | None, reason: str, unclosed: str | None) -> Judgement:
    if said is None:
        return Judgement("unjudged", reason, ("score_missing",))
    if said == "unjudged":
        return Judgement("unjudged", reason)
    if unclosed is not None and LABELS.get(unclosed.translate(DIGITS)) != said:
        return Judgement("unjudged", reason, ("prose_contradicts_score",))
    return Judgement(said, reason, ("label_inferred",))


def _score_of(rest: str) -> tuple[str | None, str, str | None]:
    """The score, the reason, and a score that stands inside a parenthesis which never closes."""
    if rest[:1] and rest[0] in OPENING and (end := closing(rest)) is not None:
        if tail := SCORE.fullmatch(rest, end + 1) or BARE_SCORE.fullmatch(rest, end + 1):
            return _value(tail), unescape(undecorated(rest[1:end])), None
        if not rest[end + 1 :].strip(PUNCTUATION):
            return None, unescape(undecorated(rest[1:end])), None
    begin = max(0, len(rest) - SCORE_WINDOW)
    for start in reversed([match.start() for match in SCORE_START.finditer(rest, begin)]):
        if tail := SCORE.fullmatch(rest, start):
            reason = _plain_reason(rest[:start])
            inside = nesting(rest[:start]) > 0
            return (None, reason, _value(tail)) if inside else (_value(tail), reason, None)
    return None, _plain_reason(rest), None


def _value(match: re.Match[str]) -> str:
    return next(value for value in match.groups() if value is not None)


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


FALLBACK_NO = re.compile(r"(?:不是|并非|並非|不[属屬][于於]|不[为為]|非|没有|沒有)兜底|正常回答")
FALLBACK_YES = re.compile(r"(?:[为為是]|[属屬][于於])兜底")


def read_fallback_prose(prose: str) -> int | None:
    if FALLBACK_NO.search(prose):
        return 0
    return 1 if FALLBACK_YES.search(prose) else None
