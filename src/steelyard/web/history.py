"""Figures of many runs for one page: main scores with intervals, cost, time, and the difference from another run.

Worked out in the background, one run after the other, and kept in the store until a run changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial

from pydantic import Field, TypeAdapter

from steelyard.errors import ConfigError, NotComparable
from steelyard.protocols import vocabulary
from steelyard.records import Record
from steelyard.reports import ReportBuilder
from steelyard.reports.comparison import Comparison
from steelyard.reports.model import Estimate, Report
from steelyard.store import RunRow, Store
from steelyard.store.listing import catch_up, keep, worked_out
from steelyard.trust.comparison import Judged, compare
from steelyard.web.cache import kept_report, run_version
from steelyard.web.viewer import Viewer

MOST_TAGS = 24
Pair = tuple[str, str]


class RunFigures(Record):
    """A run in a few numbers."""

    scores: dict[str, Estimate] = Field(description="the main ones")
    tags: dict[str, dict[str, Estimate]] = Field(description="the same over the samples of each of the largest tags")
    cost: float | None = Field(default=None, description="US dollars per sample, the mean")
    seconds: float | None = Field(default=None, description="time per sample, the median")
    seconds_p95: float | None = None

    @classmethod
    def of(cls, report: Report) -> RunFigures:
        mains = vocabulary(report.protocol).mains(report.scores)
        largest = sorted(report.tags.items(), key=lambda entry: (-entry[1].n, entry[0]))[:MOST_TAGS]
        tags = {tag: {name: group.scores[name] for name in mains if name in group.scores} for tag, group in largest}
        cost, time = report.spending.get("cost"), report.spending.get("seconds")
        return cls(
            scores={name: report.scores[name] for name in mains},
            tags=tags,
            cost=cost.mean if cost else None,
            seconds=time.median if time else None,
            seconds_p95=time.p95 if time else None,
        )


class Refusal(Record):
    """Why two runs are not compared: codes, each with its detail."""

    reasons: tuple[tuple[str, str], ...]
    can_be_forced: bool = Field(description="whether anyway=true compares them all the same")


Against = Comparison | Refusal
AGAINST: TypeAdapter[Against] = TypeAdapter(Against)


@dataclass(frozen=True)
class RunHistory:
    """What is known of some runs and of some pairs of them."""

    figures: dict[str, RunFigures]
    against: dict[Pair, Against]
    is_complete: bool
    """Whether nothing is still being worked out."""


def history(viewer: Viewer, rows: Sequence[RunRow], pairs: Iterable[Pair], patience: float | None) -> RunHistory:
    """The figures of these runs and the comparisons of these pairs (A, B), as far as they are known by then."""
    by_id, wanted = {row.id: row for row in rows}, list(pairs)
    with viewer.store() as store:
        keys = {row.id: run_version(store, row) for row in rows}
        found = _known(store, keys, wanted)
    if found.is_complete:
        return found

    def make() -> None:
        # The figures first: they are what everybody looks at.
        for row in rows:
            if row.id not in found.figures:
                _kept(viewer, row.id, "figures", keys[row.id], partial(_figures, row=row, key=keys[row.id]))
        for a, b in wanted:
            if (a, b) not in found.against:
                _kept(viewer, b, _name(a), _both(keys, a, b), partial(_compared, a=by_id[a], b=by_id[b]))

    viewer.cache.get(("history", tuple(keys.items()), tuple(wanted)), make, patience)
    with viewer.store() as store:
        return _known(store, keys, wanted)


def _known(store: Store, keys: dict[str, str], pairs: list[Pair]) -> RunHistory:
    figures: dict[str, RunFigures] = {}
    against: dict[Pair, Against] = {}
    for run, key in keys.items():
        if kept := worked_out(store, run, "figures", key):
            figures[run] = RunFigures.model_validate_json(kept)
    for a, b in pairs:
        if kept := worked_out(store, b, _name(a), _both(keys, a, b)):
            against[a, b] = AGAINST.validate_json(kept)
    return RunHistory(figures, against, len(figures) == len(keys) and len(against) == len(pairs))


def _name(a: str) -> str:
    return f"against {a}"


def _both(keys: dict[str, str], a: str, b: str) -> str:
    return f"{keys[a]} {keys[b]}"


def _kept(viewer: Viewer, run: str, name: str, key: str, make: Callable[[Store], Record]) -> None:
    if viewer.cache.is_closing:
        raise CancelledError
    with viewer.store() as store:
        made = make(store)
        catch_up(store, run)
        keep(store, run, name, made.model_dump_json(), key)


def _figures(store: Store, *, row: RunRow, key: str) -> RunFigures:
    if report := kept_report(store, row.id, key):
        return RunFigures.of(report)
    builder = ReportBuilder(row.protocol)
    for sample, verdict in store.verdicts(row.id):
        builder.add(verdict, sample)
    return RunFigures.of(builder.build(row.manifest))


def _compared(store: Store, *, a: RunRow, b: RunRow) -> Against:
    one, other = (Judged(row.id, partial(store.verdicts, row.id), row.manifest) for row in (a, b))
    try:
        found = compare(one, other, language="en")
    except NotComparable as refusal:
        return Refusal(reasons=refusal.reasons, can_be_forced=refusal.can_be_forced)
    except ConfigError as error:  # two samples of one id cannot be paired
        return Refusal(reasons=(("pairing", str(error)),), can_be_forced=False)
    return found.model_copy(update={"improved": (), "regressed": ()})
