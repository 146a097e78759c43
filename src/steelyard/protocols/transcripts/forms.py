"""Patterns of the forms, written once in Simplified Chinese and English, matched in any script, case and width.

A line is matched in a folded copy that has the same length, so what a pattern finds is cut from the line itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from steelyard.text import converted

HAN = (0x3400, 0x9FFF)
# Taiwan writes 回覆 where OpenCC keeps 覆 apart; scores come in full width and with any dash for a minus.
ALSO = str.maketrans("覆０１２３４５６７８９−－–［］｛｝", "复0123456789---[]{}")


@cache
def _table() -> dict[int, int]:
    """Every Traditional character that OpenCC writes as one Simplified character, and `ALSO`."""
    traditional = [chr(point) for point in range(HAN[0], HAN[1] + 1)]
    simplified = converted("\n".join(traditional), "t2s").split("\n")
    pairs = zip(traditional, simplified, strict=True)
    return {ord(one): ord(other) for one, other in pairs if len(other) == 1 and one != other} | ALSO


@lru_cache(maxsize=16)
def folded(text: str) -> str:
    """The text as patterns see it: Simplified characters, plain digits; as long as before."""
    return text if text.isascii() else text.translate(_table())


def word_of(text: str) -> str:
    """A word as label tables have it: folded, lower case, without spaces, hyphens and decoration."""
    return re.sub(r"[\s*_`\-–—]", "", folded(text)).casefold()


class FormPattern:
    """A compiled pattern whose matches give the text as it was written."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = re.compile(pattern, flags | re.IGNORECASE)

    def fullmatch(self, text: str, start: int = 0) -> PatternMatch | None:
        return _hit(self.pattern.fullmatch(folded(text), start), text)

    def match(self, text: str, start: int = 0) -> PatternMatch | None:
        return _hit(self.pattern.match(folded(text), start), text)

    def search(self, text: str, start: int = 0) -> PatternMatch | None:
        return _hit(self.pattern.search(folded(text), start), text)

    def finditer(self, text: str, start: int = 0) -> Iterator[PatternMatch]:
        return (PatternMatch(match, text) for match in self.pattern.finditer(folded(text), start))


class PatternMatch:
    """What a form found: `hit[1]` is the first group as written, `hit.word(1)` as the pattern saw it."""

    __slots__ = ("_match", "_text")

    def __init__(self, match: re.Match[str], text: str) -> None:
        self._match, self._text = match, text

    def __getitem__(self, group: int) -> str:
        return self._text[slice(*self._match.span(group))] if self._match.start(group) >= 0 else ""

    def word(self, group: int = 0) -> str:
        return self._match[group] or ""

    def has(self, group: int) -> bool:
        return self._match.start(group) >= 0

    def first(self) -> str:
        """The first group that took part, as the pattern saw it."""
        return next(value for value in self._match.groups() if value is not None)

    @property
    def last(self) -> str:
        """The value of a field: patterns put it in their last group."""
        return self[self._match.re.groups]

    @property
    def start(self) -> int:
        return self._match.start()

    @property
    def end(self) -> int:
        return self._match.end()

    @property
    def numbered(self) -> bool:
        return any(self._match.groups())


def _hit(match: re.Match[str] | None, text: str) -> PatternMatch | None:
    return PatternMatch(match, text) if match else None
