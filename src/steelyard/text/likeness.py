"""How much of their wording two short texts share, whatever the language: cheap, and the same every time."""

from __future__ import annotations

import re
from collections.abc import Set

from steelyard.text import HAN, fold

WORD = re.compile(rf"{HAN.pattern}+|\d+(?:[.,]\d+)*|(?:(?!{HAN.pattern})[^\W\d_])+")


def fine_word_pieces(text: str) -> set[str]:
    """What can recur when a text is reworded: pairs of Chinese characters, beginnings of words, numbers.

    Finer than `text.word_pieces`, which judges rely on: single characters and short words count too.
    """
    pieces: set[str] = set()
    for match in WORD.finditer(fold(text).casefold()):
        word = match.group()
        if HAN.match(word):
            pieces.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word[0].isdigit():
            pieces.add(word)
        elif len(word) > 2:
            pieces.add(word[:5])
    return pieces


def likeness(one: Set[str], other: Set[str]) -> float:
    """The share of the pieces of both that both have (Dice): 1 for the same words, 0 for none in common."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0
