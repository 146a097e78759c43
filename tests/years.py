"""The years that a text names, for tests of planted errors."""

from __future__ import annotations

import re


def years(text: str) -> list[str]:
    """The years of the common era that a text names in digits."""
    return re.findall(r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)", text)
