"""600 claims about 60 texts: right ones in other words than the passages', wrong ones in the passages' own words.

A block is `== id | subject`, two or three passages (a line each; one is about a similar thing), then claims:
`+ claim` is right, `- kind: claim` is wrong, where the kind says what was done to the passages' words.
Overlap of words therefore speaks for the wrong claims; only reading tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from . import HERE, Block, Script, blocks

ErrorKind = Literal[
    "roles",  # who did what to whom is exchanged
    "direction",  # from A to B has become from B to A
    "condition",  # a condition is dropped, added or changed
    "scope",  # all, some, only
    "neighbour",  # what the passages say of the similar thing beside
    "cause",  # cause and effect are exchanged
    "order",  # before and after
    "comparison",  # more and less
    "negation",  # not stands elsewhere
    "modality",  # may, must, need not
]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
WRONG = re.compile(rf"- ({'|'.join(ERROR_KINDS)}): (.+)")


class CarefulClaim(NamedTuple):
    """A claim that the passages decide; `error` is None for a right one."""

    id: str
    script: Script
    subject: str
    passages: tuple[str, ...]
    claim: str
    error: ErrorKind | None

    @property
    def right(self) -> bool:
        return self.error is None


def careful_claims(folder: Path = HERE) -> Iterator[CarefulClaim]:
    """All claims, text by text."""
    for block in blocks("careful", folder):
        yield from _read(block)


def _read(block: Block) -> Iterator[CarefulClaim]:
    lines = [line.strip() for line in block.lines if line.strip()]
    passages = tuple(line for line in lines if not line.startswith(("+ ", "- ")))
    if not block.title or not 2 <= len(passages) <= 3:
        raise block.error("needs a subject and two or three passages")
    claims = [line for line in lines if line.startswith(("+ ", "- "))]
    if lines != [*passages, *claims]:
        raise block.error("the claims stand after the passages")
    if not any(line.startswith("+ ") for line in claims) or not any(line.startswith("- ") for line in claims):
        raise block.error("needs right and wrong claims")
    for number, line in enumerate(claims, 1):
        claim, error = _claim(block, line)
        yield CarefulClaim(f"{block.id}-{number}", block.script, block.title, passages, claim, error)


def _claim(block: Block, line: str) -> tuple[str, ErrorKind | None]:
    if line.startswith("+ "):
        return line.removeprefix("+ "), None
    match = WRONG.fullmatch(line)
    if not match:
        raise block.error(f"a wrong claim names one of {', '.join(ERROR_KINDS)}: {line!r}")
    # mypy cannot see that the pattern allows kinds only.
    return match[2], match[1]  # type: ignore[return-value]
