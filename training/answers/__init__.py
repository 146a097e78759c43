"""Short answers, claims that lean on the sentence before them, and how sentences serve a question; for learning.

A file holds blocks: `== id topic`, the passages (`P: …`), and groups of lines under a head. `q: question` is followed
by answers, `c: sentence` by claims that come after that sentence, each marked `+` supported, `-` contradicted or `?`
not said; `r: question` by sentences marked 1 (answers it), 2 (bears on it) or 3 (beside it). Four blocks of five train,
the fifth chooses; none is measured on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from training.sets import Part, Row

HERE = Path(__file__).parent
SET = "answers"
LABELS = {"+": "supported", "-": "contradicted", "?": "neutral"}
LINE = re.compile(r"(?P<mark>[-+?123]|[Pqcr]:) (?P<text>\S.*)")


class Serving(NamedTuple):
    """A sentence beside a question, and how it serves it: 1, 2 or 3."""

    id: str
    question: str
    sentence: str
    level: int


class _Block(NamedTuple):
    name: str
    lines: list[tuple[str, str]]


def answers(part: Part, folder: Path = HERE) -> list[Row]:
    """Answers and leaning claims of one part; `context` is the question or the sentence before."""
    return [row for block in _blocks(part, folder) for row in _rows(block)]


def servings(part: Part, folder: Path = HERE) -> list[Serving]:
    """The graded sentences of one part."""
    found = []
    for block in _blocks(part, folder):
        question = ""
        for number, (mark, text) in enumerate(block.lines):
            if mark == "r:":
                question = text
            elif mark in "123":
                found.append(Serving(f"{block.name}-{number}", question, text, int(mark)))
    return found


def _rows(block: _Block) -> Iterator[Row]:
    passages = tuple(text for mark, text in block.lines if mark == "P:")
    context = ""
    for number, (mark, text) in enumerate(block.lines):
        if mark in ("q:", "c:"):
            context = text
        elif mark in LABELS:
            yield Row(SET, f"{block.name}-{number}", block.name, "", text, passages, LABELS[mark], context)


def _blocks(part: Part, folder: Path) -> Iterator[_Block]:
    for file in sorted(folder.glob("*.txt")):
        for text in re.split(r"^== ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            head, *lines = [line.strip() for line in text.splitlines() if line.strip()]
            name = head.split()[0]
            found = [LINE.fullmatch(line) for line in lines]
            if None in found:
                wrong = lines[found.index(None)]
                raise ValueError(f"{file.name}, {name}: not a passage, a head or a marked line: {wrong}")
            if part_of_text(name) == part:
                yield _Block(name, [(match["mark"], match["text"]) for match in found if match])


def part_of_text(name: str) -> Part:
    """The part of the split a block belongs to."""
    return "train" if hashlib.sha256(f"answers {name}".encode()).digest()[0] % 5 else "dev"
