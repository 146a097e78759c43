"""The transcript of `scorecard`. The seed has tables but no transcript; this one keeps its four sections and words.

Every item stands on a numbered line, its label on the line below; ratio and score end the section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from steelyard.records import AnyItem, Atom, Depth, Evidence, KeyPoint, Sentence, ValueDifference, Verdict
from steelyard.scoring import METRICS, Number, band_of_score, scorecard_scores, shallow
from steelyard.transcripts.lines import (
    COLON,
    LEAD,
    TRADITIONAL,
    D,
    Reading,
    cause_line,
    compared,
    difference_line,
    escape,
    evidence_line,
    flags_line,
    item_of,
    lines_of,
    more_than_one,
    read_cause,
    read_difference,
    read_evidence,
    read_flags,
    undecorated,
    unescape,
    with_flags,
)
from steelyard.transcripts.matching import Listed, Match
from steelyard.wording import band_description

# --- the form --------------------------------------------------------------------------------------


class Section(NamedTuple):
    """One metric: its heading, the name of its ratio, and the words of its labels."""

    heading: str
    ratio: str
    labels: Mapping[str, str]
    synonyms: Mapping[str, str]


OPEN = "未判定"
SECTIONS: dict[str, Section] = {
    "relevance": Section(
        "1️⃣ 相關性 (Relevance)",
        "貼題比例 p",
        {"on_topic": "On-Topic", "off_topic": "Off-Topic"},
        {"相關": "on_topic", "相关": "on_topic", "貼題": "on_topic", "不相關": "off_topic", "不相关": "off_topic",
         "離題": "off_topic", "离题": "off_topic"},
    ),
    "completeness": Section(
        "2️⃣ 完整性 (Completeness)",
        "命中率 q",
        {"covered": "Covered", "partial": "Partially", "missing": "Missing"},
        {"命中": "covered", "部分命中": "partial", "partiallycovered": "partial", "缺漏": "missing"},
    ),
    "accuracy": Section(
        "3️⃣ 準確性 (Accuracy)",
        "正確率 r",
        {"correct": "正確", "wrong": "錯誤", "undetermined": "無法判斷", "exempt": "無需判斷"},
        {"正确": "correct", "错误": "wrong", "无法判断": "undetermined", "无需判断": "exempt", "correct": "correct",
         "wrong": "wrong", "incorrect": "wrong"},
    ),
    "faithfulness": Section(
        "4️⃣ 忠誠度 (Faithfulness)",
        "支撐比例 f",
        {"supported": "Supported", "partial": "Partially Supported", "unsupported": "Unsupported",
         "no_claim": "無陳述"},
        {"支撐": "supported", "支撑": "supported", "不支撐": "unsupported", "不支撑": "unsupported",
         "部分支撐": "partial", "部分支撑": "partial", "无陈述": "no_claim"},
    ),
}  # fmt: skip
DEPTHS: dict[Depth, str] = {"deep": "深入", "adequate": "充分", "bare": "淺薄"}
DERIVED = "（推導）"

# --- writing ---------------------------------------------------------------------------------------


def render(verdict: Verdict) -> str:
    scores = _scores(verdict.items, verdict.flags)
    out: list[str] = []
    for metric, section in SECTIONS.items():
        out += [f"## {section.heading}", ""]
        for item in verdict.items:
            out += _item_lines(metric, item)
        out += [*_totals(metric, verdict.items, scores), ""]
    if summary := verdict.notes.get("summary"):
        out += [f"總結：{escape(str(summary))}"]
    if verdict.flags:
        out += [flags_line(verdict.flags, TRADITIONAL)]
    return "\n".join(out).rstrip("\n") + "\n"


def _scores(items: Sequence[AnyItem], flags: Sequence[str]) -> dict[str, Number]:
    return scorecard_scores(items, empty_answer="empty_answer" in flags, asked="no_question" not in flags)


def _item_lines(metric: str, item: AnyItem) -> Iterator[str]:
    label = METRICS[metric].read(item)
    if label is None:
        return
    word = SECTIONS[metric].labels.get(label, OPEN)
    depth = DEPTHS[item.depth] if isinstance(item, KeyPoint) and item.depth else ""
    derived = DERIVED if isinstance(item, KeyPoint) and item.keypoints_source == "derived" else ""
    yield f"{item.id}. {escape(item.text)}"
    yield f"   判定：【{word}】" + (f"，深度：【{depth}】" if depth else "") + derived
    # A sentence stands in two sections; what belongs to it as a whole is said in the second.
    if metric == "relevance":
        return
    if item.reason:
        yield f"   理由：{escape(item.reason)}"
    evidence = getattr(item, "evidence", None)
    if isinstance(evidence, Evidence):
        yield f"   {evidence_line(evidence, TRADITIONAL)}"
    if isinstance(item, Atom) and item.causal_of is not None:
        yield f"   {cause_line(item.causal_of).translate(TRADITIONAL)}"
    if isinstance(item, Atom) and item.difference is not None:
        yield f"   {difference_line(item.difference, traditional=True)}"
    if item.flags:
        yield f"   {flags_line(item.flags, TRADITIONAL)}"


def _totals(metric: str, items: Sequence[AnyItem], scores: Mapping[str, Number]) -> Iterator[str]:
    value = METRICS[metric].ratio(items)
    yield f"{SECTIONS[metric].ratio} = {'不適用' if value is None else value}"
    score = scores[metric]
    if score is None:
        yield "分數：不適用"
        return
    band = band_of_score(int(score))
    cap = "，說明淺薄，上限 89 分" if metric == "completeness" and shallow(items) else ""
    yield f"分數：{score} 分（{10 * band} - {100 if band == 9 else 10 * band + 9} 分{cap}）"
    if metric == "faithfulness":
        yield f"計入部分支撐的分數：{scores['faithfulness_soft']} 分"
    yield f"等級說明：{band_description(metric, band, 'zh-Hant')}"


# --- reading ---------------------------------------------------------------------------------------

TITLES = {
    "relevance": r"相[关關]性|Relevance",
    "completeness": r"完整性|Completeness",
    "accuracy": r"[准準][确確]性|Accuracy",
    "faithfulness": r"忠[诚誠][度性]|忠[实實][度性]|Faithfulness",
}
# A plain `1.` opens an item, so only keycaps, Chinese ordinals and Markdown headings may number a section.
MARK = r"(?:[1-4]\ufe0f?\u20e3|[一二三四]、|(?<=[#*\s])[1-4][.、])?"
HEADINGS = {
    metric: re.compile(rf"{LEAD}{MARK}{D}(?:{words}){D}(?:[（(]{D}[A-Za-z]{{1,20}}{D}[）)])?{D}{COLON}?{D}")
    for metric, words in TITLES.items()
}
LABEL = re.compile(
    rf"{LEAD}判定{D}{COLON}{D}【\s*+([^【】]{{1,24}})】(?:[，,]\s?深度{COLON}\s?【\s*+([^【】]{{1,8}})】)?(（推[導导]）)?[\s。.]*+"
)
REASON = re.compile(rf"{LEAD}理由{D}{COLON}(.*)")
STATED = re.compile(rf"{LEAD}分[數数]{D}{COLON}{D}(\d{{1,3}}){D}分.*")
STATED_SOFT = re.compile(rf"{LEAD}[計计]入部分支[撐撑]的分[數数]{D}{COLON}{D}(\d{{1,3}}){D}分.*")
SUMMARY = re.compile(rf"{LEAD}[總总][結结]{D}{COLON}(.*)")
WORDS = {
    metric: {
        **{word.lower().replace(" ", ""): label for label, word in section.labels.items()},
        **section.synonyms,
        OPEN: "unjudged",
    }
    for metric, section in SECTIONS.items()
}
DEPTH_OF: dict[str | None, Depth] = {**{word: depth for depth, word in DEPTHS.items()}, "浅薄": "bare"}


RATIO = re.compile(rf"{LEAD}(?:貼題比例|贴题比例|命中率|正[確确]率|支[撐撑]比例)\b.*|{LEAD}分[數数]{D}{COLON}.*")
KIND_OF = {
    "relevance": "sentence",
    "completeness": "key_point",
    "accuracy": "atom",
    "faithfulness": "sentence",
}


@dataclass
class Entry:
    """What one section says about one item."""

    words: list[str] = field(default_factory=list)
    depth: Depth | None = None
    derived: bool = False
    reason: str | None = None
    evidence: Evidence | None = None
    causal_of: int | None = None
    difference: ValueDifference | None = None
    flags: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()


class Reader:
    """Goes through the lines once, knowing which section and which item it is in."""

    def __init__(self) -> None:
        self.lists = {"sentence": Listed(), "key_point": Listed(), "atom": Listed()}
        self.entries: dict[str, dict[int, Entry]] = {metric: {} for metric in SECTIONS}
        self.stated: dict[str, list[int | None]] = {}
        self.flags: tuple[str, ...] = ()
        self.summary: str | None = None
        self.unmatched = 0
        self._metric: str | None = None
        self._entry: Entry | None = None

    def take(self, line: str) -> None:
        if opened := heading_of(line):
            if opened != self._metric and self.entries[opened]:
                raise more_than_one()
            self._metric, self._entry = opened, None
        elif self._metric and (item := item_of(line)):
            self._open(self._metric, *item)
        elif self._metric and RATIO.fullmatch(line):
            self._entry = None
            if stated := STATED.fullmatch(line):
                self.stated.setdefault(self._metric, []).append(int(stated[1]))
        elif self._entry:
            self._detail(self._entry, line)
        elif soft := STATED_SOFT.fullmatch(line):
            self.stated.setdefault("faithfulness_soft", []).append(int(soft[1]))
        elif summary := SUMMARY.fullmatch(line):
            self.summary = unescape(undecorated(summary[1]))
        elif self._metric and (flags := read_flags(line)) is not None:
            self.flags = flags

    def _open(self, metric: str, id: int, raw: str) -> None:
        text, listed = unescape(raw), self.lists[KIND_OF[metric]]
        self._entry = None
        # Sentences are listed by whichever of their two sections comes first.
        other = {"relevance": "faithfulness", "faithfulness": "relevance"}.get(metric)
        lists = other is None or not self.entries[other]
        match = Match(listed.add(id, text)) if lists else listed.find(id, text)
        if match is None:
            self.unmatched += 1
            return
        self._entry = self.entries[metric].setdefault(match.id, Entry())
        self._entry.odd += match.flags

    def _detail(self, entry: Entry, line: str) -> None:
        if label := LABEL.fullmatch(line):
            entry.words.append(label[1])
            entry.depth = DEPTH_OF.get(label[2], entry.depth)
            entry.derived = entry.derived or bool(label[3])
        elif reason := REASON.fullmatch(line):
            entry.reason = unescape(undecorated(reason[1]))
        elif (evidence := read_evidence(line)) is not None:
            entry.evidence = evidence
        elif (effect := read_cause(line)) is not None:
            entry.causal_of = effect
        elif (difference := read_difference(line)) is not None:
            entry.difference = difference
        elif (flags := read_flags(line)) is not None:
            entry.flags = flags


def heading_of(line: str) -> str | None:
    return next((metric for metric, pattern in HEADINGS.items() if pattern.fullmatch(line)), None)


def parse(text: str) -> Reading:
    found = Reader()
    for line in lines_of(text):
        found.take(line)
    items = tuple(
        build(found, id, text)
        for kind, build in (("sentence", _sentence), ("key_point", _key_point), ("atom", _atom))
        for id, text in found.lists[kind].texts.items()
    )
    scores = _scores(items, found.flags)
    odd, notes = compared(found.stated, scores)
    if found.unmatched:
        odd, notes["unmatched"] = (*odd, "unmatched_blocks"), found.unmatched
    if found.summary is not None:
        notes["summary"] = found.summary
    return Reading(items, scores, with_flags(found.flags, *odd), notes, read_anything=bool(items or found.stated))


def _label(metric: str, entry: Entry) -> tuple[Any, tuple[str, ...]]:
    """The label a section gives; where it gives none, two, or an unknown one, that is said instead."""
    labels = {WORDS[metric].get(word.lower().replace(" ", "")) for word in entry.words}
    if not labels:
        return "unjudged", ("label_missing",)
    if len(labels) > 1:
        return "unjudged", ("blocks_conflict",)
    label = labels.pop()
    return (label, ()) if label else ("unjudged", ("label_unknown",))


def _flags(found: Reader, kind: str, id: int, entry: Entry, *odd: str) -> tuple[str, ...]:
    return with_flags(entry.flags, *found.lists[kind].flags.get(id, ()), *entry.odd, *odd)


def _why(entry: Entry, odd: tuple[str, ...]) -> str:
    return entry.reason if entry.reason is not None else (odd[0] if odd else "")


def _sentence(found: Reader, id: int, text: str) -> AnyItem:
    relevance = found.entries["relevance"].get(id, Entry())
    entry = found.entries["faithfulness"].get(id, Entry())
    on_topic, odd_topic = _label("relevance", relevance)
    if "no_question" in found.flags and not relevance.words:
        on_topic, odd_topic = None, ()
    support, odd_support = _label("faithfulness", entry)
    odd = (*odd_topic, *odd_support)
    return Sentence(
        id=id,
        text=text,
        on_topic=on_topic,
        support=support,
        reason=_why(entry if entry.reason is not None else relevance, odd),
        evidence=entry.evidence,
        flags=_flags(found, "sentence", id, entry, *relevance.odd, *odd),
    )


def _key_point(found: Reader, id: int, text: str) -> AnyItem:
    entry = found.entries["completeness"][id]
    label, odd = _label("completeness", entry)
    return KeyPoint(
        id=id,
        text=text,
        label=label,
        depth=entry.depth,
        keypoints_source="derived" if entry.derived else "given",
        reason=_why(entry, odd),
        flags=_flags(found, "key_point", id, entry, *odd),
    )


def _atom(found: Reader, id: int, text: str) -> AnyItem:
    entry = found.entries["accuracy"][id]
    label, odd = _label("accuracy", entry)
    return Atom(
        id=id,
        text=text,
        label=label,
        reason=_why(entry, odd),
        evidence=entry.evidence,
        causal_of=entry.causal_of,
        difference=entry.difference,
        flags=_flags(found, "atom", id, entry, *odd),
    )
