"""Finding report 1 of `dialogue`, a JSON object, in whatever a model wrote around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

KEY = re.compile(r'"evaluation_report"')
ATTEMPTS = 8
# Each attempt that fails may read to the end of the text, so there is an end to them.
FAILURES = 64
# Mending anything else than a cut-off end takes quadratic time.
REPAIRABLE = 10_000
LONGEST = 1_000_000
FENCED = "`~ \t\r\n"
TOKEN = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
LAST_TURN = 99_999


class Row(NamedTuple):
    """One criterion as report 1 has it; what is not a string is not read as one."""

    turn: int
    id: int
    content: str
    result: str | None


class Report(NamedTuple):
    """The rows of report 1, the rounds it names (also empty ones), how many entries of it could not be read, and
    whether its JSON had to be mended."""

    rows: list[Row]
    rounds: list[int]
    unread: int = 0
    repaired: bool = False


class PlacedReport(NamedTuple):
    """A report and where in the text it stands."""

    report: Report
    start: int
    end: int


def find_reports(text: str, *, own_line: bool) -> list[PlacedReport]:
    """The objects that hold an evaluation report; with `own_line`, only those that begin their line.

    Criteria and flags may quote such an object. Beside report 2 it stands inside a line, so position tells them apart.
    """
    found: list[PlacedReport] = []
    failures, end = 0, 0
    last: int | None = None
    for key in KEY.finditer(text):
        if key.start() < end:
            continue
        if failures >= FAILURES:
            break
        for start in _starts(text, key.start(), end):
            if own_line and not _begins_line(text, start):
                continue
            last = start
            value, stop = _decoded(text, start)
            if report := _report(value):
                found.append(PlacedReport(report, start, stop))
                end = stop
                break
            failures += 1
    if not found and last is not None:
        report = _report(_repaired(text[last : last + LONGEST]))
        if report:
            found.append(PlacedReport(report._replace(repaired=True), last, len(text)))
    return found


def _starts(text: str, key: int, end: int) -> Iterator[int]:
    """Braces that may open the object: the nearest few before its key, the outermost of them last."""
    start = key
    for _ in range(ATTEMPTS):
        start = text.rfind("{", end, start)
        if start < 0:
            return
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
    """What the text would be if its end had not been cut off; short texts are mended further."""
    from json_repair import repair_json

    try:
        return json.loads(_closed(text.rstrip(FENCED)), strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        return repair_json(text, return_objects=True) if len(text) <= REPAIRABLE else None
    except Exception:
        # The library promises nothing about text that is not JSON at all; then there is no report.
        return None


def _closed(text: str) -> str:
    """The text with every string, list and object closed that is open at its end."""
    ends: list[str] = []
    quoted = False
    for token in TOKEN.finditer(text):
        mark = token.group()
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in "{[":
            ends.append("}" if mark == "{" else "]")
        elif not quoted and mark in "}]" and ends:
            ends.pop()
    whole = text + ('"' if quoted else "")
    return whole.removesuffix(",") + "".join(reversed(ends))


def _report(found: Any) -> Report | None:
    rounds = found.get("evaluation_report") if isinstance(found, dict) else None
    if not isinstance(rounds, list):
        return None
    report = Report([], [])
    for position, entry in enumerate(rounds, start=1):
        if not isinstance(entry, dict):
            report = report._replace(unread=report.unread + 1)
            continue
        turn = _number(entry.get("round"), position)
        report.rounds.append(turn)
        results = entry.get("criteria_results")
        for place, result in enumerate(results if isinstance(results, list) else [], start=1):
            if isinstance(result, dict) and isinstance(content := result.get("content"), str):
                stated = result.get("result")
                number = _number(result.get("criterion_id"), place)
                report.rows.append(Row(turn, number, content, stated if isinstance(stated, str) else None))
            else:
                report = report._replace(unread=report.unread + 1)
    return report


def _number(value: Any, position: int) -> int:
    """The number as stated if it can be one, else the position in the list."""
    if isinstance(value, str) and len(value) < 6 and value.strip().isdecimal():
        value = int(value)
    usable = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LAST_TURN
    return value if usable else position
