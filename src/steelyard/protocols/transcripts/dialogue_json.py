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
# What a row holds as long as its own text has not ended the report before its end.
ROW_KEY = re.compile(r'"(?:criteria_results|criterion_id|result)"\s*:')
RESULT_KEY = re.compile(r'"result"\s*:')


class DialogueRow(NamedTuple):
    """One criterion as report 1 has it; what is not a string is not read as one."""

    turn: int
    id: int
    content: str
    result: str | None


class DialogueReport(NamedTuple):
    """The rows of report 1, the rounds it names (also empty ones), how many entries of it could not be read, whether
    its JSON had to be mended, and whether the text of a criterion may have written a part of it."""

    rows: list[DialogueRow]
    rounds: list[int]
    unread: int = 0
    repaired: bool = False
    forged: bool = False


FORGED = DialogueReport([], [], unread=1, forged=True)


class _RepeatedKey(Exception):
    """A key stands twice in an object, with different values."""


class PlacedReport(NamedTuple):
    """A report and where in the text it stands."""

    report: DialogueReport
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
            try:
                value, stop = _decoded(text, start)
            except _RepeatedKey:
                return [PlacedReport(FORGED, start, len(text))]
            if report := _report(value):
                found.append(PlacedReport(report, start, stop))
                end = stop
                break
            failures += 1
    if not found and last is not None:
        report = _repaired(text[last : last + LONGEST])
        if report:
            found.append(PlacedReport(report._replace(repaired=True), last, len(text)))
    return [_checked(text, one, next_one) for one, next_one in zip(found, [*found[1:], None], strict=False)]


def _checked(text: str, placed: PlacedReport, following: PlacedReport | None) -> PlacedReport:
    """The report, unless more of its rows stand behind its end, or another report on the same line."""
    rest = text[placed.end : following.start if following else len(text)]
    cut = ROW_KEY.search(rest) or (following and "\n" not in rest)
    return placed._replace(report=FORGED) if cut else placed


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
        return json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs) and any(held[key] != value for key, value in pairs):
        raise _RepeatedKey
    return held


def _repaired(text: str) -> DialogueReport | None:
    """What the text would be if its end had not been cut off; short texts are mended further."""
    from json_repair import repair_json

    try:
        return _report(json.loads(_closed(text.rstrip(FENCED)), strict=False, object_pairs_hook=_once))
    except _RepeatedKey:
        return FORGED
    except (ValueError, RecursionError):
        pass
    try:
        report = _report(repair_json(text, return_objects=True)) if len(text) <= REPAIRABLE else None
    except Exception:
        # The library promises nothing about text that is not JSON at all; then there is no report.
        return None
    # The library keeps the last of two values for a key, and drops what it cannot place.
    return FORGED if report and len(RESULT_KEY.findall(text)) > len(report.rows) + report.unread else report


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


def _report(found: Any) -> DialogueReport | None:
    rounds = found.get("evaluation_report") if isinstance(found, dict) else None
    if not isinstance(rounds, list):
        return None
    report = DialogueReport([], [])
    for position, entry in enumerate(rounds, start=1):
        if not isinstance(entry, dict):
            report = report._replace(unread=report.unread + 1)
            continue
        turn = _number(entry.get("round"), position)
        report.rounds.append(turn)
        results = entry.get("criteria_results")
        before = 0
        for place, result in enumerate(results if isinstance(results, list) else [], start=1):
            if isinstance(result, dict) and isinstance(content := result.get("content"), str):
                stated = result.get("result")
                number = _number(result.get("criterion_id"), place)
                # Rows are numbered upwards; one that is not may come out of the text of another.
                report = report._replace(forged=report.forged or number <= before)
                before = number
                report.rows.append(DialogueRow(turn, number, content, stated if isinstance(stated, str) else None))
            else:
                report = report._replace(unread=report.unread + 1)
    return report


def _number(value: Any, position: int) -> int:
    """The number as stated if it can be one, else the position in the list."""
    if isinstance(value, str) and len(value) < 6 and value.strip().isdecimal():
        value = int(value)
    usable = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LAST_TURN
    return value if usable else position
