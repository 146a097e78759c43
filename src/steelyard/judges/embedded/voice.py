"""Reasons in the reader's language and script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from steelyard.judges.embedded.written import as_written
from steelyard.text import in_traditional, language_of, reason_in_traditional

if TYPE_CHECKING:
    from steelyard.judges.embedded.support import Read, Reading, Support

PromptLanguage = Literal["zh", "en"]

QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"")


class Voice:
    """Says a sentence in English, Simplified or Traditional Chinese.

    What is put into it is written as the sources or the texts write it, never converted.
    """

    def __init__(self, language: PromptLanguage, *texts: str, sources: Sequence[str] = ()) -> None:
        self.chinese = language == "zh"
        self._traditional = self.chinese and language_of(*texts) == "zh-Hant"
        # The question comes first, and what is judged last.
        self._texts, self._sources = texts[::-1], sources

    def __call__(self, zh: str, en: str, **parts: object) -> str:
        frame = (in_traditional(zh) if self._traditional else zh) if self.chinese else en
        return frame.format(**{name: _short(self._written(name, part)) for name, part in parts.items()})

    def said(self, reason: str) -> str:
        """A reason that was made in Simplified Chinese or English; what it holds in quotation marks is not its own."""
        requoted = QUOTED.sub(self._requoted, reason)
        return reason_in_traditional(requoted) if self._traditional else requoted

    def _requoted(self, found: re.Match[str]) -> str:
        quotation = found.group()
        return f"{quotation[0]}{self._written('', quotation[1:-1])}{quotation[-1]}"

    def _written(self, name: str, part: object) -> str:
        if not isinstance(part, str):
            return str(part)
        return as_written(part, (*self._texts, *self._sources) if name in OWN else (*self._sources, *self._texts))


# Parts that come from the judged text; all others are looked for in the passages first.
OWN = frozenset(("claimed", "claim", "shared", "extreme"))


def in_script(read: Read, language: PromptLanguage) -> Read:
    """Reads as `read` does, and gives reasons in the script of what is read about."""

    def reading(passages: Sequence[str], question: str = "", answer: str = "") -> Reading:
        return _InScript(read(passages, question, answer), language, passages, (question, answer))

    return reading


class _InScript:
    def __init__(self, reading: Reading, language: PromptLanguage, passages: Sequence[str], asked: Sequence[str]):
        self._reading, self._language, self._passages, self._asked = reading, language, passages, asked

    def support(self, claim: str) -> Support:
        return self.supports([claim])[0]

    def supports(self, claims: Sequence[str]) -> list[Support]:
        voice = Voice(self._language, *self._asked, *claims, sources=self._passages)
        return [found._replace(reason=voice.said(found.reason)) for found in self._reading.supports(claims)]


def voice_for(*texts: str) -> Voice:
    """The voice that suits these texts, where no ask says which."""
    return Voice("en" if language_of(*texts) == "en" else "zh", *texts)


LONGEST = 60


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
