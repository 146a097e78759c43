"""Going through a `grounded` transcript line by line: which check a line is about, its score, the stated totals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.protocols.transcripts.lines import (
    COLON,
    LEAD,
    NUMBER,
    D,
    Totals,
    code,
    read_flags,
    undecorated,
    unescape,
)
from steelyard.protocols.transcripts.tables import MarkdownTable, TableRow, columns_of, rows_of
from steelyard.records import Part

Group = Literal["relevance", "truthfulness"]
PartLabel = Literal["from_background", "benign_extension", "outside", "unjudged"]


class LineKind(NamedTuple):
    """One of the eight checks: its group, its name, the seed's words, and how else people write them."""

    group: Group
    name: str
    words: str
    pattern: str


ASKED = r"(?:(?:is|does|whether)\s(?:(?:it|the\s(?:answer|reply)|there)\s)?(?:(?:is|are)\s)?)?"
FALLBACK = rf"(?:是否(?:为|是|属于)?兜底(?:回复)?|{ASKED}(?:not\s)?(?:a\s)?fall-?back(?:\s(?:reply|response|answer))?)"
KINDS: tuple[LineKind, ...] = (
    LineKind(
        "relevance",
        "from_background",
        "是否来自Background",
        rf"(?:(?:是否)?来自于?\s?\$?(?:background|背景(?:信息|资料|知识)?)\$?|{ASKED}(?:comes?\s)?from\s(?:the\s)?\$?background\$?)",
    ),
    LineKind("relevance", "on_topic", "是否偏题", rf"(?:(?:是否)?(?:偏|离|跑)题|{ASKED}o(?:n|ff)[-\s]topic)"),
    LineKind(
        "relevance",
        "answers_question",
        "是否回答问题",
        rf"(?:(?:是否)?(?:直接)?回答了?问题|{ASKED}(?:directly\s)?answers?\sthe\squestion)",
    ),
    LineKind(
        "relevance", "complete", "是否完整", rf"(?:(?:回答|答案)?是否完整(?:回答(?:问题)?)?|{ASKED}complete(?:ness)?)"
    ),
    LineKind("relevance", "not_fallback", "是否是兜底回复", FALLBACK),
    LineKind(
        "truthfulness",
        "conclusion_correct",
        "是否结论正确",
        r"(?:(?:是否)?结论(?:是否)?正确|(?:(?:is|whether)\sthe\s)?conclusion\s(?:is\s)?correct(?:ness)?|correct\sconclusion)",
    ),
    LineKind(
        "truthfulness",
        "no_fallacy",
        "是否逻辑谬误",
        rf"(?:(?:是否)?(?:存在|有|无)?逻辑谬误|{ASKED}(?:(?:any|no|a)\s)?logical\sfallac(?:y|ies))",
    ),
    LineKind("truthfulness", "not_fallback", "是否是兜底回复", FALLBACK),
)
IDS = {(kind.group, kind.name): id for id, kind in enumerate(KINDS, start=1)}
TITLES: dict[Group, str] = {"relevance": "相关性", "truthfulness": "真实性"}
PARTS: dict[PartLabel, str] = {
    "from_background": "来自背景",
    "benign_extension": "无害延伸",
    "outside": "背景之外",
    "unjudged": "未判定",
}
OPEN = "，未判定。"

# --- lines -----------------------------------------------------------------------------------------

