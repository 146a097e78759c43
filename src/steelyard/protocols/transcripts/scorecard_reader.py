"""Going through a `scorecard` transcript line by line: which section, which item, which label, which stated score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from steelyard.protocols.transcripts.forms import FormPattern, word_of
from steelyard.protocols.transcripts.lines import (
    COLON,
    LEAD,
    SIGN,
    D,
    Totals,
    item_of,
    read_cause,
    read_difference,
    read_evidence,
    read_flags,
    undecorated,
    unescape,
)
from steelyard.protocols.transcripts.matching import ListedItems, Match
from steelyard.protocols.transcripts.tables import MarkdownTable, TableRow, columns_of, rows_of
from steelyard.records import Depth, Evidence, ValueDifference

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
        {"相关": "on_topic", "贴题": "on_topic", "切题": "on_topic", "relevant": "on_topic", "不相关": "off_topic",
         "离题": "off_topic", "偏题": "off_topic", "irrelevant": "off_topic"},
    ),
    "completeness": Section(
        "2️⃣ 完整性 (Completeness)",
        "命中率 q",
        {"covered": "Covered", "partial": "Partially", "missing": "Missing"},
        {"命中": "covered", "覆盖": "covered", "部分命中": "partial", "部分覆盖": "partial", "partial": "partial",
         "partiallycovered": "partial", "缺漏": "missing", "遗漏": "missing", "未命中": "missing", "缺失": "missing"},
    ),
    "accuracy": Section(
        "3️⃣ 準確性 (Accuracy)",
        "正確率 r",
        {"correct": "正確", "wrong": "錯誤", "undetermined": "無法判斷", "exempt": "無需判斷"},
        {"correct": "correct", "wrong": "wrong", "incorrect": "wrong", "undetermined": "undetermined",
         "exempt": "exempt", "不需要判断": "exempt"},
    ),
    "faithfulness": Section(
        "4️⃣ 忠誠度 (Faithfulness)",
        "支撐比例 f",
        {"supported": "Supported", "partial": "Partially Supported", "unsupported": "Unsupported",
         "no_claim": "無陳述"},
        {"支撑": "supported", "不支撑": "unsupported", "部分支撑": "partial", "partial": "partial",
         "partially": "partial", "noclaim": "no_claim"},
    ),
}  # fmt: skip
DEPTHS: dict[Depth, str] = {"deep": "深入", "adequate": "充分", "bare": "淺薄"}
DERIVED = "（推導）"

# --- lines -----------------------------------------------------------------------------------------

TITLES = {
    "relevance": r"相关性|relevance",
    "completeness": r"完整性|completeness",
    "accuracy": r"准确性|accuracy",
    "faithfulness": r"忠诚[度性]|忠实[度性]|faithfulness",
}
# A plain `1.` opens an item, so only keycaps, Chinese ordinals and Markdown headings may number a section.
MARK = r"(?:[1-4]\ufe0f?\u20e3|[一二三四]、|(?<=[#*\s])[1-4][.、])?"
NAMED = {
    metric: rf"{LEAD}{MARK}{D}(?:{words})(?:评估|评分|评价|\sevaluation)?{D}(?:[（(]{D}[A-Za-z]{{1,20}}{D}[）)])?{D}"
    for metric, words in TITLES.items()
}
HEADINGS = {metric: FormPattern(rf"{named}{COLON}?{D}") for metric, named in NAMED.items()}
POINTS = rf"[【\[（({{]{{0,2}}\s?(\d{{1,3}})\s?[】\]）)}}]{{0,2}}{D}"
OUT_OF = r"(?:分|/\s?100|points?)"
# A whole section in one line: the metric and its score.
METRIC_SCORE = {
    metric: FormPattern(
        rf"(?:[1-4][.、]\s?)?{named}(?:得分|分数|score)?{D}(?:{COLON}|为|is\b){D}{POINTS}{OUT_OF}?(?:[（(，,].*|[\s。.*_`]*+)"
    )
    for metric, named in NAMED.items()
}
LABEL = FormPattern(
    rf"{LEAD}(?:判定|label|verdict|judge?ment){D}{COLON}{D}{SIGN}[【\[]?\s*+([^【】\[\]，,（(。]{{1,24}})[】\]]?{D}"
    rf"(?:[，,]\s?(?:深度|depth){COLON}\s?[【\[]?\s*+([^【】\[\]（(。]{{1,8}})[】\]]?)?(（推导）|\(derived\))?[\s。.*_`]*+"
)
DEPTH = FormPattern(rf"{LEAD}(?:深度|depth){D}{COLON}{D}[【\[]?\s*+([^【】\[\]。.]{{1,8}})[】\]]?[\s。.*_`]*+")
REASON = FormPattern(rf"{LEAD}(?:理由|reason){D}{COLON}(.*)")
STATED = FormPattern(rf"{LEAD}(?:分数|得分|score){D}{COLON}{D}{POINTS}(?:{OUT_OF}.*|[\s。.*_`]*+)")
STATED_SOFT = FormPattern(rf"{LEAD}计入部分支撑的分数{D}{COLON}{D}(\d{{1,3}}){D}分.*")
SUMMARY = FormPattern(rf"{LEAD}(?:总结|summary){D}{COLON}(.*)")
RATIO = FormPattern(
    rf"{LEAD}(?:贴题比例|命中率|正确率|支撑比例)\b.*|{LEAD}(?:分数|得分|score){D}{COLON}.*|{LEAD}[pqrf]\s?=.*"
)
WORDS = {
    metric: {
        **{word_of(word): label for label, word in section.labels.items()},
        **section.synonyms,
        OPEN: "unjudged",
    }
    for metric, section in SECTIONS.items()
}
DEPTH_OF: dict[str, Depth] = {
    **{word_of(word): depth for depth, word in DEPTHS.items()},
    "deep": "deep",
    "adequate": "adequate",
    "bare": "bare",
}
KIND_OF = {
    "relevance": "sentence",
    "completeness": "key_point",
    "accuracy": "atom",
    "faithfulness": "sentence",
}
COLUMNS = {
    "id": FormPattern(r"编号|序号|#|no\.?|id|number"),
    "text": FormPattern(
        r"句子|回答句子|内容|关键(?:要点|信息|资讯)|要点|原子(?:事实|信息|资讯)|陈述"
        r"|sentence|key\spoint|atom|atomic\sfact|claim|statement|fact"
    ),
    "label": FormPattern(r"判定|标记|标注|判断|结果|label|verdict|result|judge?ment"),
    "depth": FormPattern(r"深度(?:分析)?|depth"),
    "reason": FormPattern(r"理由|说明|原因|依据|reason(?:ing)?|explanation"),
}
METRIC_COLUMNS = {
    "metric": FormPattern(r"指标|评分项目?|项目|维度|metric|dimension"),
    "score": FormPattern(r"分数|得分|评分|score"),
}
CELL_SCORE = FormPattern(rf"{POINTS}{OUT_OF}?")


@dataclass
class ItemEntry:
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


def heading_of(line: str) -> str | None:
    return next((metric for metric, form in HEADINGS.items() if form.fullmatch(line)), None)


def score_of(line: str) -> tuple[str, int] | None:
    """A metric and its score on one line."""
    found = ((metric, form.fullmatch(line)) for metric, form in METRIC_SCORE.items())
    return next(((metric, int(match.word(1))) for metric, match in found if match), None)


class ScorecardReader:
    """Goes through the lines once, knowing which section and which item it is in."""

    def __init__(self) -> None:
        self.lists = {"sentence": ListedItems(), "key_point": ListedItems(), "atom": ListedItems()}
        self.entries: dict[str, dict[int, ItemEntry]] = {metric: {} for metric in SECTIONS}
        self.totals = Totals()
        self.flags: tuple[str, ...] = ()
        self.suspect = False
        self.summary: str | None = None
        self.unmatched = 0
        self.broken_rows = 0
        # Items behind a reason whose number is not the next one: the reason may have written them.
        self.misnumbered = 0
        self._metric: str | None = None
        self._scores_only = False
        self._entry: ItemEntry | None = None
        self._id = 0

    @property
    def finished(self) -> bool:
        seen = all(entries or metric in self.totals.values for metric, entries in self.entries.items())
        # Sentences stand in the first and in the last section.
        supported = self.entries["faithfulness"]
        return seen and (not supported or self.entries["relevance"].keys() <= supported.keys())

    def begins_another(self, part: str | MarkdownTable) -> bool:
        """Whether this line opens another transcript: a section that was there already."""
        if isinstance(part, MarkdownTable):
            return self._metric is None and bool(self.totals.values) and bool(metric_scores(part))
        if opened := heading_of(part):
            seen = bool(self.entries[opened] or opened in self.totals.values)
            return seen and (opened != self._metric or opened in self.totals.values)
        scored = score_of(part) if not any(self.entries.values()) else None
        return scored is not None and scored[0] in self.totals.values

    def take(self, part: str | MarkdownTable) -> None:
        if isinstance(part, MarkdownTable):
            self._take_table(part)
        elif opened := heading_of(part):
            self._metric, self._entry, self._scores_only = opened, None, False
        elif (self._metric is None or self._scores_only) and (scored := score_of(part)):
            self._metric, self._scores_only = scored[0], True
            self._state(*scored)
        elif self._metric and (item := item_of(part)):
            after_reason = self._entry is not None and self._entry.reason is not None
            self.misnumbered += after_reason and item[0] != self._id + 1
            self._open(self._metric, *item)
        elif self._metric and RATIO.fullmatch(part):
            self._entry = None
            if stated := STATED.fullmatch(part):
                self._state(self._metric, int(stated.word(1)))
        elif self._entry:
            self._detail(self._entry, part)
        elif soft := STATED_SOFT.fullmatch(part):
            self._state("faithfulness_soft", int(soft.word(1)))
        elif summary := SUMMARY.fullmatch(part):
            self.summary = unescape(undecorated(summary[1]))
        elif self._metric and (flags := read_flags(part)) is not None:
            self.flags = flags

    def _state(self, metric: str, value: int) -> None:
        self.totals.add(metric, value if value <= 100 else None)

    def _open(self, metric: str, id: int, raw: str) -> None:
        text, listed = unescape(raw), self.lists[KIND_OF[metric]]
        self._entry, self._id = None, id
        # Sentences are listed by whichever of their two sections comes first.
        other = {"relevance": "faithfulness", "faithfulness": "relevance"}.get(metric)
        lists = other is None or not self.entries[other]
        match = Match(listed.add(id, text)) if lists else listed.find(id, text)
        if match is None:
            self.unmatched += 1
            return
        self._entry = self.entries[metric].setdefault(match.id, ItemEntry())
        self._entry.odd += match.flags

    def _detail(self, entry: ItemEntry, line: str) -> None:
        if label := LABEL.fullmatch(line):
            entry.words.append(label[1])
            entry.depth = DEPTH_OF.get(word_of(label[2]), entry.depth)
            entry.derived = entry.derived or label.has(3)
        elif depth := DEPTH.fullmatch(line):
            entry.depth = DEPTH_OF.get(word_of(depth[1]), entry.depth)
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

    # --- tables ------------------------------------------------------------------------------------

    def _take_table(self, table: MarkdownTable) -> None:
        """The items of a section, or the scores of all four."""
        self._entry = None
        for metric, value in metric_scores(table):
            self._state(metric, value)
        columns = columns_of(table, COLUMNS)
        if self._metric is None or not {"text", "label"} <= columns.keys():
            return
        for number, row in enumerate(rows_of(table, columns), start=1):
            if row is None:
                self.broken_rows += 1
            else:
                self._take_row(self._metric, row, number)
        self._entry = None

    def _take_row(self, metric: str, row: TableRow, number: int) -> None:
        stated = row["id"].strip(" .、")
        self._open(metric, int(stated) if stated.isdecimal() and len(stated) < 10 else number, row["text"])
        if self._entry:
            self._entry.words.append(row["label"].strip("【】[]（）() "))
            self._entry.depth = DEPTH_OF.get(word_of(row["depth"].strip("【】[] ")))
            self._entry.reason = unescape(row["reason"]) or None


def metric_scores(table: MarkdownTable) -> list[tuple[str, int]]:
    columns = columns_of(table, METRIC_COLUMNS)
    if len(columns) < len(METRIC_COLUMNS):
        return []
    found: list[tuple[str, int]] = []
    for row in rows_of(table, columns):
        metric = heading_of(row["metric"]) if row else None
        score = CELL_SCORE.fullmatch(row["score"]) if row else None
        if metric and score:
            found.append((metric, int(score.word(1))))
    return found
