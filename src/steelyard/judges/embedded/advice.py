"""Advice against advice: whether the passages recommend the same thing, or warn against it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from steelyard.judges.embedded.claims import kind_of
from steelyard.judges.embedded.meaning import plain, similarity
from steelyard.text import contains_quote, sentences

# Two pieces of advice this alike are about the same thing.
SAME_MATTER = 0.65
LONGEST_PASSAGE = 4000
CLAUSE = re.compile(r"[，,；;]")
AGAINST = re.compile(
    r"不建议|不推荐|不要(?!求)|不宜|不应|不可|请勿|切勿|勿|避免|别(?![的人名称墅致具])|禁止|慎"
    r"|\bnot (?:\w+ )?(?:recommend|advis|suggest)|\bdo not\b|\bdon't\b|\bavoid|\bnever\b|\bshould ?n[o']t\b"
    r"|\bagainst\b",
    re.IGNORECASE,
)


class Advised(NamedTuple):
    reference: int
    quote: str
    agrees: bool


def advised(text: str, passages: Sequence[str]) -> Advised | None:
    """The passage's own advice on the same matter; None where it gives none."""
    given = [(index, clause) for index, passage in enumerate(passages) for clause in _advice(passage)]
    if not given:
        return None
    likeness = similarity([text], [clause for _, clause in given])[0]
    best = int(likeness.argmax())
    reference, quote = given[best]
    if float(likeness[best]) < SAME_MATTER or not contains_quote(passages[reference], quote):
        return None
    return Advised(reference, quote, is_against(text) == is_against(quote))


def _advice(passage: str) -> Iterator[str]:
    """The clauses of a passage that advise."""
    for sentence in sentences(passage[:LONGEST_PASSAGE]):
        if kind_of(sentence) == "advice":
            yield from (clause.strip() for clause in CLAUSE.split(sentence) if kind_of(clause) == "advice")


def is_against(text: str) -> bool:
    return bool(AGAINST.search(plain(text)))
