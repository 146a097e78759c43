"""The sentences of an answer, each with what it claims and how the passages stand to every claim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from steelyard.judges.embedded.claims import Kind, is_fallback, kind_of
from steelyard.judges.embedded.fallacies import links
from steelyard.judges.embedded.meaning import words
from steelyard.judges.embedded.outright import OUTRIGHT, is_yes, spelt_out
from steelyard.judges.embedded.questions import question_of
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.support import Read, Reading, Support
from steelyard.judges.embedded.value_kinds import quantity_kind
from steelyard.text.quantities import quantity
from steelyard.text.suspicion import signs

Standing = Literal["supported", "partial", "unsupported", "no_claim"]


# An opinion is checked only where the passages speak to it beyond doubt.
SURELY = 0.8


class Claim(NamedTuple):
    text: str
    kind: Kind
    support: Support

    @property
    def checkable(self) -> bool:
        """A view or an advice is nobody's to check, unless the passages themselves speak to it."""
        if self.kind in ("opinion", "advice", "hedge"):
            if self.support.label == "supported":
                return self.support.probability >= SURELY
            return self.support.label == "contradicted" and self.support.clash is not None
        return self.kind == "claim"


class Statement(NamedTuple):
    text: str
    claims: tuple[Claim, ...]

    @property
    def checked(self) -> list[Claim]:
        return [claim for claim in self.claims if claim.checkable]

    @property
    def supported(self) -> list[Claim]:
        return [claim for claim in self.checked if claim.support.label == "supported"]

    @property
    def contradicted(self) -> list[Claim]:
        return [claim for claim in self.checked if claim.support.label == "contradicted"]

    @property
    def unknown(self) -> list[Claim]:
        return [claim for claim in self.checked if claim.support.label == "unknown"]

    @property
    def standing(self) -> Standing:
        if not self.checked:
            return "no_claim"
        if not self.supported:
            return "unsupported"
        return "supported" if len(self.supported) == len(self.checked) else "partial"

    @property
    def confidence(self) -> float | None:
        """How probable it is that the passages support what they are found to support, and nothing else: as probable as
        the least certain claim makes it. Only a reader that tells its odds is taken at its word."""
        if not self.checked or any(claim.support.odds is None for claim in self.checked):
            return None
        likely = (claim.support.probability for claim in self.supported)
        unlikely = (1 - claim.support.probability for claim in self.checked if claim.support.label != "supported")
        return round(min((*likely, *unlikely)), 4)


def repeats(claim: Claim, texts: Sequence[str]) -> bool:
    """Whether a claim repeats, or gets wrong, what stands in one of these texts of the passages."""
    quote = claim.support.quote
    return claim.support.label != "unknown" and bool(quote) and any(quote in text for text in texts if quote)


class Remembering:
    """A reading that looks up no claim twice: a sentence of one claim is also an atom, and a look may cost a second."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[str, Support] = {}

    def support(self, claim: str) -> Support:
        return self.supports([claim])[0]

    def supports(self, claims: Sequence[str]) -> list[Support]:
        new = [claim for claim in dict.fromkeys(claims) if claim not in self._known]
        self._known.update(zip(new, self._reading.supports(new) if new else (), strict=True))
        return [self._known[claim] for claim in claims]


# A cause that the passages speak of less than this is none of theirs, though they know its effect.
FOREIGN = 0.4


def read_statements(sentences: Sequence[str], question: str, reading: Reading, read: Read) -> list[Statement]:
    """Every sentence with its claims, all looked up in one go; a causal claim stands only with its cause."""
    parts = [_claims(sentence, question) for sentence in sentences]
    found = iter(reading.supports([text for part in parts for text, _ in part]))
    return [
        Statement(sentence, tuple(Claim(text, kind, _read(text, next(found), reading, read)) for text, kind in part))
        for sentence, part in zip(sentences, parts, strict=True)
    ]


def _read(text: str, support: Support, reading: Reading, read: Read) -> Support:
    if is_rounded(support):
        return support._replace(label="supported", clash=None)
    if support.label == "contradicted":
        return support
    if support.label == "supported" and support.quote and ORDINAL.search(text):
        # 第三排 may stand elsewhere in the passage, of something else; the quote itself must have it.
        alone = read([support.quote], "").support(text)
        if alone.label == "contradicted" and alone.clash == "ordinal":
            return alone._replace(reference=support.reference, quote=support.quote)
    for link in links(text):
        cause = reading.support(link.cause)
        if cause.label != "supported" and cause.probability < FOREIGN:
            return support._replace(label="unknown", probability=cause.probability, reason=cause.reason)
    return support


ORDINAL = re.compile(r"第[一二三四五六七八九十\d]|\d(?:st|nd|rd|th)\b", re.IGNORECASE)
ROUNDING = Fraction(11, 10)


def is_rounded(support: Support) -> bool:
    """Whether all that differs is a number told in round figures: 120万人 for 1,183,400人."""
    if support.clash != "quantity" or not support.claimed or not support.stated:
        return False
    if quantity_kind(support.stated, support.quote or "") != "statistic":
        return False
    claimed, stated = quantity(support.claimed), quantity(support.stated)
    if claimed is None or stated is None or claimed.unit != stated.unit or claimed.value * stated.value <= 0:
        return False
    larger, smaller = sorted((abs(claimed.value), abs(stated.value)), reverse=True)
    return larger <= ROUNDING * smaller and (_is_round(claimed.value) or _is_round(stated.value))


def _is_round(value: Fraction) -> bool:
    """Two leading digits and then zeros; 13 of 14 parts is another number, not a rounder one."""
    digits = str(abs(value.numerator)).rstrip("0") if value.denominator == 1 else ""
    return 0 < len(digits) <= 2 and abs(value) >= 100


def _claims(sentence: str, question: str) -> list[tuple[str, Kind]]:
    kind = kind_of(sentence, question)
    if question_of(question).kind == "yes_no" and is_yes(sentence) is not None:
        stated = spelt_out(question, sentence)
        return [(stated, "claim" if stated != sentence else "hedge")]
    # What is said to the judge states nothing about the subject.
    if kind in ("greeting", "question", "meta") or is_fallback(sentence, question) or signs(sentence):
        return []
    pieces = [_without_yes_or_no(atom.text) for atom in split(sentence, question)] or [_without_yes_or_no(sentence)]
    return [(piece, kind_of(piece, question)) for piece in dict.fromkeys(pieces)]


def _without_yes_or_no(claim: str) -> str:
    """不可以，园内不可骑车 denies once, not twice: the first word answers the question, the rest is the claim."""
    rest = OUTRIGHT.sub("", claim, count=1).lstrip("，,。.！! ") if OUTRIGHT.match(claim) else claim
    return rest if words(rest) else claim
