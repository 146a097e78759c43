"""The seeds' worked examples, judged end to end: 14 atoms and 2 grounded samples, with the labels that count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.evaluation import evaluate_async
from steelyard.judges.base import Judge
from steelyard.records import Atom, RagSample
from steelyard.text import normalise

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "seeds"
DATE = "2026-03-02"
# A produced atom is a piece of an expected one when most of it stands there.
PIECE, SAME = 0.6, 0.3


class Example(NamedTuple):
    name: str
    protocol: str
    sample: RagSample
    expected: dict[str, Any]


def examples(folder: Path = FOLDER) -> list[Example]:
    """The examples that have passages to hold an answer against."""
    found = []
    for file in sorted(folder.glob("*.sample.json")):
        name = file.name.removesuffix(".sample.json")
        expected = json.loads((folder / f"{name}.expected.json").read_text("utf-8"))
        if (protocol := expected.get("protocol")) in ("atomic", "grounded"):
            found.append(Example(name, protocol, RagSample.model_validate_json(file.read_bytes()), expected))
    return found


async def worked_examples(judge: Judge, found: Sequence[Example]) -> dict[str, Any]:
    """How many items get a label that is accepted, and what was said about the others."""
    counts: dict[str, Any] = {"atoms": 0, "atoms of": 0, "levels": 0, "grounded": 0, "grounded of": 0, "missed": []}
    for name, protocol, sample, expected in found:
        options = {"date": sample.date or DATE} if protocol == "atomic" else {}
        (verdict,) = await evaluate_async([sample], protocol, judge, options=options)
        if protocol == "atomic":
            atoms = [item for item in verdict.items if isinstance(item, Atom)]
            _count_atoms(counts, name, expected["items"], atoms)
        else:
            _count_checks(counts, name, expected, verdict.line())
    return counts


def _count_atoms(found: dict[str, Any], name: str, expected: Sequence[dict[str, Any]], atoms: Sequence[Atom]) -> None:
    for item in expected:
        label, level = match(item["text"], atoms)
        found["atoms of"] += 1
        found["levels"] += level == item["level"]
        if label in item["labels"]:
            found["atoms"] += 1
        else:
            found["missed"].append(f"{name}: {item['text']} is {label or 'not found'}")


def _count_checks(found: dict[str, Any], name: str, expected: dict[str, Any], line: dict[str, Any]) -> None:
    wrong = [
        check["name"]
        for check, want in zip(line["items"], expected["items"], strict=True)
        if check["label"] not in want["labels"]
    ]
    right = not wrong and line["scores"]["accuracy"] == expected["scores"]["accuracy"]
    found["grounded of"] += 1
    found["grounded"] += right
    if not right:
        found["missed"].append(f"{name}: {', '.join(wrong) or 'accuracy'}")


def match(text: str, atoms: Sequence[Atom]) -> tuple[str | None, int | None]:
    """The label and level of what an answer's own atoms say of an expected one.

    An atom that was cut in pieces is wrong if a piece is, and undetermined if a piece is and none is wrong.
    """
    wanted = _pairs(text)
    pieces = [atom for atom in atoms if _inside(atom.text, wanted) >= PIECE]
    if not pieces:
        best = max(atoms, key=lambda atom: len(_pairs(atom.text) & wanted), default=None)
        pieces = [best] if best and len(_pairs(best.text) & wanted) >= SAME * len(wanted) else []
    if not pieces:
        return None, None
    labels = [atom.label for atom in pieces]
    order = ("wrong", "unjudged", "undetermined", "correct", "exempt")
    longest = max(pieces, key=lambda atom: len(_pairs(atom.text) & wanted))
    return next(label for label in order if label in labels), longest.level


def _pairs(text: str) -> set[str]:
    plain = normalise(text)
    return {plain[i : i + 2] for i in range(len(plain) - 1)}


def _inside(text: str, wanted: set[str]) -> float:
    own = _pairs(text)
    return len(own & wanted) / len(own) if own else 0.0
