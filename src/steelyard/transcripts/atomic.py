"""The transcript of `atomic`: 原子信息生成 → 相关性等级划分 → 准确性评估 → 兜底回复.

The score of an atom is what stands in 【】 after the closing parenthesis of its （2） line, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from steelyard.errors import TranscriptError
from steelyard.records import Atom, AtomLabel, Evidence, Verdict
from steelyard.scoring import atomic_scores
from steelyard.transcripts.atomic_lines import (
    ACCURACY,
    FALLBACK_PROSE,
    FALLBACK_SCORE,
    GROUP,
    NEED,
    OPEN,
    POINTS,
    UNGRADED,
    Judgement,
    Level,
    LevelNote,
    Section,
    heading_of,
    level_of,
    note_start,
    read_accuracy,
    read_fallback_prose,
    read_need,
    read_note,
)
from steelyard.transcripts.lines import (
    OPENING,
    Listed,
    Match,
    Reading,
    cause_line,
    escape,
    escape_within,
    evidence_line,
    flags_line,
    item_of,
    last_group,
    lines_of,
    read_cause,
    read_evidence,
    read_flags,
    undecorated,
    unescape,
    with_flags,
)

# --- writing ---------------------------------------------------------------------------------------

WORDS: dict[AtomLabel, str] = {"correct": "正确", "wrong": "错误", "undetermined": "无法判断"}
NONE_HERE = "无此等级相关信息"
PROSE = {0: "生成的内容为正常回答问题，不是兜底回复。", 1: "生成的内容为兜底回复。", None: f"{OPEN}。"}


def render(verdict: Verdict) -> str:
    """The verdict as the seed writes it; what the seed has no place for stands on lines of its own."""
    atoms = [item for item in verdict.items if isinstance(item, Atom)]
    out = ["原子信息生成：", *(_named(atom) for atom in atoms)]
    out += ["", "相关性等级划分：", *(f"{_named(atom)}（{_level_note(atom)}）" for atom in atoms)]
    out += ["", "准确性评估："]
    for level in (1, 2, 3):
        out += [f"相关性等级{level}:", *(_blocks(atoms, level) or [NONE_HERE]), ""]
    if ungraded := _blocks(atoms, None):
        out += ["未划分等级:", *ungraded, ""]
    out += ["以上就是所有的原子信息，以及对应的等级划分和准确性评估。", ""]
    fallback = verdict.scores.get("fallback")
    known = int(fallback) if fallback in (0, 1) else None
    out += [f"兜底回复：{PROSE[known]}", f"是否为兜底回复：【{'-' if known is None else known}】"]
    if verdict.flags:
        out += [flags_line(verdict.flags)]
    return "\n".join(out) + "\n"


def _named(atom: Atom) -> str:
    return f"{atom.id}. {escape(atom.text)}"


def _level_note(atom: Atom) -> str:
    grade = f"等级划分：【{atom.level}】级" if atom.level else f"等级划分：【{OPEN}】"
    return f"{grade}，理由：{escape_within(atom.level_reason)}" if atom.level_reason else grade


def _blocks(atoms: list[Atom], level: int | None) -> list[str]:
    return [line for atom in atoms if atom.level == level for line in _block(atom)]


def _block(atom: Atom) -> Iterator[str]:
    yield _named(atom)
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


# --- reading ---------------------------------------------------------------------------------------

BULLET = re.compile(r"\s*[-*•·+]\s+(.*)", re.DOTALL)


@dataclass
class Block:
    """The accuracy block of one atom; each step is kept as the lines it ran over."""

    group: Level | None
    flags: tuple[str, ...]
    steps: list[tuple[Literal["need", "accuracy"], list[str]]] = field(default_factory=list)
    evidence: Evidence | None = None
    causal_of: int | None = None
    stated_flags: tuple[str, ...] = ()
    wraps: bool = False

    def judgement(self) -> Judgement:
        needs = [read_need("\n".join(lines)) for kind, lines in self.steps if kind == "need"]
        scored = [read_accuracy("\n".join(lines)) for kind, lines in self.steps if kind == "accuracy"]
        exempt = [need for need in needs if need]
        if exempt and len(exempt) == len(needs):
            # The document ends there: whatever is scored after 不需要 has no place to stand.
            return exempt[0]._replace(flags=("score_after_exempt",)) if scored else exempt[0]
        if exempt:
            return Judgement("unjudged", "blocks_conflict", ("blocks_conflict",))
        return agreed(scored) or Judgement("unjudged", "score_missing", ("score_missing",))


def agreed(judgements: list[Judgement]) -> Judgement | None:
    """What all say; where they contradict each other, nobody is believed."""
    if len({judgement.label for judgement in judgements}) > 1:
        return Judgement("unjudged", "blocks_conflict", ("blocks_conflict",))
    return judgements[0] if judgements else None


class Reader:
    """Goes through the lines once, knowing which section it is in."""

    def __init__(self) -> None:
        self.listed = Listed()
        self.raw: dict[int, str] = {}
        self.levels: dict[int, list[tuple[LevelNote, tuple[str, ...]]]] = {}
        self.blocks: dict[int, list[Block]] = {}
        self.prose: list[str] = []
        self.fallback: list[str] = []
        self.flags: tuple[str, ...] = ()
        self.unmatched = 0
        self._section: Section | None = None
        self._lister: Section | None = None
        self._numbered_headings = False
        self._group: Level | None = None
        self._block: Block | None = None
        self._pending: tuple[int, list[str]] | None = None

    def read(self, lines: list[str]) -> Reader:
        for line in lines:
            if not line.strip():
                self._finish()
                if self._block:
                    self._block.wraps = False
            elif not self._is_known_atom(line) and not self._is_structure(line):
                self._content(line)
        self._finish()
        return self

    def _is_known_atom(self, line: str) -> bool:
        """In the accuracy section an atom's own text opens its block, whatever else that text looks like."""
        is_step = line.startswith(tuple(OPENING)) and (NEED.fullmatch(line) or ACCURACY.fullmatch(line))
        item = item_of(line) if self._section == "accuracy" and not is_step else None
        match = self.listed.find(item[0], unescape(item[1])) if item else None
        if match is None or "text_differs" in match.flags:
            return False
        self._open_block(match)
        return True

    def _is_structure(self, line: str) -> bool:
        if (heading := heading_of(line)) and (not heading[1] or self._numbered_headings or not self._section):
            # Inside the accuracy section every block repeats the section's own heading.
            if not heading[0] == self._section == "accuracy":
                self._enter(*heading)
            return True
        if self._section in ("atoms", "levels") and item_of(line):
            return False
        if score := FALLBACK_SCORE.fullmatch(line):
            self._enter("fallback")
            self.fallback.append(last_group(score))
            return True
        if (group := GROUP.fullmatch(line)) or UNGRADED.fullmatch(line):
            self._enter("accuracy")
            self._group = level_of(group[1]) if group else None
            return True
        if self._section in ("accuracy", "fallback") and (prose := FALLBACK_PROSE.fullmatch(line)):
            self._enter("fallback")
            self.prose.append(last_group(prose))
            return True
        return False

    def _enter(self, section: Section, numbered: bool | None = None) -> None:
        self._finish()
        if section == "atoms" and self.blocks:
            raise TranscriptError("the text holds more than one transcript: give them one at a time")
        if section == "atoms" and numbered is not None:
            self._numbered_headings = numbered
        self._section, self._block = section, None

    def _content(self, line: str) -> None:
        if self._section in ("atoms", "levels"):
            self._collect(line)
        elif self._section == "accuracy":
            self._judge(line)
        elif self._section == "fallback":
            if (flags := read_flags(line)) is not None:
                self.flags = flags
            elif not self.fallback:
                self.prose.append(line)

    def _collect(self, line: str) -> None:
        """An item of the first two sections may run over several lines; it is read when it ends."""
        item = item_of(line)
        if item is None and self._section == "atoms" and (bullet := BULLET.fullmatch(line)):
            item = len(self.listed.texts) + 1 + (self._pending is not None), undecorated(bullet[1])
        if item:
            self._finish()
            self._pending = item[0], [item[1]]
        elif self._pending:
            self._pending[1].append(line.strip())

    def _finish(self) -> None:
        if self._pending is None:
            return
        (id, lines), self._pending = self._pending, None
        text = "\n".join(lines)
        if self._section == "atoms":
            self._find_or_list(id, text)
        else:
            self._grade(id, text)

    def _find_or_list(self, id: int, text: str) -> Match | None:
        """The first section that names atoms lists them; later ones only speak of them."""
        self._lister = self._lister or self._section
        if self._lister == self._section:
            new = self.listed.add(id, unescape(text))
            self.raw.setdefault(new, text)
            return Match(new)
        match = self.listed.find(id, unescape(text))
        self.unmatched += match is None
        return match

    def _grade(self, id: int, line: str) -> None:
        start = note_start(line, self.raw.get(id))
        note = read_note(line[start:] if start is not None else "")
        if match := self._find_or_list(id, undecorated(line[:start])):
            self.levels.setdefault(match.id, []).append((note, match.flags))

    def _judge(self, line: str) -> None:
        block = self._block
        if need := NEED.fullmatch(line):
            self._step("need", last_group(need))
        elif accuracy := ACCURACY.fullmatch(line):
            self._step("accuracy", last_group(accuracy))
        elif item := item_of(line):
            match = self._find_or_list(*item)
            self._block = None
            if match:
                self._open_block(match)
        elif block is None:
            return
        elif (evidence := read_evidence(line)) is not None:
            block.evidence, block.wraps = evidence, False
        elif (effect := read_cause(line)) is not None:
            block.causal_of, block.wraps = effect, False
        elif (flags := read_flags(line)) is not None:
            block.stated_flags, block.wraps = flags, False
        elif block.wraps:
            block.steps[-1][1].append(line)

    def _step(self, kind: Literal["need", "accuracy"], value: str) -> None:
        if self._block:
            self._block.steps.append((kind, [value]))
            self._block.wraps = True

    def _open_block(self, match: Match) -> None:
        self._block = Block(self._group, match.flags)
        self.blocks.setdefault(match.id, []).append(self._block)


