"""Steelyard (杆秤) evaluates what language models say, item by item, with evidence.

    >>> import steelyard
    >>> results = steelyard.evaluate("answers.jsonl", protocol="atomic", judge="openai:gpt-4o-mini")

Names are loaded when first used; importing the package does nothing but define them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.errors import (
        ConfigError,
        InputError,
        JudgeError,
        MissingExtra,
        NoReadableRow,
        PromptError,
        SteelyardError,
        StoreError,
        TranscriptError,
    )
    from steelyard.evaluation import evaluate, evaluate_async
    from steelyard.judges.base import Judge
    from steelyard.judges.chat import ChatJudge
    from steelyard.judges.endpoint import Endpoint
    from steelyard.judges.recorded import RecordedJudge
    from steelyard.judges.scripted import ScriptedJudge
    from steelyard.protocols import Protocol
    from steelyard.protocols.rubric import rubric
    from steelyard.records import Ask, DialogueSample, RagSample, Reply, Turn, Unjudged, Verdict
    from steelyard.reports.results import Results

__version__ = "0.1.0"

_HOMES = {
    "errors": (
        "ConfigError", "InputError", "JudgeError", "MissingExtra", "NoReadableRow", "PromptError", "SteelyardError",
        "StoreError", "TranscriptError",
    ),
    "evaluation": ("evaluate", "evaluate_async"),
    "judges.base": ("Judge",),
    "judges.chat": ("ChatJudge",),
    "judges.endpoint": ("Endpoint",),
    "judges.recorded": ("RecordedJudge",),
    "judges.scripted": ("ScriptedJudge",),
    "protocols": ("Protocol",),
    "protocols.rubric": ("rubric",),
    "records": ("Ask", "DialogueSample", "RagSample", "Reply", "Turn", "Unjudged", "Verdict"),
    "reports.results": ("Results",),
}  # fmt: skip

__all__ = [
    "Ask",
    "ChatJudge",
    "ConfigError",
    "DialogueSample",
    "Endpoint",
    "InputError",
    "Judge",
    "JudgeError",
    "MissingExtra",
    "NoReadableRow",
    "PromptError",
    "Protocol",
    "RagSample",
    "RecordedJudge",
    "Reply",
    "Results",
    "ScriptedJudge",
    "SteelyardError",
    "StoreError",
    "TranscriptError",
    "Turn",
    "Unjudged",
    "Verdict",
    "evaluate",
    "evaluate_async",
    "rubric",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"steelyard.{module}"), name)
    raise AttributeError(f"module 'steelyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
