"""Judges: whoever answers asks. Names are loaded when first used, so that importing this costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.judges.base import Judge
    from steelyard.judges.chat import ChatJudge
    from steelyard.judges.embedded import EmbeddedJudge
    from steelyard.judges.endpoint import Endpoint, Price
    from steelyard.judges.limiter import Limiter
    from steelyard.judges.local import LocalJudge
    from steelyard.judges.panel import Member, PanelJudge
    from steelyard.judges.recorded import RecordedJudge, Recorder
    from steelyard.judges.routed import RoutedJudge
    from steelyard.judges.scripted import ScriptedJudge
    from steelyard.judges.verifying import VerifyingJudge

__all__ = [
    "ChatJudge",
    "EmbeddedJudge",
    "Endpoint",
    "Judge",
    "Limiter",
    "LocalJudge",
    "Member",
    "PanelJudge",
    "Price",
    "RecordedJudge",
    "Recorder",
    "RoutedJudge",
    "ScriptedJudge",
    "VerifyingJudge",
]

_HOMES = {
    "ChatJudge": "chat",
    "EmbeddedJudge": "embedded",
    "Endpoint": "endpoint",
    "Limiter": "limiter",
    "Judge": "base",
    "LocalJudge": "local",
    "Member": "panel",
    "PanelJudge": "panel",
    "Price": "endpoint",
    "RecordedJudge": "recorded",
    "Recorder": "recorded",
    "RoutedJudge": "routed",
    "ScriptedJudge": "scripted",
    "VerifyingJudge": "verifying",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
