"""A gate for continuous integration: what a run must reach, how far it may fall behind another, and whether it does.

Scores of few samples move by chance. By default the gate therefore fails only where the data decide that a bar was
missed: the whole interval lies on the wrong side. What could not be measured never passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from steelyard.errors import ConfigError
from steelyard.records import Language, Record
from steelyard.reports.model import BOUNDS, Report, Scale
from steelyard.stats import Interval

if TYPE_CHECKING:
    from steelyard.calibration import Calibration
    from steelyard.comparison import Comparison, MetricChange

State = Literal["held", "barely_held", "barely_missed", "missed", "unmeasured"]
MAX_UNJUDGED = 0.05


FailOn = Literal["decided", "value", "doubt"]
"""When a bar counts as missed. decided: the whole interval lies on the wrong side; value: the number itself does;
doubt: anything but the whole interval on the right side."""

FAILS: dict[FailOn, tuple[State, ...]] = {
    "decided": ("missed", "unmeasured"),
    "value": ("missed", "barely_missed", "unmeasured"),
    "doubt": ("missed", "barely_missed", "barely_held", "unmeasured"),
}


class Bar(NamedTuple):
    """`accuracy >= 0.9`, in the scale of the metric."""

    metric: str
    sign: Literal[">=", ">", "<=", "<"]
    limit: float


class GateCheck(Record):
    """One bar and how it went. `kind` is require, corrected, drop, regression, unjudged or unfinished."""

    kind: str
    metric: str
    sign: str
    limit: float
    value: float | None
    interval: Interval | None
    n: int
    state: State
    passed: bool


class Gate(Record):
    """All bars of a gate. It is open when every one passed."""

    run: str
    baseline: str | None
    language: Language
    scale: Scale
    fail_on: FailOn
    passed: bool
    checks: tuple[GateCheck, ...]
    marks: tuple[tuple[str, str], ...] = Field(default=(), description="what makes run and baseline less comparable")


# --- what is asked for -----------------------------------------------------------------------------

BAR = re.compile(r"\s*+(\w++)\s*+(>=|<=|≥|≤|>|<)\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+(%?)\s*+")
SHARE = re.compile(r"\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+(%?)\s*+")


def parse_bar(text: str, scale: Scale) -> Bar:
    """`accuracy>=0.9`, `accuracy >= 90%`, `faithfulness>=85` (of 100)."""
    found = BAR.fullmatch(text)
    if not found:
        raise ConfigError(f"--require takes METRIC>=NUMBER (or >, <=, <), not {text!r}")
    sign = {"≥": ">=", "≤": "<="}.get(found[2], found[2])
    return Bar(found[1], sign, _in_scale(float(found[3]), bool(found[4]), scale, text))  # type: ignore[arg-type]


def parse_drops(given: Mapping[str, str], scale: Scale) -> dict[str, float]:
    """`accuracy=0.02`, `accuracy=2%`: how far a metric may fall."""
    drops = {}
    for metric, text in given.items():
        found = SHARE.fullmatch(text)
        if not found:
            raise ConfigError(f"--max-drop takes METRIC=NUMBER, not {metric}={text!r}")
        drops[metric] = _in_scale(float(found[1]), bool(found[2]), scale, f"{metric}={text}")
    return drops


def _in_scale(number: float, percent: bool, scale: Scale, text: str) -> float:
    """People write 0.9, 90 % and 90 for the same thing; on a scale of 100 points up to 1 is a share of it."""
    if scale == "number":
        return number
    top = BOUNDS[scale][1]
    if percent:
        number = number * top / 100
    elif scale == "points" and number <= 1:
        number *= top
    if number > top:
        hint = f" write {number / 100:g} or {number:g}%" if scale == "ratio" and number <= 100 else ""
        raise ConfigError(f"{text!r}: scores lie between 0 and {top:g};{hint}".rstrip(";"))
    return number


# --- how it went -----------------------------------------------------------------------------------


def state_of(value: float | None, interval: Interval | None, sign: str, limit: float) -> State:
    """On which side of the limit a number lies, and whether its interval agrees."""
    if value is None:
        return "unmeasured"
    held = _holds(value, sign, limit)
    if interval is None or len({held, *(_holds(end, sign, limit) for end in interval)}) > 1:
        return "barely_held" if held else "barely_missed"
    return "held" if held else "missed"


def _holds(value: float, sign: str, limit: float) -> bool:
    # A share of counts and a limit typed in decimals may differ in the last bit alone.
    near = abs(value - limit) <= 1e-12 * max(1.0, abs(limit))
    match sign:
        case ">=":
            return value > limit or near
        case "<=":
            return value < limit or near
        case ">":
            return value > limit and not near
        case _:
            return value < limit and not near


class _Measured(NamedTuple):
    value: float | None
    interval: Interval | None
    n: int


def gate(
    report: Report,
    bars: Sequence[Bar] = (),
    *,
    run: str = "",
    drops: Mapping[str, float] | None = None,
    comparison: Comparison | None = None,
    calibration: Calibration | None = None,
    fail_on: FailOn = "decided",
    max_unjudged: float = MAX_UNJUDGED,
    finished: bool = True,
) -> Gate:
    """Hold a run against its bars; with a calibration, `bars` are about the corrected scores."""
    if not bars and comparison is None:
        raise ConfigError("a gate needs something to check: --require 'accuracy>=0.9', or --baseline RUN")
    checks = [*_required(report, bars, calibration, fail_on), *_against(comparison, drops or {}, fail_on)]
    checks.append(_unjudged(report, max_unjudged))
    if not finished:
        checks.append(_check("unfinished", "", "", 0.0, _Measured(None, None, report.n), fail_on))
    return Gate(
        run=run,
        baseline=comparison.a if comparison else None,
        language=report.language,
        scale=report.scale,
        fail_on=fail_on,
        passed=all(check.passed for check in checks),
        checks=tuple(checks),
        marks=comparison.marks if comparison else (),
    )


def _check(kind: str, metric: str, sign: str, limit: float, found: _Measured, fail_on: FailOn) -> GateCheck:
    state = state_of(found.value, found.interval, sign, limit)
    return GateCheck(
        kind=kind,
        metric=metric,
        sign=sign,
        limit=limit,
        value=found.value,
        interval=found.interval,
        n=found.n,
        state=state,
        passed=state not in FAILS[fail_on],
    )


def _required(
    report: Report, bars: Iterable[Bar], calibration: Calibration | None, fail_on: FailOn
) -> Iterable[GateCheck]:
    by_people = {score.metric: score for score in calibration.scores} if calibration else {}
    for bar in bars:
        if bar.metric not in report.scores:
            known = ", ".join(report.scores) or "none; nothing was judged"
            raise ConfigError(f"there is no score {bar.metric!r} in this run; there are {known}")
        if calibration is None:
            raw = report.scores[bar.metric]
            yield _check("require", *bar, _Measured(raw.value, raw.interval, raw.n), fail_on)
            continue
        score = by_people.get(bar.metric)
        found = _Measured(score.value, score.interval, score.n_labelled) if score else _Measured(None, None, 0)
        yield _check("corrected", *bar, found, fail_on)


def _against(comparison: Comparison | None, drops: Mapping[str, float], fail_on: FailOn) -> Iterable[GateCheck]:
    """How far each metric fell. Without `drops`, every metric is checked for any fall at all."""
    if comparison is None:
        if drops:
            raise ConfigError("--max-drop needs --baseline RUN: a drop is a difference")
        return
    changes = {change.metric: change for change in comparison.metrics}
    for metric, limit in drops.items():
        change = changes.get(metric)
        if change is None:
            known = ", ".join(changes) or "none"
            raise ConfigError(f"there is no score {metric!r} in both runs; there are {known}")
        yield _check("drop", metric, "<=", limit, _fall(change), fail_on)
    for change in () if drops else comparison.metrics:
        if change.neutral:
            continue
        check = _check("regression", change.metric, "<=", 0.0, _fall(change), fail_on)
        # Several metrics at once: what counts as decided is what is left after Holm's adjustment.
        if check.state == "missed" and change.outcome != "worse":
            check = check.model_copy(update={"state": "barely_missed", "passed": fail_on == "decided"})
        yield check


def _fall(change: MetricChange) -> _Measured:
    ends = change.interval and (-change.interval[1], -change.interval[0])
    return _Measured(-change.difference, ends, change.n)


def _unjudged(report: Report, limit: float) -> GateCheck:
    """A judge that failed on half of the samples must not open the gate by its silence."""
    n = report.n + report.n_bad_rows
    lost = n - report.statuses.get("judged", 0)
    share = lost / n if n else None
    held = share is not None and share <= limit
    state: State = "unmeasured" if share is None else "held" if held else "missed"
    return GateCheck(
        kind="unjudged", metric="", sign="<=", limit=limit, value=share, interval=None, n=n, state=state, passed=held
    )
