"""Where a claim and a span run alike, and what stands there in one and not in the other."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.meaning import simplified

LONGEST_COMPARED = 600
SMALL_EDIT = 4
LONGEST_NAME = 14
WORD_OR_HAN = re.compile(r"[\u3400-\u9fff]|[A-Za-z\u00c0-\u024f]+(?:['’-][A-Za-z]+)*|[0-9]+(?:[.,][0-9]+)*")


class Clash(NamedTuple):
    """A contradiction: its kind, and the two things that differ."""

    kind: str
    claimed: str
    stated: str


class Exchange(NamedTuple):
    """A stretch of the claim that stands where the span has another one."""

    claimed: str
    stated: str


def exchanges(claim: str, span: str) -> tuple[Exchange, ...]:
    """Where claim and span run alike but for a short stretch, that stretch in both."""
    return tuple(edit for edit in _differences(claim, span) if edit.claimed and edit.stated)


def edits(claim: str, span: str) -> tuple[Exchange, ...]:
    """The same with what only one of them has; only stretches of a few words, since longer ones say something else."""
    return tuple(
        edit
        for edit in _differences(claim, span)
        if max(len(WORD_OR_HAN.findall(edit.claimed)), len(WORD_OR_HAN.findall(edit.stated))) <= SMALL_EDIT
    )


@lru_cache(maxsize=1024)
def _differences(claim: str, span: str) -> tuple[Exchange, ...]:
    ours, theirs = simplified(claim[:LONGEST_COMPARED]), simplified(span[:LONGEST_COMPARED])
    mine, other = list(WORD_OR_HAN.finditer(ours)), list(WORD_OR_HAN.finditer(theirs))
    matcher = SequenceMatcher(
        None, [match.group().lower() for match in mine], [match.group().lower() for match in other], autojunk=False
    )
    result = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal" and b - a <= LONGEST_NAME and d - c <= LONGEST_NAME:
            claimed = ours[mine[a].start() : mine[b - 1].end()] if b > a else ""
            stated = theirs[other[c].start() : other[d - 1].end()] if d > c else ""
            result.append(Exchange(claimed, stated))
    return tuple(result)
