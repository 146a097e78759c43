"""What all transcript forms share: escaping free text into one line, finding structure in lines, verdicts.

Free text never decides structure. Rendering escapes the little that could be mistaken for it (`\\n`, `\\u{28}`)
and leaves the rest as it is; reading looks for scores only in the places the form has for them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.records import AnyItem, Evidence, EvidenceSource, Scores, Status, ValueDifference, Verdict

# --- escaping --------------------------------------------------------------------------------------

# Control, bidirectional and unpaired characters break lines or deceive the eye. A backslash is escaped only
# where it would read as an escape, so that `\alpha`, `\nabla` and `C:\new` stay as people write them.
UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
    r"|\\(?=u\{)|\\(?=n(?![A-Za-z]))"
)
ESCAPED = re.compile(r"\\u\{([0-9a-f]{0,6})\}|\\n(?![A-Za-z])")
# Readers strip these around a value, because models decorate with Markdown.
DECORATION = "*_`"
EMPTY = "\\u{}"
OPENING, CLOSING = "（(", "）)"


def code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def escape(text: str, also: str = "") -> str:
    """The text as one line that survives `strip` and decoration; `also` names further characters to protect."""
    if not text:
        return EMPTY
    line = UNSAFE.sub(_escape_one, text)
    for character in also:
        line = line.replace(character, code(character))
    if line[0].isspace() or line[0] in DECORATION:
        line = code(line[0]) + line[1:]
    if line[-1].isspace() or line[-1] in DECORATION:
        line = line[:-1] + code(line[-1])
    return line


def _escape_one(match: re.Match[str]) -> str:
    following = match.string[match.end() : match.end() + 1]
    if match.group() == "\n" and not (following.isascii() and following.isalpha()):
        return "\\n"
    return code(match.group())


def unescape(text: str) -> str:
    return ESCAPED.sub(_unescape_one, text) if "\\" in text else text


def _unescape_one(match: re.Match[str]) -> str:
    digits: str | None = match.group(1)
    if digits is None:
        return "\n"
    if not digits:
        return ""
    point = int(digits, 16)
    return chr(point) if point <= 0x10FFFF else match.group()


def escape_first(line: str) -> str:
    """Hide the first character, for text that would otherwise read as a heading or a field."""
    return code(line[0]) + line[1:]


def escape_within(text: str) -> str:
    """Escaped for use inside parentheses: those that do not pair up are protected."""
    line = escape(text)
    lonely: list[int] = []
    opened: list[int] = []
    for index, character in enumerate(line):
        if character in OPENING:
            opened.append(index)
        elif character in CLOSING:
            if opened:
                opened.pop()
            else:
                lonely.append(index)
    hidden = {*lonely, *opened}
    return "".join(code(c) if i in hidden else c for i, c in enumerate(line)) if hidden else line


def closing(text: str) -> int | None:
    """Where the parenthesis that opens the text closes; None if it never does."""
    depth = 0
    for index, character in enumerate(text):
        if character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
            if depth == 0:
                return index
    return None


def nesting(text: str) -> int:
    """How many parentheses are still open at the end; a closing one too many does not go below zero."""
    depth = 0
    for character in text:
        if character in OPENING:
            depth += 1
        elif character in CLOSING and depth:
            depth -= 1
    return depth


# --- lines and marks -------------------------------------------------------------------------------

# Possessive, so that a megabyte of asterisks costs one pass and not one per asterisk.
D = r"[\s*_`]*+"
LEAD = r"[\s#>*_`•·+\-]*+"
COLON = r"[:：]"
# What decorates a label: 正确 is as often ✅ 正确.
SIGNS = "✅✔☑❌✗✘✖⚠❓\ufe0f "
SIGN = rf"[{SIGNS}]*+"
NUMBER = r"(?:[（(]\s*+(\d{1,9})\s*+[）)]\s*+[.．、]?|(\d{1,9})\s*+(?:[.．](?!\d)|[、）)]))"
FENCE = re.compile(r"\s*+(?:`{3,}+|~{3,}+)\s*+[\w+-]*+\s*+")
THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
THOUGHT = ("<think>", "</think>")
NAMED = rf"(?:原子(?:信息|资讯)|atom(?:ic\s(?:information|fact))?)\s?(\d{{1,9}})\s?{D}{COLON}"
ITEM = FormPattern(rf"{LEAD}(?:{NUMBER}|{NAMED})(.*)", re.DOTALL)
MARKS = ("**", "__", "*", "_", "`")


def after_thinking(text: str) -> str:
    """What a model said after thinking aloud: its drafts are not its answer."""
    thinking = THINKING.match(text)
    return text[thinking.end() :] if thinking else text


def lines_of(text: str) -> list[str]:
    """The lines that may carry structure: no fences, no thinking aloud, one kind of line end."""
    text = after_thinking(text).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return [line.rstrip() for line in _without_thoughts(text.split("\n")) if not FENCE.fullmatch(line)]


def _without_thoughts(lines: list[str]) -> Iterator[str]:
    """Where a text holds several transcripts, each may have thoughts before it; one that never ends hides nothing."""
    ends = [index for index, line in enumerate(lines) if line.strip() == THOUGHT[1]]
    hidden = -1
    for index, line in enumerate(lines):
        if index > hidden and ends and line.strip() == THOUGHT[0]:
            later = bisect_right(ends, index)
            hidden = ends[later] if later < len(ends) else hidden
        if index > hidden:
            yield line


def undecorated(value: str) -> str:
    """Without the marks around the whole value, or left over at its ends; `answer` inside prose keeps its own."""
    value = value.strip()
    while mark := next((mark for mark in MARKS if _is_loose(mark, value)), None):
        value = value.removeprefix(mark).removesuffix(mark).strip()
    return value


def _is_loose(mark: str, value: str) -> bool:
    starts, ends = value.startswith(mark), value.endswith(mark)
    if not (starts or ends):
        return False
    count = value.count(mark)
    return count % 2 == 1 if starts != ends else count <= 2


def item_of(line: str) -> tuple[int, str] | None:
    """The number and the text of a list item in the usual styles: `1.` `(1).` `（1）` `1、` `原子信息1：`."""
    match = ITEM.fullmatch(line)
    if not match:
        return None
    return int(match.word(1) or match.word(2) or match.word(3)), undecorated(match[4])


# --- lines the seeds do not have -------------------------------------------------------------------

SOURCES: dict[EvidenceSource, str] = {
    "reference": "参考",
    "inference": "推理",
    "own_knowledge": "自身知识",
    "answer": "回答",
}
EVIDENCE = FormPattern(r"\s*依据[:：](参考|推理|自身知识|回答)(?:\[(-?\d{1,9})\])?“(.*)”（([已未])核对）")
CAUSE = FormPattern(r"\s*因果[:：]本条是第(-?\d{1,9})条的原因")
FLAGS = FormPattern(r"\s*标记[:：](.*)")
LIST_MARK = "、"
TRADITIONAL = str.maketrans("据参识对条标记", "據參識對條標記")


def evidence_line(evidence: Evidence, script: Mapping[int, int] | None = None) -> str:
    """Passages are counted from 1, as the seeds number them. `script` may turn the form's words Traditional."""
    place = "" if evidence.reference is None else f"[{evidence.reference + 1}]"
    quote = escape(evidence.quote) if evidence.quote else ""
    mark = "已" if evidence.verified else "未"
    words, check = f"依据：{SOURCES[evidence.source]}", f"（{mark}核对）"
    return f"{words.translate(script or {})}{place}“{quote}”{check.translate(script or {})}"


