"""The transcript of `atomic`: 原子信息生成 → 相关性等级划分 → 准确性评估 → 兜底回复.

The score of an atom is what stands in 【】 after the closing parenthesis of its （2） line, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.protocols.counts import atomic_scores
from steelyard.protocols.transcripts.atomic_lines import (
    FALLBACK_VALUES,
    OPEN,
    POINTS,
    Judgement,
    Level,
    LevelNote,
    ending_score,
    read_fallback_prose,
)
from steelyard.protocols.transcripts.atomic_reader import AtomicReader, agreed
from steelyard.protocols.transcripts.lines import (
    Reading,
    cause_line,
    code,
    difference_line,
    escape,
    escape_within,
    evidence_line,
    flags_line,
    lines_of,
    with_flags,
)
from steelyard.protocols.transcripts.tables import readers_of
from steelyard.records import Atom, AtomLabel, Verdict

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
    if atom.difference is not None:
        yield difference_line(atom.difference)
    if atom.flags:
        flags = flags_line(atom.flags)
        # A score at the end of a line is one of the atom's, so a flag must not look like one.
        yield flags if ending_score(flags) is None else flags[:-1] + code(flags[-1])


# --- reading ---------------------------------------------------------------------------------------


def parse(text: str) -> list[Reading]:
    return [_reading(reader.finish()) for reader in readers_of(lines_of(text), AtomicReader)]


def _reading(found: AtomicReader) -> Reading:
    doubt = found.doubts_scores
    atoms = tuple(_atom(found, id, text, doubt) for id, text in found.listed.texts.items())
    fallback, flags = _fallback(found)
    unmatched = found.unmatched + found.broken_rows
    if unmatched:
        flags = (*flags, "unmatched_blocks")
    scores = atomic_scores(atoms, fallback)
    stated, differs = found.totals.beside(scores)
    flags = with_flags(found.flags, *flags, *differs)
    return Reading(
        atoms,
        scores,
        flags,
        {"unmatched": unmatched} if unmatched else {},
        stated,
        # Only an answer that declines, or an empty one, has no atoms.
        read_anything=bool(atoms) or fallback == 1 or (fallback == 0 and "empty_answer" in flags),
        incomplete=fallback is None or found.broken_rows > 0,
        suspect=found.suspect,
    )


def _atom(found: AtomicReader, id: int, text: str, doubt: bool) -> Atom:
    blocks = found.blocks.get(id, [])
    missing = Judgement("unjudged", "not_in_transcript", ("not_in_transcript",))
    # A block in which nothing is said only mentions its atom.
    said = agreed([block.judgement() for block in blocks if block.says] or [b.judgement() for b in blocks]) or missing
    if doubt and "prose_contradicts_score" in said.flags:
        said = said._replace(label="unjudged", flags=(*said.flags, "blocks_conflict"))
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
        difference=next((block.difference for block in blocks if block.difference), None),
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


def _fallback(found: AtomicReader) -> tuple[int | None, tuple[str, ...]]:
    said = read_fallback_prose("".join(found.prose))
    if not found.fallback:
        return said, ("fallback_inferred",) if said is not None else ()
    stated = {FALLBACK_VALUES.get(value.casefold()) for value in found.fallback}
    value = stated.pop() if len(stated) == 1 else None
    if value is None:
        return None, () if found.fallback == ["-"] else ("fallback_unreadable",)
    return value, ("prose_contradicts_score",) if said not in (None, value) else ()
