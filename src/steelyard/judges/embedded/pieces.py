"""Text cut into the pieces of a transformer's vocabulary: whole words where it has them, else parts of words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

TOKEN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3400-\u4dbf\u4e00-\u9fff]+|[^\w\s]|_")
# A part that does not begin its word is written so in vocabularies of this kind.
WITHIN = "##"
LONGEST_WORD = 60
REMEMBERED = 50_000


class Pieces:
    """A vocabulary: its pieces in the order of their numbers, the marks [CLS], [SEP] and [UNK] among them."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.begin, self.end, self._unknown = (self._numbers[mark] for mark in ("[CLS]", "[SEP]", "[UNK]"))
        self._known: dict[str, list[int]] = {}

    def of(self, text: str) -> list[int]:
        """The numbers of a text's pieces; case and accents do not count."""
        apart = unicodedata.normalize("NFD", text.lower())
        bare = "".join(character for character in apart if unicodedata.category(character) != "Mn")
        return [number for token in TOKEN.findall(bare) for number in self._of_word(token)]

    def _of_word(self, word: str) -> list[int]:
        if word not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[word] = self._cut(word)
        return self._known[word]

    def _cut(self, word: str) -> list[int]:
        """The longest piece that the word begins with, then the longest that goes on from there."""
        if len(word) > LONGEST_WORD:
            return [self._unknown]
        found, start = [], 0
        while start < len(word):
            before = WITHIN if start else ""
            ends = (end for end in range(len(word), start, -1) if before + word[start:end] in self._numbers)
            end = next(ends, None)
            if end is None:
                return [self._unknown]
            found.append(self._numbers[before + word[start:end]])
            start = end
        return found
