"""A gate for continuous integration: checks of a run against required scores and against a baseline.

A threshold is a threshold: a score on the wrong side of it fails, significant or not, and the report says which.
Differences from a baseline move by chance, so there only a significant fall fails. What could not be measured never
passes: a score that one of the runs lacks, or too few samples for any fall to be significant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from steelyard.errors import ConfigError
from steelyard.protocols.vocabulary import BOUNDS, Direction, Scale
from steelyard.reports.gate import CHANGES, Gate, GateCheck, Outcome, Reason, State
from steelyard.reports.model import Report
from steelyard.stats import Interval, samples_to_exclude, wilson

if TYPE_CHECKING:
    from steelyard.reports.calibration.model import Calibration
    from steelyard.reports.comparison import Comparison, MetricChange, MissingMetric

MAX_UNJUDGED = 0.05


def outcome_of(kind: str, state: State, only_significant: bool) -> Outcome:
    """The outcome of a check. With `only_significant`, a threshold that is not missed significantly is undecided."""
    if state in ("missed", "unmeasured"):
        return "failed"
    if state != "missed_not_significant" or kind in CHANGES:
        return "passed"
    return "undecided" if only_significant else "failed"


class Requirement(NamedTuple):
    """`accuracy >= 0.9`, in the scale of the metric."""

    metric: str
    sign: Literal[">=", ">", "<=", "<"]
    limit: float


# --- what is asked for -----------------------------------------------------------------------------

BAR = re.compile(r"\s*+([^<>=≥≤]++)(>=|<=|≥|≤|>|<)\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+(%?)\s*+")
SHARE = re.compile(r"\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+(%?)\s*+")


def parse_requirement(text: str, scale_of: Callable[[str], Scale]) -> Requirement:
    """`accuracy>=0.9`, `accuracy >= 90%`, `faithfulness>=85` (of 100)."""
    found = BAR.fullmatch(text)
    if not found:
        raise ConfigError(f"--require takes METRIC>=NUMBER (or >, <=, <), not {text!r}")
    sign = {"≥": ">=", "≤": "<="}.get(found[2], found[2])
    metric = found[1].strip()
    return Requirement(metric, sign, _in_scale(float(found[3]), bool(found[4]), scale_of(metric), text))  # type: ignore[arg-type]


def parse_drops(given: Mapping[str, str], scale_of: Callable[[str], Scale]) -> dict[str, float]:
    """How far a metric may fall, in the unit of its scale: `accuracy=0.02` or `2%` of ratios, `accuracy=2` of 100."""
    drops = {}
    for metric, text in given.items():
        found = SHARE.fullmatch(text)
        if not found:
            raise ConfigError(f"--max-drop takes METRIC=NUMBER, not {metric}={text!r}")
        scale = scale_of(metric)
        number, top = float(found[1]), BOUNDS[scale][1]
        if found[2] and math.isfinite(top):
            number *= top / 100
        if number >= top:
            hint = f"; write {number / 100:g} or {number:g}%" if scale == "ratio" and not found[2] else ""
            raise ConfigError(
                f"--max-drop {metric}={text}: scores lie between 0 and {top:g}, so none can miss it{hint}"
            )
        drops[metric] = number
    return drops


def _in_scale(number: float, percent: bool, scale: Scale, text: str) -> float:
    """People write 0.9, 90 % and 90 for the same thing; on a scale of 100 points up to 1 is a share of it."""
    if not math.isfinite(BOUNDS[scale][1]):
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
    met = _holds(value, sign, limit)
    if interval is None or len({met, *(_holds(end, sign, limit) for end in interval)}) > 1:
        return "met_not_significant" if met else "missed_not_significant"
    return "met" if met else "missed"


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
    clusters: int | None = None
    bounds: Interval = (0.0, 1.0)
    n_all: int | None = None
    n_lost: int = 0
    reason: Reason = ""
    scale: Scale = "ratio"
    direction: Direction = "up"

    def to_decide(self, limit: float) -> int | None:
        """Never fewer than there are: those did not decide it."""
        if self.value is None or self.interval is None:
            return None
        found = samples_to_exclude(limit, self.value, self.interval, self.n, self.clusters, self.bounds)
        return None if found is None else max(found, self.n + 1)


def gate(
    report: Report,
    requirements: Sequence[Requirement] = (),
    *,
    run: str = "",
    drops: Mapping[str, float] | None = None,
    comparison: Comparison | None = None,
    calibration: Calibration | None = None,
    only_significant: bool = False,
    max_unjudged: float = MAX_UNJUDGED,
    finished: bool = True,
) -> Gate:
    """Check a run against its requirements; with a calibration, `requirements` are about the corrected scores."""
    if not requirements and comparison is None:
        raise ConfigError("a gate needs something to check: --require 'accuracy>=0.9', or --baseline RUN")
    checks = [*_required(report, requirements, calibration, only_significant), *_against(comparison, drops or {})]
    checks.append(_unjudged(report, max_unjudged))
    if not finished:
        checks.append(_check("unfinished", "", "", 0.0, _Measured(None, None, report.n)))
    outcomes = {check.outcome for check in checks}
    return Gate(
        run=run,
        baseline=comparison.a if comparison else None,
        protocol=report.protocol,
        language=report.language,
        only_significant=only_significant,
        outcome="failed" if "failed" in outcomes else "undecided" if "undecided" in outcomes else "passed",
        checks=tuple(checks),
        marks=comparison.marks if comparison else (),
    )


def _check(
    kind: str, metric: str, sign: str, limit: float, found: _Measured, only_significant: bool = False
) -> GateCheck:
    state: State = "unmeasured" if found.reason else state_of(found.value, found.interval, sign, limit)
    is_open = state == "missed_not_significant" or (state == "met_not_significant" and kind not in CHANGES)
    return GateCheck(
        kind=kind,
        metric=metric,
        sign=sign,
        limit=limit,
        value=found.value,
        interval=found.interval,
        n=found.n,
        n_all=found.n_all,
        n_lost=found.n_lost,
        scale=found.scale,
        direction=found.direction,
        state=state,
        reason=found.reason,
        outcome=outcome_of(kind, state, only_significant),
        n_to_decide=found.to_decide(limit) if is_open else None,
    )


def _required(
    report: Report, requirements: Iterable[Requirement], calibration: Calibration | None, only_significant: bool
) -> Iterable[GateCheck]:
    by_people = {score.metric: score for score in calibration.scores} if calibration else {}
    for wanted in requirements:
        if wanted.metric not in report.scores:
            known = ", ".join(report.scores) or "none; nothing was judged"
            raise ConfigError(f"there is no score {wanted.metric!r} in this run; there are {known}")
        scale = report.scale_of(wanted.metric)
        bounds = BOUNDS[scale]
        if calibration is None:
            raw = report.scores[wanted.metric]
            n_all = report.n + report.n_bad_rows
            measured = _Measured(raw.value, raw.interval, raw.n, raw.clusters, bounds, n_all, scale=scale)
            yield _check("require", *wanted, measured, only_significant)
            continue
        score = by_people.get(wanted.metric)
        found = _Measured(None, None, 0, scale=scale)
        if score:
            found = _Measured(score.value, score.interval, score.n_labelled, None, bounds, scale=scale)
        yield _check("corrected", *wanted, found, only_significant)


def _against(comparison: Comparison | None, drops: Mapping[str, float]) -> Iterable[GateCheck]:
    """How far each metric fell. Without `drops`, every metric is checked for any fall at all."""
    if comparison is None:
        if drops:
            raise ConfigError("--max-drop needs --baseline RUN: a drop is a difference")
        return
    changes = {change.metric: change for change in comparison.metrics}
    known: dict[str, MetricChange | MissingMetric] = {**changes, **{gap.metric: gap for gap in comparison.missing}}
    for metric, limit in drops.items():
        if metric not in known:
            raise ConfigError(f"there is no score {metric!r} in these runs; there are {', '.join(known) or 'none'}")
        if known[metric].neutral:
            raise ConfigError(
                f"--max-drop {metric}: neither more nor less of it is better in itself; "
                f"require what you want of it: --require '{metric}<=0.05'"
            )
        yield _check("drop", metric, "<=", limit, _fall(known[metric], limit, comparison))
    if drops:
        return
    asked: list[MetricChange | MissingMetric] = [change for change in comparison.metrics if not change.neutral]
    gaps = [gap for gap in comparison.missing if not gap.neutral]
    asked += [gap for gap in gaps if gap.n_a or gap.n_b]
    # Where neither run has any score, the gate must not pass for want of checks.
    if not asked and not gaps:
        raise ConfigError("these runs have no score to fall behind in")
    for change in asked or gaps:
        check = _check("regression", change.metric, "<=", 0.0, _fall(change, 0.0, comparison))
        if check.state == "missed_not_significant":
            needed = changes[change.metric].n_to_decide
            check = check.model_copy(update={"n_to_decide": needed and max(needed, check.n + 1)})
        yield check


def _fall(change: MetricChange | MissingMetric, limit: float, comparison: Comparison) -> _Measured:
    """How far a score fell behind, as a number of 0 and more: of one that should be low, how far it rose. With the
    reason where that cannot be told."""
    from steelyard.reports.comparison import MissingMetric

    n_all = comparison.n_pairs
    if isinstance(change, MissingMetric):
        one_only: Reason = "not_in_run" if change.n_a else "not_in_baseline"
        reason: Reason = "not_in_both" if bool(change.n_a) == bool(change.n_b) else one_only
        return _Measured(None, None, 0, n_all=n_all, n_lost=change.n_a, reason=reason)
    rises = change.direction == "down"
    ends = change.interval if rises or change.interval is None else (-change.interval[1], -change.interval[0])
    behind = change.difference if rises else -change.difference
    low, high = BOUNDS[change.scale]
    span = high - low
    few = _too_few(change.clusters, limit, span) or (ends is None and behind > limit)
    return _Measured(
        behind,
        ends,
        change.n,
        change.clusters,
        (-span, span),
        n_all,
        change.n_only_a,
        "too_few" if few else "",
        change.scale,
        change.direction,
    )


def _too_few(clusters: int, limit: float, span: float) -> bool:
    """Whether not even a fall of all of them from the highest score to the lowest would be significant."""
    ends = wilson(0, clusters)
    if ends is None:
        return True
    return math.isfinite(span) and ends[1] * span >= span - limit


def _unjudged(report: Report, limit: float) -> GateCheck:
    """Fail a run with too many unjudged items: a judge that failed on half of the samples must not pass the gate."""
    n = report.n + report.n_bad_rows
    lost = n - report.statuses.get("judged", 0)
    share = lost / n if n else None
    # Every sample was looked at: there is nothing left to chance.
    state: State = "unmeasured" if share is None else "met" if share <= limit else "missed"
    return GateCheck(
        kind="unjudged",
        metric="",
        sign="<=",
        limit=limit,
        value=share,
        interval=None,
        n=n,
        state=state,
        outcome=outcome_of("unjudged", state, only_significant=False),
    )
