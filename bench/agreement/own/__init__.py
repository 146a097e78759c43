"""Three held-out sets of our own texts: short answers, careful claims, dialogues that follow their system prompt.

They measure judges and train none. Every name and fact in them is invented, so that only the passages decide.
A file holds the blocks of one set in one script; a block begins with `== id`. An error names the file and the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

HERE = Path(__file__).parent
Script = Literal["en", "zh-Hans", "zh-Hant"]
SCRIPTS: tuple[Script, ...] = get_args(Script)


class Block(NamedTuple):
    """What stands between one `== id | title` and the next, not yet read."""

    file: Path
    id: str
    title: str
    lines: tuple[str, ...]
    script: Script

    @property
    def language(self) -> Literal["zh", "en"]:
        return "en" if self.script == "en" else "zh"

    def error(self, message: str) -> ValueError:
        return ValueError(f"{self.file.name}, block {self.id!r}: {message}")


def blocks(name: str, folder: Path = HERE) -> Iterator[Block]:
    """The blocks of a set, script by script."""
    seen: set[str] = set()
    for script in SCRIPTS:
        path = folder / f"{name}.{script}.txt"
        head, *parts = re.split(r"^== ", path.read_text("utf-8"), flags=re.MULTILINE)
        if head.strip():
            raise ValueError(f"{path.name}: text before the first block: {head.strip()[:40]!r}")
        for part in parts:
            title, *lines = part.rstrip("\n").split("\n")
            block_id, _, subject = title.partition(" | ")
            block = Block(path, block_id.strip(), subject.strip(), tuple(lines), script)
            if not block.id or block.id in seen:
                raise block.error("an id is needed, and only once in the set")
            seen.add(block.id)
            yield block