ORDINAL = rf"(?:[一二三四五]、|{NUMBER}|step\s?\d\s?{COLON}?)?"
EVALUATION = r"(?:评价|检查|检测|评分|评估|判断)"
EVALUATED = r"\s(?:evaluation|check|assessment|scoring|judge?ment)"
HEADINGS: dict[str, FormPattern] = {
    "own_answer": FormPattern(
        rf"{LEAD}{ORDINAL}{D}[【\[]?(?:回答问题|(?:my\s|own\s)?answer(?:ing)?(?:\sto)?\sthe\squestion|(?:my|own)\sanswer)"
        rf"[】\]]?{D}(?:{COLON}{D}(.*))?"
    ),
    "relevance": FormPattern(
        rf"{LEAD}{ORDINAL}{D}[【\[]?(?:相关性{EVALUATION}|relevance{EVALUATED})[】\]]?{D}{COLON}?{D}"
    ),
    "truthfulness": FormPattern(
        rf"{LEAD}{ORDINAL}{D}[【\[]?(?:真实性{EVALUATION}|truthfulness(?:{EVALUATED})?)[】\]]?{D}{COLON}?{D}"
    ),
}
CHECKS = [
    (kind, FormPattern(rf"{LEAD}{NUMBER}?{D}{kind.pattern}{D}(?:[？?]{D}{COLON}?|{COLON}|$)(.*)")) for kind in KINDS
]
GROUP_NAME = r"(相关性|真实性|准确性|relevance|truthfulness|accuracy)"
SCORE_NAME = r"\s?总?(?:得分|分数|评分|score)"
TOTAL_OF = GROUP_NAME + SCORE_NAME
IS = r"(?:[:：为是]|is\b)?"
IN_BRACES = (
    rf"{GROUP_NAME}(?:{SCORE_NAME})?{D}{IS}{D}\{{{{1,2}}\s*+([^{{}}\s]{{1,12}})\s*+\}}{{1,2}}分?[\s*_`。.，,；;]*+"
)
UNBRACED = rf"{TOTAL_OF}{D}{IS}{D}[【\[（(]?\s?(-?[01])(?![\d.]\d)\s?[】\]）)]?{D}分?[\s*_`。.，,；;]*+"
TOTAL = FormPattern(rf"{LEAD}(?:(?:因此|so|therefore){D}[，,]?{D})?(?:the\s)?{IN_BRACES}")
# Without braces it may as well be the score of the check it follows.
PLAIN_TOTAL = FormPattern(rf"{LEAD}(?:the\s)?{UNBRACED}")
# A summary may talk before it states its total; stated in another way, it still ends the check above it.
SUMMARY = FormPattern(rf"{LEAD}(?:总(?:结|分|体)|综上|最终|(?:in\s)?summary|overall|in\sconclusion|final)")
SUMMED = FormPattern(rf"{IN_BRACES}$")
PLAIN_SUMMED = FormPattern(rf"{UNBRACED}$")
TOTALS = {
    "相关性": "relevance", "真实性": "truthfulness", "准确性": "accuracy",
    "relevance": "relevance", "truthfulness": "truthfulness", "accuracy": "accuracy",
}  # fmt: skip
POINTS = r"(-?[0-9.]{1,4}?)"
SCORE = FormPattern(
    rf"(?:(?:相关性|真实性|relevance\s|truthfulness\s){D})?(?:得分|分数|[打评]分|得|\bscored?|\bscores|\bgets){D}{IS}{D}"
    rf"(?:[{{【\[]{{1,2}}\s?{POINTS}\s?[}}】\]]{{1,2}}|（\s?{POINTS}\s?）|{POINTS}){D}(?:分|points?)?[\s*_`。.；;！!]*+"
    rf"|([01])\s?分[\s*_`。.；;！!]*+"
)
SCORE_START = FormPattern(
    r"(?:(?:相关性|真实性|relevance\s|truthfulness\s)[\s*_`]*+)?(?:得分|分数|[打评]分|得|\bscored?|\bscores|\bgets)|(?<![\d.])[01]\s?分"
)
SCORE_WINDOW = 60
GROUP_SCORE = FormPattern(rf"{LEAD}(?:the\s)?{TOTAL_OF}")
# What the instructions say of a check: a rule for judging, not a judgement.
RULE = FormPattern(r"\s*(?:检查|判断)\s?(?:答案|回答|回复|\$?answer)|\s*check\s(?:whether|if|that)\b")
BULLET = re.compile(r"^[-*•·+]\s+")
LINK = FormPattern(r"[，,；;。]?\s?(?:因此|所以|故|因而|(?:so|hence|thus|therefore)\b)?[，,]?\s?(?:the\s)?")
LONGEST_LINK = 18
NAME = FormPattern(r"\s+名称[:：](.*)")
PART = FormPattern(rf"\s+句子·({'|'.join(PARTS.values())})[:：](.*)")
PART_REASON = FormPattern(r"\s+句子理由[:：](.*)")
PART_LABELS: dict[str, PartLabel] = {word: label for label, word in PARTS.items()}


def check_of(line: str) -> bool:
    """Whether the line names a check."""
    return any(form.fullmatch(line) for _, form in CHECKS)


@dataclass
class CheckMention:
    """What one mention of a check says; its text may run over several lines."""

    lines: list[str]
    text: str | None = None
    parts: list[Part] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    paused: bool = False
    cell: tuple[str, str] | None = None
    stray: list[str] = field(default_factory=list)

    def read(self) -> tuple[Literal[0, 1, "unjudged"], str, tuple[str, ...]]:
        """The label, the reason and what was odd; two lines with different scores leave it open."""
        if self.cell is not None:
            reason, points = self.cell
            return _points(points, unescape(reason))
        label, reason, flags = _read_score("\n".join(self.lines))
        scores = {_read_score(line)[0] for line in (*self.lines, *self.stray) if is_scored(line)}
        return ("unjudged", reason, ("blocks_conflict",)) if scores - {label} else (label, reason, flags)


