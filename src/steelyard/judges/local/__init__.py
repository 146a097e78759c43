"""The `local` judge: the embedded judge, and a language model in this process where its network is in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.judges.local.judge import LocalJudge, make_local

__all__ = ["LocalJudge", "make_local"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from steelyard.judges.local import judge

    return getattr(judge, name)
