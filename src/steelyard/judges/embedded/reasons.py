"""Reasons in the reader's language and script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from steelyard.text import fold, in_simplified, in_traditional, language_of, places

PromptLanguage = Literal["zh", "en"]

LONGEST = 60
# Parts that come from the judged text; all others are looked for in the passages first.
OWN = frozenset(("claimed", "claim"))


class Phrasing:
    """Says a sentence in English, Simplified or Traditional Chinese.

    What is put into it is written as the sources or the texts write it, never converted.
    """

    def __init__(self, language: PromptLanguage, *texts: str, sources: Sequence[str] = ()) -> None:
        self.is_chinese = language == "zh"
        self._is_traditional = self.is_chinese and language_of(*texts) == "zh-Hant"
        # The question comes first, and what is judged last.
        self._texts, self._sources = texts[::-1], tuple(sources)
        self._folded: dict[str, str] = {}

    def __call__(self, zh: str, en: str, **parts: object) -> str:
        frame = (in_traditional(zh) if self._is_traditional else zh) if self.is_chinese else en
        return frame.format(**{name: _short(self._written(name, part)) for name, part in parts.items()})

    def _written(self, name: str, part: object) -> str:
        if not isinstance(part, str):
            return str(part)
        sources = (*self._texts, *self._sources) if name in OWN else (*self._sources, *self._texts)
        return self._as_written(part, sources)

    def _as_written(self, part: str, sources: Sequence[str]) -> str:
        """The part as the first source writes it that has it, in whatever width, script and case."""
        if not part or any(part in source for source in sources):
            return part
        wanted = _plain(part)
        for source in sources:
            if source not in self._folded:
                self._folded[source] = _plain(source)
            plain = self._folded[source]
            if len(plain) == len(source) and (at := next(places(plain, wanted, 0), None)) is not None:
                return source[at : at + len(wanted)]
        return part


def _plain(text: str) -> str:
    return in_simplified(fold(text)).lower()


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
