"""The sentences of the passages that speak to a question, best first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.judges.embedded.meaning import plain, similarity, words
from steelyard.judges.embedded.questions import Question, question_of
from steelyard.text import sentences

# Sentences this near to the question answer it, as far as this judge can tell.
ANSWERING = 0.3
MISFIT = 0.75
"""What is left of a sentence's strength where it lacks the kind of thing that is asked for."""
NEARLY_AS_GOOD = 0.85
SAME = 0.8
LONGEST_SENTENCE = 300
KINDRED = 0.1
COMPOUND = re.compile(r"(?<![\u4e00-\u9fff])[\u4e00-\u9fff]{2,3}(?![\u4e00-\u9fff])")


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


def _is_kindred(asked: Question, text: str) -> bool:
    """Whether a text names the same kind of thing: the last character of a short compound says what it is a kind of."""
    heads = [run[-1] for run in COMPOUND.findall(asked.about)]
    return bool(heads) and all(head in plain(text) for head in heads)


def best_sentences(question: str, passages: Sequence[str], most: int = 2) -> list[Ranked]:
    """The few sentences that answer the question, none where nothing does; no two say the same."""
    kept: list[Ranked] = []
    # What is said of the Basic card answers no question about the Platinum card.
    strange = {name for name in question_of(question).names if name.isascii()} - set(words(" ".join(passages)))
    candidates = [] if strange else ranked(question, passages)
    least = ANSWERING
    if candidates and candidates[0].strength < ANSWERING:
        # 年假 asked, 特别休假 written: where no sentence has the words, those of the same kind of thing are next.
        candidates = [one for one in candidates if _is_kindred(question_of(question), one.text)]
        least = KINDRED
    for one in candidates:
        if one.strength < max(least, NEARLY_AS_GOOD * candidates[0].strength) or len(kept) == most:
            break
        if not kept or float(similarity([one.text], [other.text for other in kept]).max()) < SAME:
            kept.append(one)
    return kept
