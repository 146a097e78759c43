"""The judge in the box: a network that reads, and little around it; on the CPU, offline, the same answer every time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.judges.embedded.judge import EmbeddedJudge

__all__ = ["EmbeddedJudge"]


def __getattr__(name: str) -> Any:
    if name != "EmbeddedJudge":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from steelyard.judges.embedded.judge import EmbeddedJudge

    return EmbeddedJudge


def __dir__() -> list[str]:
    return __all__
