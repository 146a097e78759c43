"""What code can verify of an answer's form: JSON and its fields, language and script, brackets, emoji, marks.

As in `constraints.py`, a check says whether the constraint holds and why, or None where careful people could
disagree (is ✓ an emoji? is JSON in a code block JSON?).
"""

from __future__ import annotations

import json
import re
from typing import Any

from steelyard.protocols.constraints import DECORATION, QUOTED, Check, Finding
from steelyard.text import HAN, KANA, LATIN_WORD, script_votes

# --- JSON -------------------------------------------------------------------------------------------


# 是JSON, 只输出JSON: the whole of it. 使用JSON格式 may have a word before it for some readers.
ALL_OF_IT = re.compile(r"[只仅是须]|合法|有效|\b(?:only|nothing but|valid|must|is|are)\b", re.IGNORECASE)


def is_json(match: re.Match[str], answer: str) -> Finding | None:
    """The whole answer is one JSON value; JSON in a code block is JSON to some readers only."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return _not_json(match.group(), answer)
    asks_object = re.search(r"对象|object", match.group(), re.IGNORECASE)
    if isinstance(value, dict) or (isinstance(value, list) and not asks_object):
        return Finding(True, "整个回答是合法的JSON", "the whole answer is valid JSON")
    return None


def _not_json(demand: str, answer: str) -> Finding | None:
    start = re.search(r"[{\[]", answer)
    if start is None or answer.lstrip().startswith(("{", "[")):
        return Finding(False, "回答不是合法的JSON", "the answer is not valid JSON")
    before = answer[: start.start()].strip()
    if "```" in answer or not ALL_OF_IT.search(demand):
        return None
    shown = " ".join(before[:20].split())
    return Finding(False, f"JSON之前还有别的文字：“{shown}”", f"there is other text before the JSON: “{shown}”")


FIELD = r"[A-Za-z_][A-Za-z0-9_]{0,40}"
FIELDS = rf"(?P<fields>(?:{FIELD}|{QUOTED})(?:(?: ?[、,和及与] ?| and |, and )(?:{FIELD}|{QUOTED})){{0,9}})"


def has_fields(match: re.Match[str], answer: str) -> Finding | None:
    """Whether the answer's JSON has these fields, at whatever depth; an answer that is no JSON has none to look at."""
    try:
        present = _keys(json.loads(answer))
    except (ValueError, RecursionError):
        return None
    wanted = [field for field in re.findall(FIELD, match["fields"]) if field != "and"]
    missing = [field for field in wanted if field not in present]
    named = "、".join(f"“{field}”" for field in missing or wanted)
    if missing:
        return Finding(False, f"JSON中没有字段{named}", f"the JSON has no field {named}")
    return Finding(True, f"JSON中有字段{named}", f"the JSON has the field {named}") if wanted else None


def _keys(value: Any) -> set[str]:
    inside = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return {*(value if isinstance(value, dict) else ()), *(key for entry in inside for key in _keys(entry))}


# --- language and script ----------------------------------------------------------------------------

ENGLISH_WORDS = re.compile(r"\b(?:the|and|are|you|for|that|this|with|have|was)\b", re.IGNORECASE)
CLEARLY_A_SCRIPT = 2


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
    script = script_of(wanted)
    if script is None:
        return Finding(True, "回答是中文", "the answer is in Chinese")
    right, amiss = _votes(script, answer)
    if (right and amiss) or max(right, amiss) < CLEARLY_A_SCRIPT:
        return None
    return _counted(script, right, amiss, holds=bool(right))


SCRIPTS = {"简": ("简体", "Simplified"), "繁": ("繁体", "Traditional")}


def script_of(named: str) -> str | None:
    """简 or 繁, where one of the two scripts is named."""
    return {"简": "简", "繁": "繁", "s": "简", "t": "繁", "正": "繁"}.get(named[:1].lower())


def _votes(script: str, answer: str) -> tuple[int, int]:
    """The characters that only the one script has, and those that only the other has."""
    simplified, traditional = script_votes(answer)
    return (simplified, traditional) if script == "简" else (traditional, simplified)


def _counted(script: str, right: int, amiss: int, *, holds: bool) -> Finding:
    (zh, en), (other_zh, other_en) = SCRIPTS[script], SCRIPTS["繁" if script == "简" else "简"]
    return Finding(
        holds,
        f"回答中{zh}字{right}个，{other_zh}字{amiss}个",
        f"{right} {en} and {amiss} {other_en} characters in the answer",
    )


def not_in_script(match: re.Match[str], answer: str) -> Finding | None:
    """Not a character of the script that is forbidden; one alone may be a name."""
    script = script_of(match["script"])
    if script is None:
        return None
    forbidden, right = _votes(script, answer)
    if forbidden >= CLEARLY_A_SCRIPT or (not forbidden and right >= CLEARLY_A_SCRIPT):
        return _counted(script, forbidden, right, holds=not forbidden)
    return None


# --- brackets, emoji, marks -------------------------------------------------------------------------

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


MARKS = {
    r"感叹号|惊叹号|叹号|exclamation (?:marks?|points?)": ("[!！]", "感叹号", "exclamation marks"),
    r"问号|question marks?": ("[?？]", "问号", "question marks"),
    r"省略号|ellips[ei]s": (r"…|\.{3}|。{3}", "省略号", "ellipses"),
    r"破折号|em[- ]?dash(?:es)?": ("—", "破折号", "dashes"),
    r"分号|semi-?colons?": ("[;；]", "分号", "semicolons"),
    r"句号|full stops?|periods?": (r"。|\.(?!\w)", "句号", "full stops"),
}
MARK = f"(?P<mark>{'|'.join(MARKS)})"


def _mark(match: re.Match[str]) -> tuple[str, str, str]:
    return next(mark for names, mark in MARKS.items() if re.fullmatch(names, match["mark"], re.IGNORECASE))


def no_marks(match: re.Match[str], answer: str) -> Finding | None:
    pattern, zh, en = _mark(match)
    n = len(re.findall(pattern, answer))
    return Finding(not n, f"回答中有{n}个{zh}", f"{en} in the answer: {n}")


def ends_in_mark(match: re.Match[str], answer: str) -> Finding | None:
    pattern, zh, _ = _mark(match)
    bare = answer.strip(DECORATION)
    # Brackets and emoji after the mark: whether it ends there, readers differ.
    after = re.match(r"[^\w!?！？。.…—;；]*", bare[::-1])
    core = bare[: len(bare) - after.end()] if after else bare
    if not core:
        return None
    shown = " ".join(bare[-20:].split())
    if re.search(rf"(?:{pattern})\Z", bare):
        return Finding(True, f"回答以{zh}结尾：“{shown}”", f"the answer ends with “{shown}”")
    if re.search(rf"(?:{pattern})\Z", core):
        return None
    return Finding(False, f"回答的结尾是“{shown}”", f"the answer ends with “{shown}”")
