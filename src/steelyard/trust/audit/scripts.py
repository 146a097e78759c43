"""Simplified and Traditional Chinese, one into the other."""

from __future__ import annotations

from typing import Any, Literal

from steelyard.text import converted

Direction = Literal["s2t", "t2s"]


def in_script(value: Any, direction: Direction) -> Any:
    """A text, or every text in lists and mappings."""
    if isinstance(value, str):
        return converted(value, direction)
    if isinstance(value, dict):
        return {key: in_script(entry, direction) for key, entry in value.items()}
    return [in_script(entry, direction) for entry in value] if isinstance(value, list | tuple) else value
