"""Reasons in the reader's language and script."""

from __future__ import annotations

from typing import Literal

from steelyard.text import in_traditional, language_of, reason_in_traditional

PromptLanguage = Literal["zh", "en"]


class Voice:
    """Says a sentence in English, Simplified or Traditional Chinese; what is put into it stays verbatim."""

    def __init__(self, language: PromptLanguage, *texts: str) -> None:
        self.chinese = language == "zh"
        self._traditional = self.chinese and language_of(*texts) == "zh-Hant"

    def __call__(self, zh: str, en: str, **parts: object) -> str:
        frame = (in_traditional(zh) if self._traditional else zh) if self.chinese else en
        return frame.format(**{name: _short(str(part)) for name, part in parts.items()})

    def told(self, reason: str) -> str:
        """A reason that was made elsewhere, in this voice's script."""
        return reason_in_traditional(reason) if self._traditional else reason


def voice_for(*texts: str) -> Voice:
    """The voice that suits these texts, where no ask says which."""
    return Voice("en" if language_of(*texts) == "en" else "zh", *texts)


LONGEST = 60


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