def heading_of(line: str) -> tuple[str, str] | None:
    for name, form in HEADINGS.items():
        if match := form.fullmatch(line):
            return name, match.last if name == "own_answer" else ""
    return None


class GroundedReader:
    """Goes through the lines once, knowing which section and which check it is in."""

    def __init__(self) -> None:
        self.said: dict[tuple[str, str], list[CheckMention]] = {}
        self.totals = Totals()
        self.own_answer: list[str] = []
        self.flags: tuple[str, ...] = ()
        self.suspect = False
        self._section: str | None = None
        self._group: Group | None = None
        self._check: CheckMention | None = None
        # The check that was read last and its group, also after its text ended; and what may be its total or its score.
        self._last: tuple[Group, CheckMention] | None = None
        self._summed: tuple[Group, CheckMention, str] | None = None
        self._ended = False

    @property
    def finished(self) -> bool:
        return not self.said or len(self.said) == len(KINDS)

    def begins_another(self, part: str | MarkdownTable) -> bool:
        """Whether this line opens another transcript: an earlier section, after the last total or a later section."""
        if isinstance(part, MarkdownTable):
            return False
        if self._section == "own_answer":
            return False
        if heading := heading_of(part):
            judged = {group for group, _ in self.said}
            if self._ended:
                return bool(self.said or len(self.totals.values) > 1)
            if heading[0] == "own_answer":
                return "truthfulness" in judged and "#" in part
            return heading[0] == "relevance" and "truthfulness" in judged
        total = self._total(part) if not self.said else None
        return total is not None and total[0] in self.totals.values

    def take(self, part: str | MarkdownTable) -> None:
        if isinstance(part, MarkdownTable):
            if self._section == "own_answer":
                self.own_answer += [line.strip() for line in part.lines]
            else:
                self._take_table(part)
        elif (heading := heading_of(part)) and self._isheading_of(part, *heading):
            self._section, self._check, self._group = heading[0], None, None
            if heading[1]:
                self.own_answer.append(heading[1])
        elif self._section == "own_answer":
            self.own_answer.append(part.strip())
        elif total := self._total(part):
            self._take_summary(part, total[0])
            self.totals.add(*total)
            self._check, self._ended = None, self._ended or total[0] == "accuracy"
        elif SUMMARY.match(part):
            self._take_summary(part, None)
            self._check = None
        elif not self._takes_check(part):
            self._detail(part)

    def _take_summary(self, line: str, group: str | None) -> None:
        """A summary without braces may be the end of the check above; the next check or total of its group tells."""
        if self._summed and group == self._summed[0]:
            self._summed[1].stray.append(self._summed[2])
        self._summed = (*self._last, line) if self._last and is_scored(line) and not SUMMED.search(line) else None

    def _isheading_of(self, line: str, name: str, value: str) -> bool:
        """`回答问题` also names a check; it is a heading before anything is judged."""
        if name != "own_answer" or self._section is None:
            return True
        return not value and not self.said and "#" in line

    def _total(self, line: str) -> tuple[str, int | None] | None:
        if SUMMARY.match(line):
            total = SUMMED.search(line) or PLAIN_SUMMED.search(line)
        else:
            total = TOTAL.fullmatch(line) or (PLAIN_TOTAL.fullmatch(line) if self._check is None else None)
        if total is None:
            return None
        return TOTALS[total.word(1).lower()], {"0": 0, "1": 1}.get(total.word(2))

    def _takes_check(self, line: str) -> bool:
        for kind, pattern in CHECKS:
            # The fallback check has the same words in both groups; the section or the check before tells which it is.
            if kind.name == "not_fallback" and kind.group != (self._group or self._section):
                continue
            if match := pattern.fullmatch(line):
                self._check, self._group = CheckMention([match.last]), kind.group
                if self._summed and self._summed[0] == kind.group:
                    self._summed[1].stray.append(self._summed[2])
                self._last, self._summed = (kind.group, self._check), None
                if not RULE.match(match.last):
                    self.said.setdefault((kind.group, kind.name), []).append(self._check)
                return True
        return False

    def _take_table(self, table: MarkdownTable) -> None:
        """Each row is a check, or one of the totals."""
        for row in table_rows(table):
            score = CELL_SCORE.fullmatch(row["score"]) if row else None
            points = score.word(1) if score else ""
            if row is None:
                continue
            if total := CELL_TOTAL.fullmatch(row["check"]):
                self.totals.add(TOTALS[total.word(1).lower()], {"0": 0, "1": 1}.get(points))
                continue
            group = next((name for name, form in GROUPS if form.fullmatch(row["group"])), None)
            self._group = group or self._group
            if self._takes_check(row["check"]) and self._check:
                self._check.cell = row["reason"], points
            self._check = None

    def _detail(self, line: str) -> None:
        check = self._check
        if check is None:
            flags = read_flags(line) if self._ended else None
            self.flags = self.flags if flags is None else flags
            if flags is None and self._last and is_scored(line):
                # After an empty line anything may be said about scores; the form's own words are still a score.
                goes_on = not self._last[1].paused or PLAIN_SUMMED.search(line)
                self._last[1].stray += [line] if goes_on else []
        elif not line.strip():
            # A check without a score may go on after an empty line; the score of its whole group is not its own.
            self._check = check if _read_score("\n".join(check.lines))[2] == ("score_missing",) else None
            check.paused = True
        elif check.paused and GROUP_SCORE.match(line):
            self._check = None
        elif self._takes_field(check, line):
            # Our own forms hide a score at the end of a field, so this one belongs to a text that went on.
            check.stray += [line] if is_scored(line) else []
        else:
            check.lines.append(BULLET.sub("", line.strip()))

    def _takes_field(self, check: CheckMention, line: str) -> bool:
        if name := NAME.fullmatch(line):
            check.text = unescape(name[1])
        elif part := PART.fullmatch(line):
            check.parts.append(Part(text=unescape(part[2]), label=PART_LABELS[part.word(1)]))
        elif (reason := PART_REASON.fullmatch(line)) and check.parts:
            check.parts[-1] = check.parts[-1].model_copy(update={"reason": unescape(reason[1])})
        elif (flags := read_flags(line)) is not None:
            check.flags = flags
        else:
            return False
        return True