def parse(text: str) -> Reading:
    found = Reader().read(lines_of(text))
    atoms = tuple(_atom(found, id, text) for id, text in found.listed.texts.items())
    fallback, flags = _fallback(found)
    if found.unmatched:
        flags = (*flags, "unmatched_blocks")
    return Reading(
        atoms,
        atomic_scores(atoms, fallback),
        with_flags(found.flags, *flags),
        {"unmatched": found.unmatched} if found.unmatched else {},
        read_anything=bool(atoms) or fallback is not None,
        incomplete=fallback is None,
    )


def _atom(found: Reader, id: int, text: str) -> Atom:
    blocks = found.blocks.get(id, [])
    missing = Judgement("unjudged", "not_in_transcript", ("not_in_transcript",))
    said = agreed([block.judgement() for block in blocks]) or missing
    level, level_reason, level_flags = _level(found.levels.get(id, []), [block.group for block in blocks])
    stated = next((block.stated_flags for block in blocks if block.stated_flags), ())
    odd = (*found.listed.flags.get(id, ()), *level_flags, *(flag for b in blocks for flag in b.flags))
    return Atom(
        id=id,
        text=text,
        label=said.label,
        # An unjudged atom says why, if only by the flag's name.
        reason=said.reason or (said.flags[0] if said.label == "unjudged" and said.flags else ""),
        level=level,
        level_reason=level_reason,
        evidence=next((block.evidence for block in blocks if block.evidence), None),
        causal_of=next((block.causal_of for block in blocks if block.causal_of is not None), None),
        flags=with_flags(stated, *odd, *said.flags),
    )


