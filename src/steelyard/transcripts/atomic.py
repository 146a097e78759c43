"""The transcript of `atomic`: 原子信息生成 → 相关性等级划分 → 准确性评估 → 兜底回复.

The score of an atom is what stands in 【】 after the closing parenthesis of its （2） line, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from steelyard.records import Atom, AtomLabel, Evidence, Verdict
from steelyard.scoring import atomic_scores
from steelyard.transcripts.lines import (
    COLON,
    LEAD,
    NUMBER,
    D,
    Listed,
    Reading,
    cause_line,
    closing,
    escape,
    escape_first,
    escape_within,
    evidence_line,
    flags_line,
    item_of,
    lines_of,
    nesting,
    read_cause,
    read_evidence,
    read_flags,
    undecorated,
    unescape,
    with_flags,
)

Level = Literal[1, 2, 3]
Section = Literal["atoms", "levels", "accuracy", "fallback"]

# --- the form --------------------------------------------------------------------------------------

WORDS: dict[AtomLabel, str] = {"correct": "正确", "wrong": "错误", "undetermined": "无法判断"}
POINTS: dict[AtomLabel, str] = {"correct": "1", "wrong": "0", "undetermined": "-1"}
LABELS: dict[str, AtomLabel] = {points: label for label, points in POINTS.items()}
OPEN = "未判定"
NONE_HERE = "无此等级相关信息"
UNGRADED = "未划分等级:"
FALLBACK_PROSE = {
    0: "生成的内容为正常回答问题，不是兜底回复。",
    1: "生成的内容为兜底回复。",
    None: "未判定。",
}


def render(verdict: Verdict) -> str:
    """The verdict as the seed writes it; what the seed has no place for stands on lines of its own."""
    atoms = [item for item in verdict.items if isinstance(item, Atom)]
    texts = {atom.id: _atom_text(atom.text) for atom in atoms}
    out = ["原子信息生成："]
    out += [f"{atom.id}. {texts[atom.id]}" for atom in atoms] or ["无原子信息"]
    out += ["", "相关性等级划分："]
    out += [f"{atom.id}. {texts[atom.id]}（{_level_note(atom)}）" for atom in atoms]
    out += ["", "准确性评估："]
    for level in (1, 2, 3):
        out += [f"相关性等级{level}:"]
        blocks = [line for atom in atoms if atom.level == level for line in _block(atom, texts[atom.id])]
        out += [*(blocks or [NONE_HERE]), ""]
    if ungraded := [line for a in atoms if a.level is None for line in _block(a, texts[a.id])]:
        out += [UNGRADED, *ungraded, ""]
    out += ["以上就是所有的原子信息，以及对应的等级划分和准确性评估。", ""]
    fallback = verdict.scores.get("fallback")
    known = int(fallback) if fallback in (0, 1) else None
    out += [f"兜底回复：{FALLBACK_PROSE[known]}", f"是否为兜底回复：【{'-' if known is None else known}】"]
    if verdict.flags:
        out += [flags_line(verdict.flags)]
    return "\n".join(out) + "\n"


def _atom_text(text: str) -> str:
    line = escape(text)
    return escape_first(line) if heading_of(f"1. {line}") or STEP.match(line) else line


def _level_note(atom: Atom) -> str:
    grade = f"等级划分：【{atom.level}】级" if atom.level else f"等级划分：【{OPEN}】"
    return f"{grade}，理由：{escape_within(atom.level_reason)}" if atom.level_reason else grade


def _block(atom: Atom, text: str) -> Iterator[str]:
    yield f"{atom.id}. {text}"
    yield "准确性评估："
    reason = f"（{escape_within(atom.reason)}）" if atom.reason else ""
    if atom.label == "exempt":
        yield f"（1）是否进行事实性判断：不需要{reason}"
    elif atom.label == "unjudged":
        yield f"（1）是否进行事实性判断：{OPEN}"
        yield f"（2）准确性评估：{OPEN}{reason}"
    else:
        yield "（1）是否进行事实性判断：需要（不属于主观判断，属于事实性的评估范围）"
        yield f"（2）准确性评估：{WORDS[atom.label]}{reason}，打分【{POINTS[atom.label]}】分，结束。"
    if atom.evidence is not None:
        yield evidence_line(atom.evidence)
    if atom.causal_of is not None:
        yield cause_line(atom.causal_of)
    if atom.flags:
        yield flags_line(atom.flags)


# --- recognising lines -----------------------------------------------------------------------------

ORDINAL = rf"(?:[一二三四五]、|{NUMBER}|[步][骤驟]\s*\d\s*{COLON}?)?"
SECTIONS: dict[Section, str] = {
    "atoms": r"原子(?:信息|資訊|訊息|资讯)(?:生成|切分|拆分)",
    "levels": r"(?:原子(?:信息|資訊))?相[关關]性(?:等[级級][划劃]分|分[级級])",
    "accuracy": r"(?:原子(?:信息|資訊))?[准準][确確]性(?:[评評]估|[评評][价價]|判[断斷])",
    "fallback": r"兜底(?:回[复復覆])?(?:[检檢][测測]|判[断斷])?",
}
HEADINGS = {name: re.compile(rf"{LEAD}{ORDINAL}{D}{words}{D}{COLON}?{D}") for name, words in SECTIONS.items()}
FALLBACK_LINE = re.compile(rf"{LEAD}(?:[四五]、)?兜底(?:回[复復覆])?(?:[检檢][测測]|判[断斷])?{D}{COLON}{D}(.*)")
FALLBACK_SCORE = re.compile(
    rf"{LEAD}{ORDINAL}{D}是否[为為是]?(?:[属屬]于|[属屬]於)?兜底回?[复復覆]?{D}{COLON}{D}"
    r"(?:[打得]分)?[【［\[〖]\s*([^】］\]〗]{0,12}?)\s*[】］\]〗][\s*_`。.，,；;分]*"
)
GROUP = re.compile(
    rf"{LEAD}相[关關]性(?:等[级級])?\s*[【［\[]?\s*([1-3１-３一二三])\s*[】］\]]?\s*[级級]?{D}{COLON}?{D}"
)
UNGRADED_LINE = re.compile(rf"{LEAD}未[划劃]分等[级級]{COLON}?{D}")
NEED = re.compile(
    rf"{LEAD}{NUMBER}?{D}是否(?:需要|需|要)?[进進]行(?:事[实實]性?)?判[断斷]{D}{COLON}{D}(.*)", re.DOTALL
)
ACCURACY = re.compile(
    rf"{LEAD}{NUMBER}?{D}[准準][确確]性(?:[评評]估|[评評][价價]|判[断斷]){D}{COLON}{D}(.+)", re.DOTALL
)
STEP = re.compile(rf"(?:{NEED.pattern})|(?:{ACCURACY.pattern})|(?:{FALLBACK_LINE.pattern})", re.DOTALL)
LEVEL_NOTE = re.compile(
    rf"[（(]\s*{D}(?:相[关關]性)?等[级級](?:[划劃]分)?{D}{COLON}?{D}[【［\[〖]\s*([^】］\]〗]{{0,12}}?)\s*[】］\]〗]"
)
LEVEL_REASON = re.compile(rf"\s*[级級]?\s*[，,；;。]?\s*(?:(?:[划劃]分)?理由{D}{COLON}{D})?")
SCORE = re.compile(
    r"[\s，,。.；;、*_`]*(?:准确性|準確性)?(?:[打得评評]分)[\s*_`]*[:：为為是]?[\s*_`]*"
    r"(?:[【［\[〖]\s*([^】］\]〗]{0,12}?)\s*[】］\]〗]|([-−－–]?[0-9０-９.]{1,6}(?=\s*分|[\s。.，,*]*$)))"
    r"[\s*_`]*分?[\s，,。.；;、*_`]*(?:[结結]束)?[\s。.！!*_`]*"
)
SCORE_START = re.compile(r"(?:准确性|準確性)?[打得评評]分")
PROSE: tuple[tuple[re.Pattern[str], AtomLabel | None], ...] = (
    (re.compile(rf"{OPEN}"), None),
    (re.compile(r"不正[确確]|不[准準][确確]|[错錯][误誤]|有[误誤]|不[对對]"), "wrong"),
    (re.compile(r"[无無]法(?:直接)?(?:判[断斷]|[确確]定)|不[确確]定"), "undetermined"),
    (re.compile(r"正[确確]|[准準][确確]"), "correct"),
)
UNNEEDED = re.compile(r"不需要|不需|[无無]需|[无無]须|不用|不必|否")
DIGITS = str.maketrans("０１２３４５６７８９−－–一二三", "0123456789---123")
TAIL = 60


def heading_of(line: str) -> Section | None:
    return next((name for name, pattern in HEADINGS.items() if pattern.fullmatch(line)), None)


# --- reading ---------------------------------------------------------------------------------------


class Judgement(NamedTuple):
    """What one （2） line says."""

    label: AtomLabel
    reason: str
    flags: tuple[str, ...] = ()


@dataclass
class Block:
    """The accuracy block of one atom, as far as it has been read."""

    group: Level | None
    flags: tuple[str, ...]
    need: list[str] = field(default_factory=list)
    accuracy: list[str] = field(default_factory=list)
    evidence: Evidence | None = None
    causal_of: int | None = None
    stated_flags: tuple[str, ...] = ()
    continues: list[str] | None = None


@dataclass
class Found:
    """Everything a transcript says, section by section."""

    listed: Listed = field(default_factory=Listed)
    raw: dict[int, str] = field(default_factory=dict)
    levels: dict[int, list[tuple[Level | None, str, tuple[str, ...]]]] = field(default_factory=dict)
    blocks: dict[int, list[Block]] = field(default_factory=dict)
    prose: list[str] = field(default_factory=list)
    fallback: list[str] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    unmatched: int = 0


def parse(text: str) -> Reading:
    found = _Reader().read(lines_of(text))
    atoms = tuple(_atom(found, id) for id in found.listed.texts)
    fallback, flags = _fallback(found)
    notes = {"unmatched": found.unmatched} if found.unmatched else {}
    more = [*flags, *(["unmatched_blocks"] if found.unmatched else [])]
    return Reading(
        atoms,
        atomic_scores(atoms, fallback),
        with_flags(found.flags, *more),
        notes,
        read_anything=bool(atoms) or fallback is not None,
        incomplete=fallback is None,
    )


class _Reader:
    """Goes through the lines once, knowing which section it is in."""

    def __init__(self) -> None:
        self.found = Found()
        self.section: Section | None = None
        self.group: Level | None = None
        self.block: Block | None = None
        self.last_atom: int | None = None

    def read(self, lines: list[str]) -> Found:
        for line in lines:
            if not line.strip():
                self.last_atom = None
                if self.block:
                    self.block.continues = None
            elif not self._is_known_atom(line) and not self._is_structure(line):
                self._content(line)
        return self.found

    def _is_known_atom(self, line: str) -> bool:
        """In the accuracy section an atom's own text opens its block, whatever else that text looks like."""
        if self.section != "accuracy" or not (item := item_of(line)):
            return False
        match = self.found.listed.find(item[0], unescape(item[1]))
        if match is None or "text_differs" in match.flags:
            return False
        self._open_block(match.id, match.flags)
        return True

    def _is_structure(self, line: str) -> bool:
        if score := FALLBACK_SCORE.fullmatch(line):
            self.section, self.block = "fallback", None
            self.found.fallback.append(score.group(score.lastindex or 1))
            return True
        if group := GROUP.fullmatch(line):
            self._enter("accuracy")
            self.group = _level(group.group(1))
            return True
        if UNGRADED_LINE.fullmatch(line):
            self._enter("accuracy")
            self.group = None
            return True
        if section := heading_of(line):
            # Inside the accuracy section every block repeats the section's own heading.
            if section != "accuracy" or self.section != "accuracy":
                self._enter(section)
            return True
        if self.section in (None, "accuracy", "fallback") and (prose := FALLBACK_LINE.fullmatch(line)):
            self._enter("fallback")
            self.found.prose.append(prose.group(1))
            return True
        return False

    def _enter(self, section: Section) -> None:
        self.section, self.block, self.last_atom = section, None, None

    def _content(self, line: str) -> None:
        if self.section == "atoms":
            self._listed(line)
        elif self.section == "levels":
            self._graded(line)
        elif self.section == "accuracy":
            self._judged(line)
        elif self.section == "fallback":
            if (flags := read_flags(line)) is not None:
                self.found.flags = flags
            else:
                self.found.prose.append(line)

    # --- 原子信息生成

    def _listed(self, line: str) -> None:
        bullet = BULLET.fullmatch(line)
        item = item_of(line)
        if item is None and bullet:
            item = len(self.found.listed.texts) + 1, undecorated(bullet.group(1))
        if item:
            self._list(*item)
        elif self.last_atom is not None:
            pass  # A wrapped line: later sections name the atom by its number.

    def _list(self, id: int, raw: str) -> int:
        id = self.found.listed.add(id, unescape(raw))
        self.found.raw.setdefault(id, raw)
        self.last_atom = id
        return id

    # --- 相关性等级划分

    def _graded(self, line: str) -> None:
        if not (item := item_of(line)):
            return
        id, raw = item
        start, flags = self._level_note_at(id, raw)
        text = undecorated(raw[:start]) if start is not None else raw
        note = raw[start:] if start is not None else ""
        level, reason = _read_level_note(note)
        if level is None and f"【{OPEN}】" not in note[:20]:
            flags = (*flags, "level_unreadable")
        match = self.found.listed.find(id, unescape(text))
        if match is None and not self.found.blocks and not self._had_list():
            self._list(id, text)
            match = self.found.listed.find(id, unescape(text))
        if match is None:
            self.found.unmatched += 1
            return
        self.found.levels.setdefault(match.id, []).append((level, reason, (*match.flags, *flags)))

    def _had_list(self) -> bool:
        return any(id not in self.found.levels for id in self.found.listed.texts)

    def _level_note_at(self, id: int, raw: str) -> tuple[int | None, tuple[str, ...]]:
        """Where the note after the atom's text begins: right after the listed text, else at the only such note."""
        known = self.found.raw.get(id)
        if known is not None and raw.startswith(known):
            after = LEVEL_NOTE.match(raw, len(known) + len(raw[len(known) :]) - len(raw[len(known) :].lstrip()))
            if after:
                return after.start(), ()
        notes = []
        for note in LEVEL_NOTE.finditer(raw):
            notes.append(note)
            if len(notes) > 1:
                return None, ()
        return (notes[0].start(), ()) if notes else (None, ())

    # --- 准确性评估

    def _judged(self, line: str) -> None:
        if need := NEED.fullmatch(line):
            if self.block:
                self.block.need.append(need.group(need.lastindex or 1))
                self.block.continues = self.block.need
            return
        if accuracy := ACCURACY.fullmatch(line):
            if self.block:
                self.block.accuracy.append(accuracy.group(accuracy.lastindex or 1))
                self.block.continues = self.block.accuracy
            return
        if item := item_of(line):
            self._new_block(*item)
            return
        if self.block is None:
            return
        if (evidence := read_evidence(line)) is not None:
            self.block.evidence, self.block.continues = evidence, None
        elif (effect := read_cause(line)) is not None:
            self.block.causal_of, self.block.continues = effect, None
        elif (flags := read_flags(line)) is not None:
            self.block.stated_flags, self.block.continues = flags, None
        elif self.block.continues:
            self.block.continues.append(_JOIN + line)

    def _new_block(self, id: int, raw: str) -> None:
        match = self.found.listed.find(id, unescape(raw))
        if match is None and not self.found.listed.texts:
            self._list(id, raw)
            match = self.found.listed.find(id, unescape(raw))
        if match is None:
            self.found.unmatched += 1
            self.block = None
            return
        self._open_block(match.id, match.flags)

    def _open_block(self, id: int, flags: tuple[str, ...]) -> None:
        self.block = Block(self.group, flags)
        self.found.blocks.setdefault(id, []).append(self.block)
