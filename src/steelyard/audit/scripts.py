"""Simplified and Traditional Chinese, one into the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

Direction = Literal["s2t", "t2s"]


@cache
def _converter(direction: Direction) -> Callable[[str], str]:
    from opencc import OpenCC

    convert: Callable[[str], str] = OpenCC(direction).convert
    return convert


def in_script(value: Any, direction: Direction) -> Any:
    """A text, or every text in lists and mappings."""
    if isinstance(value, str):
        return _converter(direction)(value)
    if isinstance(value, dict):
        return {key: in_script(entry, direction) for key, entry in value.items()}
    return [in_script(entry, direction) for entry in value] if isinstance(value, list | tuple) else value
