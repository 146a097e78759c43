"""Dialogues of our own: criteria that hold, criteria without a basis, answers that break some; to choose thresholds.

python -m training.dialogues            # how the embedded judge does on them
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent


class Worse(NamedTuple):
    """An answer that breaks some of the criteria of its turn."""

    answer: str
    breaks: tuple[str, ...]


class Exchanged(NamedTuple):
    """A turn whose answer meets every criterion."""

    prompt: str
    answer: str
    criteria: tuple[str, ...]
    worse: tuple[Worse, ...]


class Dialogue(NamedTuple):
    """A system prompt, criteria that do not follow from it, and turns whose criteria do."""

    id: str
    language: str
    system_prompt: str
    baseless: tuple[str, ...]
    turns: tuple[Exchanged, ...]


def dialogues(folder: Path = HERE) -> Iterator[Dialogue]:
    for file in sorted(folder.glob("*.toml")):
        for one in tomllib.loads(file.read_text("utf-8"))["dialogue"]:
            turns = tuple(_turn(turn, f"{file.name}, {one['id']}") for turn in one["turn"])
            language = "zh" if file.stem == "chinese" else "en"
            yield Dialogue(one["id"], language, one["system_prompt"], tuple(one["baseless"]), turns)


def _turn(turn: dict[str, Any], where: str) -> Exchanged:
    worse = tuple(Worse(one["answer"], tuple(one["breaks"])) for one in turn["worse"])
    found = Exchanged(turn["prompt"], turn["answer"], tuple(turn["criteria"]), worse)
    for one in worse:
        if strange := set(one.breaks) - set(found.criteria):
            raise ValueError(f"{where}: not a criterion of the turn: {strange.pop()}")
    return found
