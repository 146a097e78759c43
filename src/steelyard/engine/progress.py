"""Progress output: a live line, plain lines, JSON lines, or nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from html import escape
from importlib import import_module
from typing import Any, Literal, Self, TextIO

from steelyard.engine.runner import Tally

Style = Literal["auto", "live", "plain", "json", "quiet", "notebook"]
SECONDS_BETWEEN = {"live": 0.1, "plain": 5.0, "json": 1.0, "notebook": 0.3}


def snapshot(tally: Tally, seconds: float, in_flight: int | None) -> dict[str, Any]:
    """The state of a run as a dict, for JSON lines."""
    rate = tally.done / seconds if seconds > 0 else 0.0
    left = None if tally.total is None else max(0, tally.total - tally.done - tally.skipped - tally.bad_rows)
    return {
        "done": tally.done,
        "total": tally.total,
        "skipped": tally.skipped,
        "bad_rows": tally.bad_rows,
        "judged": tally.statuses["judged"],
        "partial": tally.statuses["partial"],
        "failed": tally.statuses["failed"],
        "rate": round(rate, 3),
        "eta_seconds": round(left / rate) if left is not None and rate else None,
        "calls": tally.usage.calls,
        "prompt_tokens": tally.usage.prompt_tokens,
        "completion_tokens": tally.usage.completion_tokens,
        "cost": tally.usage.cost,
        "in_flight": in_flight,
        "errors": dict(tally.errors),
        "seconds": round(seconds, 3),
    }


def line(state: dict[str, Any]) -> str:
    """The state of a run as one line of text."""
    passed = state["done"] + state["skipped"] + state["bad_rows"]
    parts = [f"{passed}/{state['total'] if state['total'] is not None else '?'}"]
    parts.append(f"{state['rate']:.1f}/s")
    if state["eta_seconds"] is not None:
        minutes, seconds = divmod(state["eta_seconds"], 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    if state["in_flight"] is not None:
        parts.append(f"{state['in_flight']} in flight")
    parts.append(f"{state['calls']} calls")
    if state["cost"] is not None:
        parts.append(f"${state['cost']:.4f}")
    parts += [f"{count} {reason}" for reason, count in state["errors"].items()]
    return " · ".join(parts)


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython is not loaded for the question."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get is not None and hasattr(get(), "kernel")


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """Call `tick()` on every event; it prints at the interval of its style."""

    def __init__(
        self, style: Style, tally: Tally, in_flight: Callable[[], int | None], stream: TextIO | None = None
    ) -> None:
        self.stream = stream or sys.stderr
        if style == "auto":
            style = "notebook" if stream is None and in_notebook() else "live" if self.stream.isatty() else "plain"
        self.style, self.tally, self._in_flight = style, tally, in_flight
        self._started = self._last = time.monotonic()
        self._cell: Any = None

    def __enter__(self) -> Self:
        return self

    def tick(self) -> None:
        if self.style == "quiet":
            return
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN[self.style]:
            self._last = now
            self._print(now)

    def __exit__(self, *_: object) -> None:
        if self.style == "quiet":
            return
        self._print(time.monotonic())
        if self.style == "live":
            self.stream.write("\n")

    def _print(self, now: float) -> None:
        state = snapshot(self.tally, now - self._started, self._in_flight())
        if self.style == "notebook":
            self._show(state)
            return
        if self.style == "json":
            text = json.dumps(state) + "\n"
        elif self.style == "live":
            text = f"\r\x1b[2K{line(state)}"
        else:
            text = line(state) + "\n"
        self.stream.write(text)
        self.stream.flush()

    def _show(self, state: dict[str, Any]) -> None:
        """A bar below the cell, which is drawn over each time. The text holds numbers and our own words only."""
        shown = {"text/plain": line(state), "text/html": bar(state)}
        if self._cell is None:
            self._cell = import_module("IPython.display").display(shown, raw=True, display_id=True)
        else:
            self._cell.update(shown, raw=True)


def bar(state: dict[str, Any]) -> str:
    """The state as a progress bar in HTML."""
    passed = state["done"] + state["skipped"] + state["bad_rows"]
    known = f' value="{passed}" max="{max(1, state["total"])}"' if state["total"] is not None else ""
    return f"<div><progress{known}></progress> {escape(line(state))}</div>"
