"""The sentences of the passages that speak to a question, best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steelyard.judges.embedded.meaning import similarity, words
from steelyard.judges.embedded.questions import question_of
from steelyard.text import sentences

# Sentences this near to the question answer it, as far as this judge can tell.
ANSWERING = 0.3
MISFIT = 0.75
"""What is left of a sentence's strength where it lacks the kind of thing that is asked for."""
NEARLY_AS_GOOD = 0.85
SAME = 0.8
LONGEST_SENTENCE = 300


class Ranked(NamedTuple):
    text: str
    passage: int
    strength: float


def ranked(question: str, passages: Sequence[str]) -> list[Ranked]:
    """Every sentence of the passages with how well it fits the question, best first, each once."""
    asked = question_of(question)
    found: dict[str, int] = {}
    for index, passage in enumerate(passages):
        for sentence in sentences(passage):
            if words(sentence):
                found.setdefault(sentence[:LONGEST_SENTENCE], index)
    if not found:
        return []
    texts = list(found)
    cosines = similarity([question], texts)[0]
    graded = [
        Ranked(text, found[text], _strength(float(cosine), asked.overlap(text), asked.typed(text)))
        for text, cosine in zip(texts, cosines, strict=True)
    ]
    return sorted(graded, key=lambda one: -one.strength)


def _strength(cosine: float, overlap: float, typed: bool | None) -> float:
    return (max(cosine, 0.0) + overlap) / 2 * (MISFIT if typed is False else 1.0)


def best_sentences(question: str, passages: Sequence[str], most: int = 2) -> list[Ranked]:
    """The few sentences that answer the question, none where nothing does; no two say the same."""
    kept: list[Ranked] = []
    # What is said of the Basic card answers no question about the Platinum card.
    strange = {name for name in question_of(question).names if name.isascii()} - set(words(" ".join(passages)))
    candidates = [] if strange else ranked(question, passages)
    for one in candidates:
        if one.strength < max(ANSWERING, NEARLY_AS_GOOD * candidates[0].strength) or len(kept) == most:
            break
        if not kept or float(similarity([one.text], [other.text for other in kept]).max()) < SAME:
            kept.append(one)
    return kept
