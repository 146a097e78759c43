"""Claims about texts of our own, each with two versions of its text: true of one, not of the other; for learning.

A file holds blocks: `== id | question`, the passages (`P: …`), the same passages with other facts (`Q: …`), and claims
with a mark for either version: `+` supported, `-` contradicted, `?` neither. `-+ date | …` is contradicted by the first
version, where a date is wrong, and supported by the second. Since nearly every claim has both labels, nothing can
be learnt from how claims are worded. Four texts of five train, the fifth chooses; none is measured on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from training.sets import Part, Row

HERE = Path(__file__).parent
SET = "written"
LABELS = {"+": "supported", "-": "contradicted", "?": "unsupported"}
PASSAGE = re.compile(r"(?P<version>[PQ]): (?P<text>\S.*)")
CLAIM = re.compile(r"(?P<first>[-+?])(?P<second>[-+?]) (?:(?P<kind>[a-z]+) \| )?(?P<text>\S.*)")
# What is neither stated nor denied in one version, as a kind.
BEYOND = "beyond"


def written(part: Part, folder: Path = HERE) -> list[Row]:
    """The claims of one part, file by file, first version before second."""
    return [row for file in sorted(folder.glob("*.txt")) for row in _rows(file, part)]


def _rows(file: Path, part: Part) -> Iterator[Row]:
    for block in re.split(r"^== ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, *lines = [line.strip() for line in block.splitlines() if line.strip()]
        name, _, question = head.partition(" | ")
        texts = [found for line in lines if (found := PASSAGE.fullmatch(line))]
        claims = [found for line in lines if (found := CLAIM.fullmatch(line))]
        if not question or len(texts) + len(claims) != len(lines):
            raise ValueError(
                f"{file.name}, {name}: a line is neither a passage (P:, Q:) nor a claim (+- …, -+ kind | …)"
            )
        if part_of_text(name) != part:
            continue
        for version, mark in (("P", "first"), ("Q", "second")):
            passages = tuple(text["text"] for text in texts if text["version"] == version)
            for number, claim in enumerate(claims):
                kind = claim["kind"] or (BEYOND if "?" in (claim["first"], claim["second"]) else "")
                label = LABELS[claim[mark]]
                yield Row(SET, f"{name}-{version}{number}", name, question, claim["text"], passages, label, kind)


def part_of_text(name: str) -> Part:
    """The part of the split a text belongs to."""
    return "train" if hashlib.sha256(f"written {name}".encode()).digest()[0] % 5 else "dev"