def read_evidence(line: str) -> Evidence | None:
    match = EVIDENCE.fullmatch(line)
    if not match:
        return None
    return Evidence(
        reference=int(match.word(2)) - 1 if match.has(2) else None,
        quote=unescape(match[3]),
        verified=match.word(4) == "已",
        source=next(source for source, name in SOURCES.items() if name == match.word(1)),
    )


def cause_line(effect: int) -> str:
    return f"因果：本条是第{effect}条的原因"


def read_cause(line: str) -> int | None:
    match = CAUSE.fullmatch(line)
    return int(match.word(1)) if match else None


KINDS = {"statistic": "统计", "specification": "规格", "date": "日期", "political_date": "政治日期"}
DIFFERENCE = FormPattern(rf"\s*数值[:：]({'|'.join(KINDS.values())})，所述“([^“”]*+)”，资料“([^“”]*+)”")
KIND_WORDS = str.maketrans("统计规数资", "統計規數資")


def difference_line(difference: ValueDifference, *, traditional: bool = False) -> str:
    """The claimed and the stated value, with the kind of value they are."""
    words, passage = f"数值：{KINDS[difference.kind]}，所述", "，资料"
    if traditional:
        words, passage = words.translate(KIND_WORDS), passage.translate(KIND_WORDS)
    claimed, stated = (escape(text, also="“”") for text in (difference.claimed, difference.stated))
    return f"{words}“{claimed}”{passage}“{stated}”"


