"""Flaws of reasoning that show on the surface: an answer against itself, a cause taken for its effect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from steelyard.judges.embedded.meaning import plain, similarity, words
from steelyard.judges.embedded.support import Read

CLAUSE_ZH, CLAUSE_EN = r"[^，,。；;]{2,60}", r"[^,.;]{4,120}"
BY = r"because(?: of)?|due to|owing to|(?:is|was|were|are) caused by|results? from|resulted from"
MAKES = r"(?<!is )(?<!are )(?<!was )(?<!were )(?:causes?|caused(?! by)|leads? to|led to|results? in|resulted in)"
# Each way to name a cause and its effect; the groups say which is which.
CAUSAL = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:因为|由于)(?P<cause>{CLAUSE_ZH})[，,]?(?:所以|因此|因而|导致|从而|使得?|造成)(?P<effect>{CLAUSE_ZH})",
        rf"(?P<cause>[^，,。；;因为由于]{{2,60}})[，,]?(?:导致|造成|引起|引发|使得)了?(?P<effect>{CLAUSE_ZH})",
        rf"(?P<effect>{CLAUSE_ZH})(?:是因为|是由于|源于|起因于|的原因是)(?P<cause>{CLAUSE_ZH})",
        rf"\bbecause (?P<cause>{CLAUSE_EN}), (?P<effect>{CLAUSE_EN})",
        rf"(?P<effect>{CLAUSE_EN}?),? (?:{BY}) (?P<cause>{CLAUSE_EN})",
        rf"(?P<cause>{CLAUSE_EN}?) {MAKES} (?P<effect>{CLAUSE_EN})",
    )
)
LONGEST_READ = 20_000
# How much better the crossed pairing must be before a cause and an effect count as swapped.
CROSSED = 0.5
CROSSED_AT_LEAST = 1.3
SAME_MATTER = 0.75
# Clashes that leave no room: a negation or a direction. Two numbers in one answer may both be right.
OUTRIGHT = ("negation", "direction")


class Link(NamedTuple):
    cause: str
    effect: str


@lru_cache(maxsize=512)
def links(text: str) -> tuple[Link, ...]:
    """The causes and effects that a text names as such."""
    folded = plain(text[:LONGEST_READ])
    found = (match for pattern in CAUSAL for match in pattern.finditer(folded))
    pairs = (Link(match["cause"].strip(), match["effect"].strip()) for match in found)
    return tuple(link for link in pairs if words(link.cause) and words(link.effect))


def swapped(answer: str, passages: Sequence[str]) -> Link | None:
    """A link of the answer that a passage has the other way round."""
    mine, theirs = links(answer), [link for passage in passages for link in links(passage)]
    if not mine or not theirs:
        return None
    cosines = similarity([text for link in mine for text in link], [text for link in theirs for text in link])
    for row, link in enumerate(mine):
        for column in range(len(theirs)):
            pair = cosines[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            straight, crossed = pair[0, 0] + pair[1, 1], pair[0, 1] + pair[1, 0]
            if crossed - straight >= CROSSED and crossed >= CROSSED_AT_LEAST:
                return link
    return None


def against_itself(claims: Sequence[str], question: str, read: Read) -> tuple[str, str] | None:
    """Two claims of one answer that cannot both hold."""
    near = similarity(claims, claims)
    for second, claim in enumerate(claims):
        for first in range(second):
            if near[first, second] < SAME_MATTER:
                continue
            found = read([claims[first]], question).support(claim)
            clashes = found.label == "contradicted" and found.clash in OUTRIGHT
            if clashes or _denies(claims[first], claim):
                return claims[first], claim
    return None


NEGATOR = re.compile(r"不(?=\w)|没有?|未|并非|\b(?:not|never|do(?:es)? not|did not|no longer|cannot)\b ?|n't\b")


def _denies(first: str, second: str) -> bool:
    """Whether two claims say the same but for one negation."""
    counts = [len(NEGATOR.findall(plain(text))) for text in (first, second)]
    bare = [set(words(NEGATOR.sub("", plain(text)))) for text in (first, second)]
    return abs(counts[0] - counts[1]) == 1 and bool(bare[0]) and bare[0] == bare[1]
