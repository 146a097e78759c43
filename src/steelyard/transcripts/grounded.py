"""The transcript of `grounded`: 回答问题 → 相关性评价 → 真实性评价, with three totals in {{}}.

A check is known by its words, never by its number, and its score is the one its line ends with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from steelyard.records import Check, Part, Verdict
from steelyard.scoring import grounded_scores
from steelyard.transcripts.lines import (
    COLON,
    FENCE,
    LEAD,
    NUMBER,
    D,
    Reading,
    compared,
    escape,
    escape_first,
    flags_line,
    last_group,
    lines_of,
    more_than_one,
    read_flags,
    undecorated,
    unescape,
    with_flags,
)
from steelyard.wording import say

Group = Literal["relevance", "truthfulness"]
PartLabel = Literal["from_background", "benign_extension", "outside", "unjudged"]


class Kind(NamedTuple):
    """One of the eight checks: its group, its name, the seed's words, and how else people write them."""

    group: Group
    name: str
    words: str
    pattern: str


FALLBACK = r"是否(?:[为為是]|[属屬][于於])?兜底(?:回[复復覆])?"
KINDS: tuple[Kind, ...] = (
    Kind("relevance", "from_background", "是否来自Background", r"是否[来來]自于?於?\s?\$?(?:[Bb]ackground|背景)\$?"),
    Kind("relevance", "on_topic", "是否偏题", r"是否(?:偏|[离離]|跑)[题題]"),
    Kind("relevance", "answers_question", "是否回答问题", r"(?:是否)?(?:直接)?回答了?[问問][题題]"),
    Kind("relevance", "complete", "是否完整", r"(?:回答|答案)?是否完整(?:回答)?"),
    Kind("relevance", "not_fallback", "是否是兜底回复", FALLBACK),
    Kind("truthfulness", "conclusion_correct", "是否结论正确", r"(?:是否)?[结結][论論](?:是否)?正[确確]"),
    Kind("truthfulness", "no_fallacy", "是否逻辑谬误", r"(?:是否)?(?:存在|有)?[逻邏][辑輯][谬謬][误誤]"),
    Kind("truthfulness", "not_fallback", "是否是兜底回复", FALLBACK),
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

# --- writing ---------------------------------------------------------------------------------------


def render(verdict: Verdict) -> str:
    checks = [item for item in verdict.items if isinstance(item, Check)]
    totals = {name: "未知" if total is None else total for name, total in grounded_scores(checks).items()}
    out = ["## 回答问题：", *_body(str(verdict.notes.get("own_answer") or "")), ""]
    for group, title in TITLES.items():
        out.append(f"## {title}评价：")
        own = [check for check in checks if check.group == group]
        out += [line for number, check in enumerate(own, start=1) for line in _check_lines(number, check)]
        out += [f"总结：{title}得分: {{{{{totals[group]}}}}}", ""]
    out.append(f"综上，准确性得分: {{{{{totals['accuracy']}}}}}")
    if verdict.flags:
        out.append(flags_line(verdict.flags))
    return "\n".join(out) + "\n"


def _body(text: str) -> list[str]:
    """Several lines stay several lines; one that would open a section is disguised."""
    lines = [escape(line) for line in text.split("\n")] if text else []
    return [escape_first(line) if _heading(line) or FENCE.fullmatch(line) else line for line in lines]


def _check_lines(number: int, check: Check) -> Iterator[str]:
    kind = KINDS[IDS[check.group, check.name] - 1]  # type: ignore[index]
    title = TITLES[kind.group]
    ending = OPEN if check.label == "unjudged" else f"，因此{title}得分为{check.label}。"
    yield f"({number}).{kind.words}：{escape(check.reason) if check.reason else ''}{ending}"
    if check.text != _default_text(check.name):
        yield f"    名称：{escape(check.text)}"
    for part in check.parts:
        yield f"    句子·{PARTS[part.label]}：{escape(part.text)}"
        if part.reason:
            yield f"    句子理由：{escape(part.reason)}"
    if check.flags:
        yield f"    {flags_line(check.flags)}"


def _default_text(name: str) -> str:
    return say("zh-Hans", f"check.{name}")


# --- reading ---------------------------------------------------------------------------------------

ORDINAL = rf"(?:[一二三四五]、|{NUMBER})?"
EVALUATION = r"(?:[评評][价價]|[检檢][查測测]|[评評]分|[评評]估|判[断斷])"
HEADINGS: dict[str, re.Pattern[str]] = {
    "own_answer": re.compile(rf"{LEAD}{ORDINAL}{D}回答[问問][题題]{D}(?:{COLON}{D}(.*))?"),
    "relevance": re.compile(rf"{LEAD}{ORDINAL}{D}相[关關]性{EVALUATION}{D}{COLON}?{D}"),
    "truthfulness": re.compile(rf"{LEAD}{ORDINAL}{D}真[实實]性{EVALUATION}{D}{COLON}?{D}"),
}
CHECKS = [(kind, re.compile(rf"{LEAD}{NUMBER}?{D}{kind.pattern}{D}[？?]?{D}(?:{COLON}(.*))?")) for kind in KINDS]
IN_BRACES = (
    rf"(相[关關]性|真[实實]性|[准準][确確]性)[总總]?(?:得分|分[数數]){D}[:：为為是]?{D}"
    r"[{｛]{1,2}\s*+([^{}｛｝\s]{1,12})\s*+[}｝]{1,2}分?[\s*_`。.]*+"
)
TOTAL = re.compile(rf"{LEAD}(?:因此{D}[，,]?{D})?{IN_BRACES}")
# A summary may talk before it states its total; stated in another way, it still ends the check above it.
SUMMARY = re.compile(rf"{LEAD}(?:[总總](?:[结結]|分)|[综綜]上|最[终終])")
SUMMED = re.compile(rf"{IN_BRACES}$")
TOTALS = {"相": "relevance", "真": "truthfulness", "准": "accuracy", "準": "accuracy"}
SCORE = re.compile(
    rf"(?:(?:相[关關]性|真[实實]性){D})?(?:得分|分[数數]|得){D}[:：为為是]?{D}[{{｛【\[]{{0,2}}\s?([-−－]?[0-9０-９.]{{1,4}}?)\s?"
    r"[}｝】\]]{0,2}[\s*_`]*+分?[\s*_`。.；;！!]*+"
)
SCORE_START = re.compile(r"(?:(?:相[关關]性|真[实實]性)[\s*_`]*+)?(?:得分|分[数數]|得)")
SCORE_WINDOW = 60
GROUP_SCORE = re.compile(rf"{LEAD}(?:相[关關]性|真[实實]性|[准準][确確]性)[总總]?(?:得分|分[数數])")
BULLET = re.compile(r"^[-*•·+]\s+")
LINK = re.compile(r"[，,；;。]?\s?(?:因此|所以|故|因而)?[，,]?\s?")
NAME = re.compile(r"\s+名[称稱][:：](.*)")
PART = re.compile(rf"\s+句子·({'|'.join(PARTS.values())})[:：](.*)")
PART_REASON = re.compile(r"\s+句子理由[:：](.*)")
PART_LABELS: dict[str, PartLabel] = {word: label for label, word in PARTS.items()}
DIGITS = str.maketrans("０１", "01")


@dataclass
class Said:
    """What one mention of a check says; its text may run over several lines."""

    lines: list[str]
    text: str | None = None
    parts: list[Part] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    paused: bool = False


def _heading(line: str) -> tuple[str, str] | None:
    for name, pattern in HEADINGS.items():
        if match := pattern.fullmatch(line):
            return name, last_group(match) if name == "own_answer" else ""
    return None


def parse(text: str) -> Reading:
    reader = Reader()
    for line in lines_of(text):
        reader.take(line)
    checks = tuple(_check(kind, reader.said.get((kind.group, kind.name), [])) for kind in KINDS)
    scores = grounded_scores(checks)
    odd, notes = compared(reader.totals, scores)
    own_answer = "\n".join(reader.own_answer).strip("\n")
    if own_answer:
        notes["own_answer"] = unescape(own_answer)
    read_anything = bool(reader.said) or "stated" in notes
    return Reading(
        checks if read_anything else (),
        scores if read_anything else dict.fromkeys(scores),
        with_flags(reader.flags, *odd),
        notes,
        read_anything,
    )


class Reader:
    """Goes through the lines once, knowing which section and which check it is in."""

    def __init__(self) -> None:
        self.said: dict[tuple[str, str], list[Said]] = {}
        self.totals: dict[str, list[int | None]] = {}
        self.own_answer: list[str] = []
        self.flags: tuple[str, ...] = ()
        self._section: str | None = None
        self._check: Said | None = None
        self._ended = False

    def take(self, line: str) -> None:
        if (heading := _heading(line)) and not (self._section and (heading[1] or heading[0] == "own_answer")):
            if self._ended:
                raise more_than_one()
            self._section, self._check = heading[0], None
            if heading[1]:
                self.own_answer.append(heading[1])
            return
        if self._section == "own_answer":
            self.own_answer.append(line.strip())
            return
        summary = SUMMARY.match(line)
        if total := SUMMED.search(line) if summary else TOTAL.fullmatch(line):
            name = TOTALS[total[1][0]]
            self.totals.setdefault(name, []).append({"0": 0, "1": 1}.get(total[2].translate(DIGITS)))
            self._check, self._ended = None, name == "accuracy"
        elif summary:
            self._check = None
        elif not self._takes_check(line):
            self._detail(line)

    def _takes_check(self, line: str) -> bool:
        for kind, pattern in CHECKS:
            # The fallback check has the same words in both groups; the section tells which one is meant.
            if kind.name == "not_fallback" and kind.group != self._section:
                continue
            if match := pattern.fullmatch(line):
                self._check = Said([last_group(match)])
                self.said.setdefault((kind.group, kind.name), []).append(self._check)
                return True
        return False

    def _detail(self, line: str) -> None:
        check = self._check
        if check is None:
            flags = read_flags(line) if self._ended else None
            self.flags = self.flags if flags is None else flags
        elif not line.strip():
            # A check without a score may go on after an empty line; the score of its whole group is not its own.
            self._check = check if _read_score("\n".join(check.lines))[2] == ("score_missing",) else None
            check.paused = True
        elif check.paused and GROUP_SCORE.match(line):
            self._check = None
        elif name := NAME.fullmatch(line):
            check.text = unescape(name[1])
        elif part := PART.fullmatch(line):
            check.parts.append(Part(text=unescape(part[2]), label=PART_LABELS[part[1]]))
        elif (reason := PART_REASON.fullmatch(line)) and check.parts:
            check.parts[-1] = check.parts[-1].model_copy(update={"reason": unescape(reason[1])})
        elif (flags := read_flags(line)) is not None:
            check.flags = flags
        else:
            check.lines.append(BULLET.sub("", line.strip()))


def _check(kind: Kind, mentions: list[Said]) -> Check:
    readings = [_read_score("\n".join(said.lines)) for said in mentions]
    label, reason, flags = readings[0] if readings else ("unjudged", "", ("not_in_transcript",))
    if len({reading[0] for reading in readings}) > 1:
        label, flags = "unjudged", ("blocks_conflict",)
    first = mentions[0] if mentions else Said([])
    return Check(
        id=IDS[kind.group, kind.name],
        name=kind.name,
        group=kind.group,
        text=_default_text(kind.name) if first.text is None else first.text,
        label=label,
        reason=reason or (flags[0] if flags else ""),
        parts=tuple(first.parts),
        flags=with_flags(first.flags, *flags),
    )


def _read_score(value: str) -> tuple[Literal[0, 1, "unjudged"], str, tuple[str, ...]]:
    """The 0 or 1 a check ends with, and the reason before it."""
    if value.endswith(OPEN):
        return "unjudged", unescape(value.removesuffix(OPEN)), ()
    begin = max(0, len(value) - SCORE_WINDOW)
    for start in SCORE_START.finditer(value, begin):
        if score := SCORE.fullmatch(value, start.start()):
            reason = unescape(undecorated(_without_link(value[: start.start()])))
            points = score[1].translate(DIGITS)
            if points in ("0", "1"):
                return (1 if points == "1" else 0), reason, ()
            return "unjudged", reason, ("score_out_of_range",)
    return "unjudged", unescape(undecorated(value)), ("score_missing",)


def _without_link(reason: str) -> str:
    """The reason without the one `，因此` that leads over to the score."""
    for start in range(max(0, len(reason) - 6), len(reason)):
        if LINK.fullmatch(reason, start):
            return reason[:start]
    return reason
