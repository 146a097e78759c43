"""Going through an `atomic` transcript line by line: which atom each section speaks of, and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from steelyard.protocols.transcripts.atomic_lines import (
    ACCURACY,
    FALLBACK_PROSE,
    FALLBACK_SCORE,
    GROUP,
    LABELS,
    LEVEL_FIELD,
    NEED,
    STATED,
    UNGRADED,
    Judgement,
    Level,
    LevelNote,
    Section,
    ending_score,
    heading_of,
    level_of,
    note_start,
    ratio_of,
    read_accuracy,
    read_inline,
    read_need,
    read_note,
)
from steelyard.protocols.transcripts.atomic_table import ATOM_TITLE, COLUMNS, id_of, judgement_of, note_of
from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.protocols.transcripts.lines import (
    COLON,
    LEAD,
    OPENING,
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
from steelyard.records import Evidence, ValueDifference

BULLET = re.compile(r"\s*[-*•·+]\s+(.*)", re.DOTALL)
# The number of an item that has only a bullet.
UNNUMBERED = 0
# What a log writes between two replies: from there on it is the next sample's own text, until a transcript begins.
PROMPT = FormPattern(
    rf"{LEAD}(?:用户)?(?:问题|参考答案|参考资料|生成内容|模型回答|question|references?|background|answer){D}\d{{0,9}}{D}{COLON}.*"
)


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
    cells: Judgement | None = None
    # Scores on lines after the step: a reason with line breaks may have stated one before the real one.
    stray: list[str] = field(default_factory=list)

    @property
    def says(self) -> bool:
        return bool(self.steps or self.cells)

    def goes_on(self, line: str) -> None:
        score = ending_score(line)
        self.stray += [score] if score is not None else []

    def judgement(self) -> Judgement:
        needs = [read_need("\n".join(lines)) for kind, lines in self.steps if kind == "need"]
        scored = [read_accuracy("\n".join(lines)) for kind, lines in self.steps if kind == "accuracy"]
        scored += [self.cells] if self.cells else []
        exempt = [need for need in needs if need]
        if exempt and len(exempt) == len(needs):
            # The document ends there: whatever is scored after 不需要 has no place to stand.
            return exempt[0]._replace(flags=("score_after_exempt",)) if scored else exempt[0]
        if exempt:
            return Judgement("unjudged", "blocks_conflict", ("blocks_conflict",))
        if scored and any(LABELS.get(score) != scored[0].label for score in self.stray):
            return Judgement("unjudged", "blocks_conflict", ("blocks_conflict",))
        return agreed(scored) or Judgement("unjudged", "score_missing", ("score_missing",))


def agreed(judgements: list[Judgement]) -> Judgement | None:
    """The judgement that all state; none if they contradict each other."""
    if len({judgement.label for judgement in judgements}) > 1:
        return Judgement("unjudged", "blocks_conflict", ("blocks_conflict",))
    return judgements[0] if judgements else None


class AtomicReader:
    """Goes through the lines once, knowing which section it is in."""

    def __init__(self) -> None:
        self.listed = ListedItems()
        self.raw: dict[int, str] = {}
        self.levels: dict[int, list[tuple[LevelNote, tuple[str, ...]]]] = {}
        self.blocks: dict[int, list[Block]] = {}
        self.prose: list[str] = []
        self.fallback: list[str] = []
        self.flags: tuple[str, ...] = ()
        self.suspect = False
        self.totals = Totals()
        self.unmatched = 0
        self.broken_rows = 0
        self.stray_score = False
        self._first: Section | None = None
        self._is_over = False
        self._tables_only = False
        self._grades_by_group = False
        self._section: Section | None = None
        self._lister: Section | None = None
        self._numbered_headings = False
        self._group: Level | None = None
        self._block: Block | None = None
        self._pending: tuple[int, list[str]] | None = None

    @property
    def doubts_scores(self) -> bool:
        """Whether a score stands where no atom's own is; then one that contradicts its word is not believed."""
        return self.stray_score or any(sum(block.says for block in blocks) > 1 for blocks in self.blocks.values())

    @property
    def finished(self) -> bool:
        return bool(self.fallback) and all(id in self.blocks for id in self.listed.texts)

    def begins_another(self, part: str | MarkdownTable) -> bool:
        """Whether this line opens another transcript: the first section again, after later ones were read."""
        if isinstance(part, MarkdownTable):
            return bool(self.fallback) and self._is_another(part)
        if not (heading := heading_of(part)) or heading[0] == "fallback":
            return False
        if self._is_over:
            return True
        section, numbered = heading
        if (numbered and not self._numbered_headings) or (self._section == "accuracy" and self._known(part)):
            return False
        if section == "atoms":
            return bool(self.blocks or self.fallback or self.listed.texts or self.levels or self._pending)
        return section == self._first and bool(self.fallback or (section == "levels" and self.blocks))

    def take(self, part: str | MarkdownTable) -> None:
        if self._is_over:
            return
        if isinstance(part, MarkdownTable):
            self._finish()
            self._take_table(part)
        elif not part.strip():
            self._finish()
            if self._block:
                self._block.wraps = False
        elif self.fallback and PROMPT.fullmatch(part):
            self._is_over = True
        elif not self._is_known_atom(part) and not self._is_structure(part):
            self._content(part)

    def finish(self) -> AtomicReader:
        self._finish()
        return self

    def _known(self, line: str) -> Match | None:
        """The listed atom whose own text this line repeats."""
        item = item_of(line)
        match = self.listed.find(item[0], unescape(item[1])) if item else None
        return None if match is None or "text_differs" in match.flags else match

    def _is_known_atom(self, line: str) -> bool:
        """In the accuracy section an atom's own text opens its block, whatever else that text looks like."""
        is_step = line.startswith(tuple(OPENING)) and (NEED.fullmatch(line) or ACCURACY.fullmatch(line))
        match = self._known(line) if self._section == "accuracy" and not is_step else None
        if match is None:
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
            self.fallback.append(score.first())
            return True
        if (group := GROUP.fullmatch(line)) or UNGRADED.fullmatch(line):
            if self._section == "levels" and (self._grades_by_group or not (self.levels or self._pending)):
                # The section lists its atoms by level instead of noting the level of each.
                self._finish()
                self._grades_by_group = True
            else:
                self._enter("accuracy")
            self._group = level_of(group.word(1)) if group else None
            return True
        if stated := STATED.fullmatch(line):
            self.totals.add("accuracy", ratio_of(stated))
            return True
        if self._section in ("accuracy", "fallback") and (prose := FALLBACK_PROSE.fullmatch(line)):
            self._enter("fallback")
            self.prose.append(prose.last)
            self._has_strayed(line)
            return True
        return False

    def _enter(self, section: Section, numbered: bool | None = None) -> None:
        self._finish()
        self._first = self._first or section
        self._grades_by_group = False
        if section == "atoms" and numbered is not None:
            self._numbered_headings = numbered
        self._section, self._block, self._group = section, None, None

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
            self._has_strayed(line)

    def _has_strayed(self, line: str) -> None:
        """A score that no atom has: the reason of one may have ended its block."""
        self.stray_score = self.stray_score or ending_score(line) is not None

    def _collect(self, line: str) -> None:
        """An item of the first two sections may run over several lines; it is read when it ends."""
        item = item_of(line)
        bullet = BULLET.fullmatch(line) if item is None else None
        if bullet and not (self._pending and self._section == "levels" and LEVEL_FIELD.fullmatch(bullet[1])):
            next_id = len(self.listed.texts) + 1 + (self._pending is not None)
            item = (next_id if self._lister in (None, self._section) else UNNUMBERED), undecorated(bullet[1])
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
        if start is None and self._grades_by_group:
            note = LevelNote(self._group, "", readable=True)
        if match := self._find_or_list(id, undecorated(line[:start])):
            self.levels.setdefault(match.id, []).append((note, match.flags))

    def _judge(self, line: str) -> None:
        block = self._block
        if need := NEED.fullmatch(line):
            self._step("need", need.last)
        elif accuracy := ACCURACY.fullmatch(line):
            self._step("accuracy", accuracy.last)
        elif item := item_of(line):
            self._block = None
            if not self._judge_inline(*item) and (match := self._find_or_list(*item)):
                self._open_block(match)
            elif block and self._block is None:
                block.goes_on(line)
        elif (bullet := BULLET.fullmatch(line)) and (known := self._bulleted(bullet[1])):
            self._open_block(known)
        elif block is None:
            self._has_strayed(line)
        elif (evidence := read_evidence(line)) is not None:
            block.evidence, block.wraps = evidence, False
        elif (effect := read_cause(line)) is not None:
            block.causal_of, block.wraps = effect, False
        elif (difference := read_difference(line)) is not None:
            block.difference, block.wraps = difference, False
        elif (flags := read_flags(line)) is not None:
            block.stated_flags, block.wraps = flags, False
            block.goes_on(line)
        elif block.wraps:
            block.steps[-1][1].append(line)
        else:
            block.goes_on(line)

    def _judge_inline(self, id: int, text: str) -> bool:
        """An item whose own line goes on behind the listed text, with its judgement."""
        raw = self.raw.get(id)
        if raw is None or self._lister == "accuracy" or not text.startswith(raw):
            return False
        if (step := read_inline(text[len(raw) :])) is None:
            return False
        self._open_block(Match(id))
        self._step(*step)
        return True

    def _bulleted(self, text: str) -> Match | None:
        match = self.listed.find(UNNUMBERED, unescape(undecorated(text)))
        return match if match and not match.flags else None

    def _step(self, kind: Literal["need", "accuracy"], value: str) -> None:
        if self._block:
            self._block.steps.append((kind, [value]))
            self._block.wraps = True

    def _open_block(self, match: Match) -> None:
        self._block = Block(self._group, match.flags)
        self.blocks.setdefault(match.id, []).append(self._block)

    # --- tables ------------------------------------------------------------------------------------

    def _is_another(self, table: MarkdownTable) -> bool:
        """A whole transcript in a table, and not a summary of the atoms that were listed."""
        columns = columns_of(table, COLUMNS)
        named = any(ATOM_TITLE.fullmatch(title) for title in table.header)
        if not named or self._section_of(table) != "accuracy" or "text" not in columns:
            return False
        rows = [row for row in rows_of(table, columns) if row]
        listed = any(self.listed.find(id_of(row["id"]) or 0, row["text"]) for row in rows)
        return self._tables_only or self._is_over or not listed

    def _section_of(self, table: MarkdownTable) -> Section | None:
        """What a table adds; before any heading, only one whose title names atoms is taken for a part of the form."""
        columns = columns_of(table, COLUMNS)
        if self._section is None and not any(ATOM_TITLE.fullmatch(title) for title in table.header):
            return None
        if "text" not in columns and "id" not in columns:
            return None
        if not {"accuracy", "score", "need"}.isdisjoint(columns):
            return "accuracy"
        if "level" in columns:
            return "levels"
        return "atoms" if self._section == "atoms" and "text" in columns else None

    def _take_table(self, table: MarkdownTable) -> None:
        """Rows list atoms, grade them, judge them, or all of it, by the columns there are."""
        section, columns = self._section_of(table), columns_of(table, COLUMNS)
        if section is None:
            return
        self._tables_only = self._tables_only or self._section is None
        group = self._group
        self._enter(section)
        self._group = group
        for row in rows_of(table, columns):
            if row is None:
                self.broken_rows += 1
            elif match := self._row_atom(row):
                self._take_row(row, match, judges=section == "accuracy")

    def _row_atom(self, row: TableRow) -> Match | None:
        lists = self._lister in (None, self._section)
        id = id_of(row["id"]) or (len(self.listed.texts) + 1 if lists else UNNUMBERED)
        if row["text"]:
            return self._find_or_list(id, row["text"])
        match = Match(id) if id in self.listed.texts and row.has("id") else None
        self.unmatched += match is None
        return match

    def _take_row(self, row: TableRow, match: Match, *, judges: bool) -> None:
        if row.has("level"):
            self.levels.setdefault(match.id, []).append((note_of(row, judges), match.flags))
        if judges:
            self._open_block(match)
            if self._block:
                self._block.cells = judgement_of(row)
                self._block = None