def _level(
    notes: list[tuple[LevelNote, tuple[str, ...]]], groups: list[Level | None]
) -> tuple[Level | None, str, tuple[str, ...]]:
    """The level by its own section; by the group its block stands in where that section does not say."""
    flags = [flag for _, odd in notes for flag in odd]
    group = groups[0] if len(set(groups)) == 1 else None
    stated = {note.level for note, _ in notes}
    if not notes:
        return group, "", ()
    if len(stated) > 1 or not all(note.readable for note, _ in notes):
        return group, notes[0][0].reason, (*flags, "level_unreadable")
    level = notes[0][0].level
    if level is not None and group not in (None, level):
        flags.append("level_mismatch")
    return level, notes[0][0].reason, tuple(flags)


def _fallback(found: Reader) -> tuple[int | None, tuple[str, ...]]:
    said = read_fallback_prose("".join(found.prose))
    if not found.fallback:
        return said, ("fallback_inferred",) if said is not None else ()
    values = {"0": 0, "1": 1, "０": 0, "１": 1}
    stated = {values.get(value) for value in found.fallback}
    value = stated.pop() if len(stated) == 1 else None
    if value is None:
        return None, () if found.fallback == ["-"] else ("fallback_unreadable",)
    return value, ("prose_contradicts_score",) if said not in (None, value) else ()
