"""200 questions with passages, a right short answer, and a wrong one of the same kind.

A block is `== id | question`, one to three passages (a line each), `evidence: ` with the deciding words of a passage,
`+ right answer` and `- wrong answer`. The wrong answer is often another value of the same passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from . import HERE, Block, Script, blocks

EVIDENCE = "evidence: "


class ShortAnswer(NamedTuple):
    """A question that a few words answer, once rightly and once wrongly."""

    id: str
    script: Script
    question: str
    passages: tuple[str, ...]
    evidence: str
    right: str
    wrong: str


def short_answers(folder: Path = HERE) -> Iterator[ShortAnswer]:
    """All questions, script by script."""
    return (_read(block) for block in blocks("short_answers", folder))


def _read(block: Block) -> ShortAnswer:
    lines = [line for line in block.lines if line.strip()]
    passages = tuple(line for line in lines if not line.startswith((EVIDENCE, "+ ", "- ")))
    if not block.title or not 1 <= len(passages) <= 3:
        raise block.error("needs a question and one to three passages")
    evidence = _only(block, lines, EVIDENCE)
    if not any(evidence in passage for passage in passages):
        raise block.error(f"the evidence stands in no passage: {evidence!r}")
    right, wrong = _only(block, lines, "+ "), _only(block, lines, "- ")
    if right == wrong:
        raise block.error("the right and the wrong answer are the same")
    return ShortAnswer(block.id, block.script, block.title, passages, evidence, right, wrong)


def _only(block: Block, lines: list[str], mark: str) -> str:
    found = [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]
    if len(found) != 1 or not found[0]:
        raise block.error(f"needs exactly one line {mark!r}, has {len(found)}")
    return found[0]