def is_scored(line: str) -> bool:
    """Whether the line ends with a score of the scale."""
    return _read_score(line)[0] != "unjudged"


def hidden(line: str) -> str:
    """A field whose text ends like a score, with its last character escaped."""
    return line[:-1] + code(line[-1]) if is_scored(line) else line


def _read_score(value: str) -> tuple[Literal[0, 1, "unjudged"], str, tuple[str, ...]]:
    """The 0 or 1 a check ends with, and the reason before it."""
    if value.endswith(OPEN):
        return "unjudged", unescape(value.removesuffix(OPEN)), ()
    begin = max(0, len(value) - SCORE_WINDOW)
    for start in SCORE_START.finditer(value, begin):
        if score := SCORE.fullmatch(value, start.start):
            reason = unescape(undecorated(_without_link(value[: start.start])))
            return _points(score.first(), reason)
    return _points("", unescape(undecorated(value)))


def _points(points: str, reason: str) -> tuple[Literal[0, 1, "unjudged"], str, tuple[str, ...]]:
    if points in ("0", "1"):
        return (1 if points == "1" else 0), reason, ()
    return "unjudged", reason, ("score_out_of_range",) if points else ("score_missing",)


def _without_link(reason: str) -> str:
    """The reason without the one `，因此` that leads over to the score."""
    for start in range(max(0, len(reason) - LONGEST_LINK), len(reason)):
        if LINK.fullmatch(reason, start):
            return reason[:start]
    return reason


# --- tables ----------------------------------------------------------------------------------------

COLUMNS = {
    "check": FormPattern(r"(?:检查|评价|评分|评估)?(?:项目?|内容|维度|细则|点)|check(?:\sitem)?|item|criterion|aspect"),
    "score": FormPattern(r"得分|分数|打分|评分|结果|score|result"),
    "reason": FormPattern(r"(?:评价)?(?:理由|说明|分析|原因|依据)|reason(?:ing)?|explanation|analysis"),
    "group": FormPattern(r"类别|维度类别|分类|group|category|dimension"),
}
GROUPS: tuple[tuple[Group, FormPattern], ...] = (
    ("relevance", FormPattern(rf"相关性(?:{EVALUATION})?|relevance")),
    ("truthfulness", FormPattern(rf"真实性(?:{EVALUATION})?|truthfulness")),
)
CELL_SCORE = FormPattern(r"(?:得分?|score)?[:：]?\s?[【\[（({]{0,2}\s?(-?[\d.]{1,4})\s?[】\]）)}]{0,2}\s?分?")
CELL_TOTAL = FormPattern(rf"(?:总结|summary)?{D}{COLON}?{D}{TOTAL_OF}")


def table_rows(table: MarkdownTable) -> Iterator[TableRow | None]:
    """The rows of a table of checks; nothing for any other table."""
    columns = columns_of(table, COLUMNS)
    if {"check", "score"} <= columns.keys():
        yield from rows_of(table, columns)
