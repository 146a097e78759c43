"""Passages cut into spans that can be quoted word for word: sentences, or parts of very long ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Beyond this a reader would be searching, not reading; retrieval is not this judge's work.
LONGEST_READ = 200_000
LONGEST_SPAN = 320
SHORTEST_SPAN = 2

# "no. 48231" and "Jan. 2001" are one piece each.
MONTHS = "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
BEFORE_NUMBER = rf"(?!(?:(?<=\b[Nn]o)|(?<=\b(?:{MONTHS}|[Nn]os|[Ff]ig|[Vv]ol|[Aa]rt|[Ss]ec)))\.\s+\d)"
STOP = re.compile(
    # The mark in help?a=1 is part of an address.
    r"(?:[。｡！？]|(?<![a-z0-9/])[!?]|[!?](?![a-z0-9/=&#%]))+[”’」』）)\"']*|…+|\n+|[；;](?=\s|[\u3400-\u9fff])"
    rf"|(?<![A-Z])(?<!\b[A-Z][a-z])(?<!\bMrs)(?<!\bvs)(?<!\be\.g)(?<!\bi\.e){BEFORE_NUMBER}\.[\"'”)\]]*"
    r"(?=\s+[\"'“(\[]?[A-Z0-9]|\s*$)"
)
COMMA = re.compile(r"[，,、:：]\s*|\s+-+\s+|\s")
READABLE = re.compile(r"[^\W_]")


class Span(NamedTuple):
    """A piece of a passage, verbatim: `text` is `passages[passage][start:end]`."""

    passage: int
    start: int
    end: int
    text: str


class Beside(NamedTuple):
    """A span to be read beside a claim: the first ranks are those whose words come nearest; `at` is its place."""

    rank: int
    at: int
    text: str


def spans(passages: Sequence[str]) -> list[Span]:
    """The spans of all passages, in order; what holds no letter or digit is left out."""
    found: list[Span] = []
    room = LONGEST_READ
    for index, passage in enumerate(passages):
        read = passage[:room]
        room -= len(read)
        for start, end in _cuts(read):
            text = read[start:end]
            lead = len(text) - len(text.lstrip())
            text = text.strip()
            if len(text) >= SHORTEST_SPAN and READABLE.search(text):
                found.append(Span(index, start + lead, start + lead + len(text), text))
    return found


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in STOP.finditer(text):
        yield from _shortened(text, start, match.end())
        start = match.end()
    yield from _shortened(text, start, len(text))


def _shortened(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run of text in parts that are not too long, cut at commas or spaces where there are some."""
    while end - start > LONGEST_SPAN:
        cut = start + LONGEST_SPAN
        for match in COMMA.finditer(text, start + LONGEST_SPAN // 2, cut):
            cut = match.end()
        yield start, cut
        start = cut
    if end > start:
        yield start, end


CLAUSE = re.compile(r"[^，,。；;！？!?\n]+(?:[,，](?=\d{3})[^，,。；;！？!?\n]+)*[，,。；;！？!?\n]*")
MOST_CLAUSES = 8


def clauses(claim: str, shortest: int) -> list[str]:
    """The clauses of a claim; one of fewer than `shortest` characters goes with the one before it."""
    found: list[str] = []
    for match in CLAUSE.finditer(claim):
        text = match.group()
        if found and (len(text.strip()) < shortest or len(found[-1].strip()) < shortest):
            found[-1] += text
        else:
            found.append(text)
    kept = [text.strip() for text in found if READABLE.search(text)]
    return kept[:MOST_CLAUSES]
