"""Report 2 of `dialogue`, the seed's Markdown: five fields for every criterion of every round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.protocols.transcripts.forms import FormPattern, word_of
from steelyard.protocols.transcripts.lines import (
    COLON,
    LEAD,
    SIGN,
    D,
    code,
    escape,
    escape_first,
    flags_line,
    flags_text,
    read_flags,
    split_flags,
    undecorated,
    unescape,
    with_flags,
)
from steelyard.protocols.transcripts.tables import MarkdownTable, columns_of, rows_of
from steelyard.records import ComplianceLabel, Criterion, Validity, Verdict

RESULTS: dict[ComplianceLabel, str] = {"satisfied": "符合", "violated": "不符合", "undetermined": "不确定"}
VALIDITIES: dict[Validity, str] = {"valid": "有效", "invalid": "无效", "unjudged": "未判定"}
OPEN = "未判定"
NOTHING = "（无）"
BY_RULE, FLAGGED = "（由规则判定）", "（标记："

# --- writing ---------------------------------------------------------------------------------------


def rounds_of(verdict: Verdict) -> dict[int, list[Criterion]]:
    """The criteria by turn; turns without any are there too, where the verdict says how many there were."""
    criteria = [item for item in verdict.items if isinstance(item, Criterion)]
    turns = verdict.notes.get("turns")
    known = range(1, turns + 1) if isinstance(turns, int) else ()
    numbers = sorted({*known, *(criterion.turn for criterion in criteria)})
    by_turn: dict[int, list[Criterion]] = {number: [] for number in numbers}
    for criterion in criteria:
        by_turn[criterion.turn].append(criterion)
    return by_turn


def render_markdown(verdict: Verdict) -> str:
    out: list[str] = []
    for turn, criteria in rounds_of(verdict).items():
        out += [f"### **第{turn}轮对话分析**", ""]
        for criterion in criteria:
            out += [*_criterion_lines(criterion), ""]
        out += ["---", ""]
    if verdict.flags:
        out += [flags_line(verdict.flags)]
    return "\n".join(out).rstrip("\n") + "\n"


def _criterion_lines(criterion: Criterion) -> Iterator[str]:
    result = RESULTS.get(criterion.label, OPEN)
    yield f'* **评估细则 {criterion.id}**: "{escape(criterion.text) if criterion.text else ""}"'
    yield f"    * **有效性分析**: {VALIDITIES[criterion.validity]}。"
    yield f"    * **依据/出处**: {_source(criterion)}"
    yield f"    * **符合性判断**: **{result}**。"
    yield f"    * **理由**: {_reason(criterion)}"


PLACE, WHY, THEN = "出处：", "说明：", "；"


def _source(criterion: Criterion) -> str:
    """Place, quote and explanation in one line, marked so that they can be told apart."""
    place = _guarded(escape(criterion.place)) if criterion.place else ""
    quote = _guarded(escape(criterion.quote)) if criterion.quote else ""
    parts: list[str] = []
    if criterion.quote or criterion.quote_verified:
        mark = "已" if criterion.quote_verified else "未"
        before = escape_first(place) if place.startswith((PLACE, WHY)) else place
        parts.append(f"{before.replace('“', code('“'))}“{quote}”（{mark}核对）")
    elif place:
        parts.append(f"{PLACE}{place}")
    if criterion.validity_reason:
        parts.append(f"{WHY}{escape(criterion.validity_reason)}")
    return THEN.join(parts) or NOTHING


def _guarded(text: str) -> str:
    return text.replace(THEN + WHY, code(THEN) + WHY)


def _reason(criterion: Criterion) -> str:
    reason = escape(criterion.reason) if criterion.reason else NOTHING
    if criterion.reason == NOTHING:
        reason = escape_first(reason)
    for mark in (BY_RULE, FLAGGED):
        reason = reason.replace(mark, escape_first(mark))
    if criterion.decided_by == "rule":
        reason += BY_RULE
    return f"{reason}{FLAGGED}{flags_text(criterion.flags)}）" if criterion.flags else reason


# --- reading report 2 ------------------------------------------------------------------------------

ROUND = FormPattern(
    rf"{LEAD}(?:第\s?(\d{{1,5}}|[一二三四五六七八九十]{{1,3}})\s?轮(?:对话)?(?:分析)?"
    rf"|(?:analysis\sof\s)?(?:round|turn)\s(\d{{1,5}})(?:\s(?:dialogue\s|conversation\s)?analysis)?){D}{COLON}?{D}"
)
CRITERION = FormPattern(
    rf"{LEAD}(?:\d{{1,9}}[.、)]\s?)?{D}(?:(?:评估)?细则|(?:evaluation\s)?criterion)\s?(\d{{1,9}}){D}{COLON}(.*)"
)
FIELDS = {
    "validity": FormPattern(rf"{LEAD}(?:有效性(?:分析|判断)?|validity(?:\sanalysis)?){D}{COLON}(.*)"),
    "source": FormPattern(
        rf"{LEAD}(?:依据(?:\s?[/／、]\s?出处)?|(?:basis|source)(?:\s?/\s?(?:basis|source))?){D}{COLON}(.*)"
    ),
    "result": FormPattern(rf"{LEAD}(?:符合性(?:判断)?|compliance(?:\sjudge?ment)?){D}{COLON}(.*)"),
    "reason": FormPattern(rf"{LEAD}(?:理由|reason(?:ing)?){D}{COLON}(.*)"),
}
END_OF_ROUND = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*")
CHINESE_DIGITS = {digit: value for value, digit in enumerate("一二三四五六七八九", start=1)}
QUOTES = {'"': '"', "“": "”", "「": "」", "『": "』"}
WORD_END = r"(?=[\s。．.，,；;：:（(*_`\]】]|$)"
VALIDITY = FormPattern(rf"{D}{SIGN}[\[【]?(有效|无效|未判定|valid|invalid){WORD_END}")
RESULT = FormPattern(
    rf"{D}{SIGN}[\[【]?(符合|不符合|不确定|未判定|compliant|not\scompliant|non-?compliant|satisfied|not\ssatisfied|violated"
    rf"|meets|does\snot\smeet|met|not\smet|undetermined|uncertain){WORD_END}"
)
OWN_SOURCE = re.compile(r"([^“]*)“(.*)”（([已未])核对）", re.DOTALL)
FOREIGN_QUOTE = re.compile(r"([^“「『\"]*)[“「『\"](.+)[”」』\"]", re.DOTALL)
COLUMNS = {
    "turn": FormPattern(r"轮次|轮|对话轮次|round|turn"),
    "id": FormPattern(r"(?:评估)?(?:细则)?(?:编号|序号)|#|no\.?|id|criterion\sid"),
    "text": FormPattern(r"(?:评估)?细则(?:内容)?|内容|(?:evaluation\s)?criterion|content"),
    "validity": FormPattern(r"有效性(?:分析|判断)?|validity(?:\sanalysis)?"),
    "source": FormPattern(r"依据(?:\s?[/／、]\s?出处)?|出处|basis|source|basis\s?/\s?source"),
    "result": FormPattern(r"符合性(?:判断)?|判断|结果|状态|compliance(?:\sjudge?ment)?|result"),
    "reason": FormPattern(r"理由|原因|说明|reason(?:ing)?|explanation"),
}
TURN_CELL = FormPattern(r"第?\s?(?:round\s|turn\s)?(\d{1,5}|[一二三四五六七八九十]{1,3})\s?轮?")


class CriterionEntry:
    """One mention of a criterion in report 2: each field with the lines it ran over."""

    def __init__(self, turn: int, id: int, text: str) -> None:
        self.turn, self.id, self.text = turn, id, text
        self.fields: dict[str, list[list[str]]] = {}

    def values(self, name: str) -> list[str]:
        return [undecorated("\n".join(lines)) for lines in self.fields.get(name, [])]


class DialogueReader:
    """Goes through the lines of report 2 once."""

    def __init__(self) -> None:
        self.entries: list[CriterionEntry] = []
        self.rounds: dict[int, None] = {}
        self.flags: tuple[str, ...] = ()
        self.suspect = False
        self.unread = 0
        self._round = 0
        self._seen: set[tuple[int, int]] = set()
        self._field: list[str] | None = None
        self._open: CriterionEntry | None = None

    @property
    def finished(self) -> bool:
        """Whether a rule ended the round, or an empty line its last criterion."""
        return self._open is None or (self._field is None and "result" in self._open.fields)

    def goes_on(self, lines: list[str]) -> bool:
        """Whether these lines continue this report: a criterion or a field without a round, or the next round."""
        for line in lines:
            if number := round_of(line):
                return number > max(self.rounds)
            if CRITERION.fullmatch(line) or any(form.fullmatch(line) for form in FIELDS.values()):
                return True
        return False

    def begins_another(self, part: str | MarkdownTable) -> bool:
        """Whether this line opens another report: a round that was left behind, or the same one from its start."""
        if isinstance(part, MarkdownTable):
            return False
        number = round_of(part)
        if number:
            return number in self.rounds and (number < self._round or self._has_criteria(number))
        return False

    def _has_criteria(self, number: int) -> bool:
        return any(turn == number for turn, _ in self._seen)

    def take(self, part: str | MarkdownTable) -> None:
        if isinstance(part, MarkdownTable):
            self._take_table(part)
        elif number := round_of(part):
            self.rounds[number], self._round = None, number
            self._open = self._field = None
        elif END_OF_ROUND.fullmatch(part):
            self._open = self._field = None
        elif self.rounds and (criterion := CRITERION.fullmatch(part)):
            self._add(CriterionEntry(self._round, int(criterion.word(1)), unescape(_unquoted(criterion[2]))))
        elif self._open:
            self._take_field(self._open, part)
        elif (flags := read_flags(part)) is not None:
            self.flags = flags
        elif part.strip() and self.rounds:
            self.unread += 1

    def _add(self, entry: CriterionEntry) -> None:
        self.entries.append(entry)
        self._seen.add((entry.turn, entry.id))
        self._open, self._field = entry, None

    def _take_table(self, table: MarkdownTable) -> None:
        """A row is a criterion; its round is its own cell or the heading above. Criteria hold bars themselves."""
        columns = columns_of(table, COLUMNS)
        if not {"text", "result"} <= columns.keys() or not (self.rounds or "turn" in columns):
            return
        for number, row in enumerate(rows_of(table, columns, spare="text"), start=1):
            turn = TURN_CELL.fullmatch(row["turn"]) if row else None
            if row is None:
                self.unread += 1
                continue
            if turn:
                self._round = _turn(turn.word(1))
                self.rounds[self._round] = None
            id = row["id"].strip(" .、")
            self._add(
                CriterionEntry(
                    self._round, int(id) if id.isdecimal() and len(id) < 6 else number, _unquoted(row["text"])
                )
            )
            for name in FIELDS:
                if row[name] and self._open:
                    self._open.fields.setdefault(name, []).append([row[name]])
        self._open = self._field = None

    def _take_field(self, entry: CriterionEntry, line: str) -> None:
        for name, form in FIELDS.items():
            if match := form.fullmatch(line):
                self._field = [match[1]]
                entry.fields.setdefault(name, []).append(self._field)
                return
        if not line.strip():
            self._field = None
        elif self._field:
            self._field.append(line.strip())


def round_of(line: str) -> int:
    """The number of the round that the line opens; 0 where it opens none."""
    match = ROUND.fullmatch(line)
    return _turn(match.first()) if match else 0


def _turn(numeral: str) -> int:
    if numeral.isdecimal():
        return int(numeral)
    tens, ten, ones = numeral.rpartition("十")
    return 10 * (CHINESE_DIGITS.get(tens, 1) if ten else 0) + CHINESE_DIGITS.get(ones, 0)


def _unquoted(value: str) -> str:
    value = undecorated(value)
    return value[1:-1] if len(value) > 1 and QUOTES.get(value[0]) == value[-1] else value


def criterion_of(entry: CriterionEntry) -> Criterion:
    validity, odd_validity = _one_of(VALIDITY, entry.values("validity"), VALIDITY_OF)
    label, odd = _one_of(RESULT, entry.values("result"), LABEL_OF)
    if (validity, label) in CONTRADICTIONS:
        label, odd = "unjudged", ("validity_contradicts_result",)
    reason, rule, flags = _split_reason(next(iter(entry.values("reason")), ""))
    source = next(iter(entry.values("source")), "")
    return Criterion(
        id=entry.id,
        turn=entry.turn,
        text=entry.text,
        type=type_of(entry.text),
        validity=validity,
        label=label,
        result=RESULTS.get(label),
        reason=reason or (odd[0] if odd else ""),
        decided_by="rule" if rule else "judge",
        flags=with_flags(flags, *odd_validity, *odd),
        **_split_source(source, validity),
    )


# The document leaves 不确定 to invalid criteria and judges valid ones; a report that says otherwise is not believed.
CONTRADICTIONS = {("invalid", "satisfied"), ("invalid", "violated"), ("valid", "undetermined")}
VALIDITY_OF: dict[str, Validity] = {
    **{word: name for name, word in VALIDITIES.items()},
    "valid": "valid",
    "invalid": "invalid",
}
LABEL_OF: dict[str, ComplianceLabel] = {
    **{word: label for label, word in RESULTS.items()},
    **dict.fromkeys(("compliant", "satisfied", "meets", "met"), "satisfied"),
    **dict.fromkeys(("notcompliant", "noncompliant", "notsatisfied", "violated", "doesnotmeet", "notmet"), "violated"),
    **dict.fromkeys(("undetermined", "uncertain"), "undetermined"),
    OPEN: "unjudged",
}


def _one_of(form: FormPattern, values: list[str], words: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The one thing a field says; nothing, an unknown word or two different ones leave it open."""
    found = {words[word_of(match[1])] if (match := form.match(value)) else None for value in values}
    if not found:
        return "unjudged", ("field_missing",)
    if len(found) > 1:
        return "unjudged", ("blocks_conflict",)
    label = found.pop()
    return (label, ()) if label else ("unjudged", ("result_unknown",))


