"""The claims of an answer, each with its kind, what it leans on, and how the passages stand to it."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from steelyard.judges.embedded.excerpts import words
from steelyard.judges.embedded.kinds import Kind, is_fallback, kind_of, yes_or_no
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.support import ClaimInContext, PassageReading, Support
from steelyard.text import in_simplified, sentences
from steelyard.text.suspicion import signs

Standing = Literal["supported", "partial", "unsupported", "no_claim"]

# A view or an advice is nobody's to check, unless the passages speak to it beyond doubt.
SURELY = 0.8
# A statement of so few words is understood only with the sentence it is a phrase of, or with what it answers.
SHORT = 4
LONGEST_SEARCHED = 40
LEANS = re.compile(
    r"\W*(?:(?:and|but|so|also|then|however) )?(?:it|its|they|their|them|this|that|these|those|he|his|she|her|there"
    r"|both|the (?:former|latter))\b"
    r"|\W*(?:而且|并且|此外|另外|同时|但是?|不过|所以|因此|也|还)?(?:它|他|她|其|该|此|这|那|本|两者|前者|后者)",
    re.IGNORECASE,
)


class Checked(NamedTuple):
    """A claim of the answer, and what the passages say to it."""

    text: str
    kind: Kind
    support: Support

    @property
    def is_checkable(self) -> bool:
        if self.kind in ("opinion", "advice", "hedge"):
            return self.support.label != "unknown" and self.support.confidence >= SURELY
        return self.kind == "claim"


class Statement(NamedTuple):
    """A sentence of the answer with its claims."""

    text: str
    claims: tuple[Checked, ...]

    @property
    def checked(self) -> list[Checked]:
        return [claim for claim in self.claims if claim.is_checkable]

    def labelled(self, label: str) -> list[Checked]:
        return [claim for claim in self.checked if claim.support.label == label]

    @property
    def standing(self) -> Standing:
        checked, supported = len(self.checked), len(self.labelled("supported"))
        if not checked:
            return "no_claim"
        return "supported" if supported == checked else "partial" if supported else "unsupported"

    @property
    def confidence(self) -> float | None:
        """How probable it is that the passages support what they are found to support, and nothing else: as the least
        certain claim has it."""
        likely = (
            odds.supported if label == "supported" else 1 - odds.supported
            for label, odds, *_ in (claim.support for claim in self.checked)
        )
        return min(likely, default=None)


def in_context(texts: Sequence[str], answer: str, question: str) -> list[ClaimInContext]:
    """Each text with what it leans on: its own sentence, the one before it, or the question."""
    said = sentences(answer)
    whole, starts = "\n".join(said), [0, *accumulate(len(sentence) + 1 for sentence in said)]
    places = [whole.find(text[:LONGEST_SEARCHED]) for text in texts]
    return [
        ClaimInContext(text, _leaned_on(text, said, bisect(starts, at) - 1 if said and at >= 0 else None, question))
        for text, at in zip(texts, places, strict=True)
    ]


def _leaned_on(text: str, said: Sequence[str], place: int | None, question: str) -> str:
    if len(words(text)) <= SHORT:
        is_phrase = place is not None and len(said[place]) > 2 * len(text)
        return said[place] if place is not None and is_phrase else question
    if not LEANS.match(in_simplified(text[:LONGEST_SEARCHED])):
        return ""
    return said[place - 1] if place else question


def statements(texts: Sequence[str], answer: str, question: str, reading: PassageReading) -> list[Statement]:
    """Every sentence with its claims, all looked up in one go."""
    parts = [_claims(text, question) for text in texts]
    claims = in_context([text for part in parts for text, _ in part], answer, question)
    found = iter(reading.supports(claims))
    return [
        Statement(text, tuple(Checked(claim, kind, next(found)) for claim, kind in part))
        for text, part in zip(texts, parts, strict=True)
    ]


def _claims(sentence: str, question: str) -> list[tuple[str, Kind]]:
    if yes_or_no(sentence) is not None:
        return [(sentence, "claim")]
    # What is said to the judge states nothing about the subject.
    is_empty = kind_of(sentence, question) in ("greeting", "question", "meta")
    if is_empty or is_fallback(sentence, question) or signs(sentence):
        return []
    pieces = [atom.text for atom in split(sentence, question)] or [sentence]
    return [(piece, kind_of(piece, question)) for piece in dict.fromkeys(pieces)]
