"""Two answers word by word: which words one has and the other has not. A Chinese character is a word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

# A run of letters and digits, a run of white space, or any other single sign; ideographs and kana stand alone.
WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|\s+|.", re.DOTALL)
# Matching takes longer than in proportion; beyond this nobody reads a difference word by word.
MOST_WORDS = 3000


class DiffPiece(NamedTuple):
    """Some words of an answer, and whether the other answer lacks them at this place."""

    text: str
    is_changed: bool


def word_changes(a: str, b: str) -> tuple[list[DiffPiece], list[DiffPiece]] | None:
    """Both answers cut where they differ; None where they are too long for that."""
    words = [WORD.findall(text) for text in (a, b)]
    if max(map(len, words)) > MOST_WORDS:
        return None
    pieces: tuple[list[DiffPiece], list[DiffPiece]] = ([], [])
    for what, a1, a2, b1, b2 in SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
        for side, own, (start, end) in zip(pieces, words, ((a1, a2), (b1, b2)), strict=True):
            if start < end:
                side.append(DiffPiece("".join(own[start:end]), what != "equal"))
    one, other = map(_joined, pieces)
    return one, other


def _joined(pieces: list[DiffPiece]) -> list[DiffPiece]:
    """Changed words with nothing but a space between them are one change."""
    found: list[DiffPiece] = []
    for at, piece in enumerate(pieces):
        is_gap = not piece.text.strip() and "\n" not in piece.text and 0 < at < len(pieces) - 1
        changed = piece.is_changed or (is_gap and pieces[at - 1].is_changed and pieces[at + 1].is_changed)
        if found and found[-1].is_changed == changed:
            found[-1] = DiffPiece(found[-1].text + piece.text, changed)
        else:
            found.append(DiffPiece(piece.text, changed))
    return found