def _split_reason(value: str) -> tuple[str, bool, tuple[str, ...]]:
    flags: tuple[str, ...] = ()
    start = value.rfind(FLAGGED)
    if start >= 0 and value.endswith("）"):
        flags, value = split_flags(value[start + len(FLAGGED) : -1]), value[:start]
    rule = value.endswith(BY_RULE)
    value = value.removesuffix(BY_RULE)
    return "" if value == NOTHING else unescape(value), rule, flags


def _split_source(value: str, validity: Validity) -> dict[str, Any]:
    if value in ("", NOTHING):
        return {}
    before, _, why = value.partition(THEN + WHY)
    if before.startswith(WHY):
        before, why = "", value.removeprefix(WHY)
    known: dict[str, Any] = {"validity_reason": unescape(why)} if why else {}
    if before.startswith(PLACE):
        return known | {"place": unescape(before.removeprefix(PLACE))}
    if own := OWN_SOURCE.fullmatch(before):
        return known | {
            "place": unescape(own[1]),
            "quote": unescape(own[2]),
            "quote_verified": own[3] == "已",
        }
    if not before:
        return known
    if validity == "invalid":
        return {"validity_reason": unescape(value)}
    if quoted := FOREIGN_QUOTE.match(before):
        return known | {"place": unescape(quoted[1].strip(" \t:：，,")), "quote": unescape(quoted[2])}
    return known | {"place": unescape(before)}


def type_of(text: str) -> str | None:
    """What stands after the last ` | ` of a criterion."""
    _, mark, kind = text.rpartition(" | ")
    return (kind.strip() or None) if mark else None
