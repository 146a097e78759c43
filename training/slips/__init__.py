"""True claims in other words than their text's, and the same claims with one slip: texts of our own, for learning.

A file holds blocks: `== id | question`, the passages (a paragraph each), and claims `kind: claim` that mark one span
as [[right>wrong]]. Two thirds of the texts train, the others choose; none is measured on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from training.sets import Part, Row

HERE = Path(__file__).parent
SCRIPTS = ("en", "zh-Hans", "zh-Hant")
SPAN = re.compile(r"\[\[(?P<right>[^\[\]>]+)>(?P<wrong>[^\[\]>]+)\]\]")
CLAIM = re.compile(r"(?P<kind>[a-z]+): (?P<claim>.*\[\[.*)")
SET = "slips"


def slips(part: Part, folder: Path = HERE) -> list[Row]:
    """The claims of one part, clean and wrong; a passage of another text stands beside the right ones."""
    return [row for script in SCRIPTS for row in _rows((folder / f"{script}.txt").read_text("utf-8"), part)]


def _rows(text: str, part: Part) -> Iterator[Row]:
    texts = [_read(block) for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]]
    for at, (name, question, passages, claims) in enumerate(texts):
        if part_of_text(name) != part:
            continue
        other = texts[(at + 1) % len(texts)][2][:1]
        shown = (*passages, *other) if at % 2 else (*other, *passages)
        for number, (kind, claim) in enumerate(claims):
            for label, side in (("supported", "right"), ("unsupported", "wrong")):
                said = SPAN.sub(lambda match, side=side: match[side], claim)  # type: ignore[misc]
                yield Row(SET, f"{name}-{number}-{side}", name, question, said, shown, label, kind)


def _read(block: str) -> tuple[str, str, tuple[str, ...], list[tuple[str, str]]]:
    head, *lines = [line for line in block.splitlines() if line.strip()]
    name, _, question = head.partition(" | ")
    claims = [match for line in lines if (match := CLAIM.fullmatch(line))]
    passages = tuple(line for line in lines if not CLAIM.fullmatch(line))
    if any(len(SPAN.findall(match["claim"])) != 1 for match in claims) or any("[[" in text for text in passages):
        raise ValueError(f"{name}: every claim marks exactly one span as [[right>wrong]]")
    return name, question, passages, [(match["kind"], match["claim"]) for match in claims]


def part_of_text(name: str) -> Part:
    """The part of the split a text belongs to."""
    return "train" if hashlib.sha256(f"slips {name}".encode()).digest()[0] % 3 else "dev"
