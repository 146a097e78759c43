"""Finding report 1 of `dialogue`, a JSON object, in whatever a model wrote around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from steelyard.transcripts.lines import more_than_one

KEY = re.compile(r'"evaluation_report"')
ATTEMPTS = 8
REPAIRABLE = 200_000
LAST_TURN = 99_999


class Row(NamedTuple):
    """One criterion as report 1 has it; what is not a string is not read as one."""

    turn: int
    id: int
    content: str
    result: str | None


class Report(NamedTuple):
    """The rows of report 1, the rounds it names (also empty ones), and whether its JSON had to be mended."""

    rows: list[Row]
    rounds: list[int]
    repaired: bool = False


def find_report(text: str, *, own_line: bool) -> Report | None:
    """The object that holds an evaluation report; with `own_line`, only one that begins its line.

    Criteria may quote such an object. Beside report 2 it stands inside a line, so position tells them apart.
    """
    starts = [start for start in _starts(text) if not own_line or _begins_line(text, start)]
    found: Report | None = None
    end = 0
    for start in sorted(set(starts)):
        value, stop = _decoded(text, start) if start >= end else (None, 0)
        if report := _report(value):
            if found and report != found:
                raise more_than_one()
            found, end = report, stop
    if found:
        return found
    for start in starts[-1:]:
        report = _report(_repaired(text[start : start + REPAIRABLE]))
        if report:
            return report._replace(repaired=True)
    return None


def _starts(text: str) -> Iterator[int]:
    """Braces that may open the object: the nearest few before each of the first few mentions of its key."""
    for _, key in zip(range(ATTEMPTS), KEY.finditer(text), strict=False):
        start = key.start()
        for _ in range(ATTEMPTS):
            start = text.rfind("{", 0, start)
            if start < 0:
                break
            yield start


def _begins_line(text: str, start: int) -> bool:
    return not text[text.rfind("\n", 0, start) + 1 : start].strip()


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """The object that begins there and where it ends; None where there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0


def _repaired(text: str) -> Any:
    from json_repair import repair_json

    try:
        return repair_json(text, return_objects=True)
    except Exception:
        # The library promises nothing about text that is not JSON at all; then there is no report.
        return None


def _report(found: Any) -> Report | None:
    rounds = found.get("evaluation_report") if isinstance(found, dict) else None
    if not isinstance(rounds, list):
        return None
    report = Report([], [])
    for position, entry in enumerate(rounds, start=1):
        if not isinstance(entry, dict):
            continue
        turn = _number(entry.get("round"), position)
        report.rounds.append(turn)
        results = entry.get("criteria_results")
        for place, result in enumerate(results if isinstance(results, list) else [], start=1):
            if isinstance(result, dict) and isinstance(content := result.get("content"), str):
                stated = result.get("result")
                number = _number(result.get("criterion_id"), place)
                report.rows.append(Row(turn, number, content, stated if isinstance(stated, str) else None))
    return report


def _number(value: Any, position: int) -> int:
    """The number as stated if it can be one, else the position in the list."""
    if isinstance(value, str) and len(value) < 6 and value.strip().isdecimal():
        value = int(value)
    usable = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LAST_TURN
    return value if usable else position
