"""A judge with scripted replies, for tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from steelyard.errors import invalid_field
from steelyard.judges.base import Judge
from steelyard.records import Ask, Reply, ReplyData, Unjudged, Usage

Line = Mapping[str, Any] | ReplyData | Unjudged
"""One reply: its data as a dict or as the reply model, or why there is none."""

Part = Line | Callable[[Ask], Line | None] | Sequence[Line | Callable[[Ask], Line | None]]
Script = Mapping[str, Part] | Callable[[Ask], Line | None]


class ScriptedJudge(Judge):
    """Answers by task: always the same, by a function of the ask, or from a list, one after the other.

    judge = ScriptedJudge({"atomic.split": {"atoms": [{"id": 1, "text": "…"}]}, "atomic.judge": by_function})

    A function may return None for "not in my script". What it was asked is kept in `asks`.
    """

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self.asks: list[Ask] = []
        self._script = script if callable(script) else {task: _line_up(part) for task, part in script.items()}

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        self.asks.append(ask)
        line = self._line(ask)
        if line is None:
            return Unjudged(reason="not_scripted", detail=f"the script has no (further) reply for {ask.task}")
        if isinstance(line, Unjudged):
            return line
        # By name and value: a script may use another model of the same shape.
        data = line.model_dump() if isinstance(line, ReplyData) else line
        try:
            return Reply(data=ask.reply.model_validate(data), usage=Usage(calls=1))
        except ValidationError as error:
            return Unjudged(reason="invalid_reply", detail=f"the script's reply for {ask.task}: {invalid_field(error)}")

    def _line(self, ask: Ask) -> Line | None:
        part = self._script if callable(self._script) else self._script.get(ask.task)
        if isinstance(part, deque):
            part = part.popleft() if part else None
        return part(ask) if callable(part) else part


def _line_up(part: Part) -> Any:
    return deque(part) if isinstance(part, Sequence) else part