def read_difference(line: str) -> ValueDifference | None:
    match = DIFFERENCE.fullmatch(line)
    if not match:
        return None
    kind = next(kind for kind, name in KINDS.items() if match.word(1) == name)
    return ValueDifference.model_validate({"kind": kind, "claimed": unescape(match[2]), "stated": unescape(match[3])})


def flags_text(flags: Iterable[str]) -> str:
    return LIST_MARK.join(escape(flag, also=LIST_MARK + OPENING + CLOSING) for flag in flags)


def flags_line(flags: Iterable[str], script: Mapping[int, int] | None = None) -> str:
    return f"{'标记：'.translate(script or {})}{flags_text(flags)}"


def split_flags(text: str) -> tuple[str, ...]:
    return tuple(unescape(flag.strip()) for flag in text.split(LIST_MARK) if flag.strip())


def read_flags(line: str) -> tuple[str, ...] | None:
    match = FLAGS.fullmatch(line)
    return split_flags(match[1]) if match else None


# --- verdicts --------------------------------------------------------------------------------------

FORGERY = "injection_suspected"


def with_flags(flags: Sequence[str], *more: str) -> tuple[str, ...]:
    """The flags as stated, then those that reading adds and that are not there yet."""
    return (*flags, *(flag for flag in dict.fromkeys(more) if flag not in flags))


class Reading(NamedTuple):
    """The content of a transcript, before it becomes a verdict."""

    items: tuple[AnyItem, ...]
    scores: Scores
    flags: tuple[str, ...] = ()
    notes: Mapping[str, Any] = {}
    stated: Mapping[str, float] = {}
    read_anything: bool = True
    incomplete: bool = False
    # Whether it stands inside another transcript, so that a judged text may have written it.
    suspect: bool = False


def verdict_of(reading: Reading, *, id: str, protocol: str) -> Verdict:
    status = _status(reading)
    if status == "judged" and reading.suspect:
        status, reading = "partial", reading._replace(flags=with_flags(reading.flags, FORGERY))
    return Verdict(
        id=id,
        protocol=protocol,
        status=status,
        scores=reading.scores,
        stated=reading.stated,
        items=reading.items,
        flags=with_flags(reading.flags, *(flag for item in reading.items for flag in item.flags)),
        judge="transcript",
        notes=reading.notes,
    )


def _status(reading: Reading) -> Status:
    open_items = [_is_open(item) for item in reading.items]
    if not reading.read_anything or (open_items and all(open_items)):
        return "failed"
    return "partial" if any(open_items) or reading.incomplete else "judged"


def _is_open(item: AnyItem) -> bool:
    labels: tuple[Any, ...] = tuple(getattr(item, name, None) for name in ("label", "on_topic", "support"))
    return "unjudged" in labels


ROUNDED = 0.005


class Totals:
    """The totals a transcript states. They are compared with the computed ones and never replace them."""

    def __init__(self) -> None:
        self.values: dict[str, list[float | None]] = {}

    def add(self, name: str, value: float | None) -> None:
        """One statement; None where what stands there is no number of the scale."""
        self.values.setdefault(name, []).append(value)

    def beside(self, scores: Scores) -> tuple[dict[str, float], tuple[str, ...]]:
        """The totals that the labels do not give, and the flag where one contradicts what they do give."""
        stated: dict[str, float] = {}
        differs = False
        for name, values in self.values.items():
            computed = scores.get(name)
            other = [v for v in values if v is not None and (computed is None or abs(v - computed) > ROUNDED)]
            if other:
                stated[name] = other[-1]
                differs = differs or computed is not None
        return stated, ("stated_total_differs",) if differs else ()
