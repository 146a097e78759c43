"""Going through an `atomic` transcript line by line: which atom each section speaks of, and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from steelyard.records import Evidence, ValueDifference
from steelyard.transcripts.atomic_lines import (
    ACCURACY,
    FALLBACK_PROSE,
    FALLBACK_SCORE,
    GROUP,
    NEED,
    UNGRADED,
    Judgement,
    Level,
    LevelNote,
    Section,
    heading_of,
    level_of,
    note_start,
    read_accuracy,
    read_need,
    read_note,
)
from steelyard.transcripts.lines import (
    OPENING,
    item_of,
    last_group,
    more_than_one,
    read_cause,
    read_difference,
    read_evidence,
    read_flags,
    undecorated,
    unescape,
)
from steelyard.transcripts.matching import Listed, Match

BULLET = re.compile(r"\s*[-*•·+]\s+(.*)", re.DOTALL)


@dataclass
class Block:
    """The accuracy block of one atom; each step is kept as the lines it ran over."""

    group: Level | None
    flags: tuple[str, ...]
    steps: list[tuple[Literal["need", "accuracy"], list[str]]] = field(default_factory=list)
    evidence: Evidence | None = None
    causal_of: int | None = None
    difference: ValueDifference | None = None
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
            raise more_than_one()
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
        elif (difference := read_difference(line)) is not None:
            block.difference, block.wraps = difference, False
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
