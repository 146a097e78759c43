"""A cache of slow results, computed once and in the background while the page is already shown."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from steelyard import __version__
from steelyard.engine.runs import state_of
from steelyard.reports import ReportBuilder
from steelyard.reports.model import Report, RunFacts
from steelyard.store import RunRow, Store
from steelyard.store.listing import catch_up, keep, statuses, worked_out

Value = TypeVar("Value")
MOST_KEPT = 64
# How long a page waits before it says that it is still counting. What is many is not waited for at all: the first
# byte of a large run must not be later than that of a small one.
PATIENCE = 1.5
MANY = 2000


def patience_for(n: int) -> float:
    """How long a page waits for a result over so many samples."""
    return PATIENCE if n <= MANY else 0.0


class ResultCache:
    """Results by key. A key identifies all inputs of a result, so that nothing has to be invalidated."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="steelyard-cache")
        self._counts: dict[str, _Count] = {}
        self._following: dict[str, Future[Report]] = {}
        self._latest: dict[str, Report] = {}
        self._closing = threading.Event()

    def get(self, key: Hashable, make: Callable[[], Value], patience: float | None = PATIENCE) -> Value | None:
        """The value under the key, made now if it is not there; None where that takes longer than `patience`."""
        with self._lock:
            future = self._kept.get(key)
            if future is None:
                future = self._kept[key] = self._pool.submit(make)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        try:
            value: Value = future.result(patience)
            return value
        except NotYet:
            return None
        except BaseException:
            with self._lock:  # it may go better next time
                self._kept.pop(key, None)
            raise

    def report(self, open_store: Callable[[], Store], row: RunRow, patience: float | None = PATIENCE) -> Report | None:
        """The report of a run as it stands now, or None where it is still being counted.

        A run at work changes faster than a large one is counted: of that, the latest report there is.
        """
        with open_store() as store:
            key = run_version(store, row)
            kept = kept_report(store, row.id, key)
            is_running = state_of(row, store) == "running"
        if kept:
            return kept
        with self._lock:
            count = self._counts.setdefault(row.id, _Count())

        def counted() -> Report:
            with open_store() as store:
                now = store.run(row.id)
                as_counted = run_version(store, now)
                report = count.carried_on(store, now._replace(state=state_of(now, store)), self._closing)
                if report.run and report.run.state != "running":
                    keep_report(store, row.id, as_counted, report)
                return report

        if is_running:
            return self._followed(row.id, counted, patience)
        report = self.get(("report", row.id, key), counted, patience)
        if report:
            self._latest.pop(row.id, None)
            self._following.pop(row.id, None)
        return report

    def latest(self, run: str) -> Report | None:
        """The last report of a run that was counted while it was at work."""
        return self._latest.get(run)

    def _followed(self, run: str, counted: Callable[[], Report], patience: float | None) -> Report | None:
        with self._lock:
            counting = self._following.get(run)
            if counting and counting.done() and not counting.exception():
                self._latest[run] = counting.result()
            # One count at a time, however many look and however often.
            if counting is None or counting.done():
                counting = self._following[run] = self._pool.submit(counted)
        with suppress(NotYet):
            self._latest[run] = counting.result(patience)
        return self._latest.get(run)

    @property
    def is_closing(self) -> bool:
        """Whether nobody waits any more: whoever works for long looks now and then."""
        return self._closing.is_set()

    def close(self) -> None:
        """Stop all computations: nobody waits for them any more."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


def run_version(store: Store, row: RunRow) -> str:
    """Identifies the state of a run: as long as it stays the same, so does the report."""
    judged = sorted(statuses(store, row.id).items())
    given = (__version__, state_of(row, store), row.finished, judged, len(store.bad_rows(row.id)), row.manifest)
    return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()


def kept_report(store: Store, run: str, key: str) -> Report | None:
    """The report that an earlier viewer counted, unless the run has changed since."""
    kept = worked_out(store, run, "report", key)
    try:
        return Report.model_validate_json(kept) if kept else None
    except ValidationError:  # written by an earlier state of this program: counted again
        return None


def keep_report(store: Store, run: str, key: str, report: Report) -> None:
    """For the next viewer. Listing what is new takes it away again, so all is listed first."""
    catch_up(store, run)
    if run_version(store, store.run(run)) == key:
        keep(store, run, "report", report.model_dump_json(), key)


@dataclass
class _Count:
    """An incremental report of a run at work, which is not read again from its start."""

    builder: ReportBuilder | None = None
    seen: bytearray = field(default_factory=bytearray)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def carried_on(self, store: Store, row: RunRow, closing: threading.Event) -> Report:
        with self.lock:
            # What was retried meanwhile, here or on the command line, replaced what was counted; only from the start
            # does that come right.
            if self.builder is None or row.state != "running":
                self.builder, self.seen = ReportBuilder(row.protocol), bytearray()
            done = store.finished(row.id)
            self.seen.extend(bytes(len(done) - len(self.seen)))
            new = [seq for seq, is_done in enumerate(done) if is_done and not self.seen[seq]]
            for seq, sample, verdict in store.verdicts_at(row.id, new):
                if closing.is_set():
                    raise CancelledError
                self.builder.add(verdict, sample)
                self.seen[seq] = 1
            facts = RunFacts.of(row.id, row.state, row.started, row.finished)
            report = self.builder.build(row.manifest, facts)
            return with_bad_rows(report, store, row.id)


def with_bad_rows(report: Report, store: Store, run: str) -> Report:
    """The report with the rows that could not be read; these are few, and a run that goes on reads them anew."""
    builder = ReportBuilder(report.protocol, report.language)
    for bad in store.bad_rows(run):
        builder.add_bad_row(bad)
    rows = builder.build()
    return report.model_copy(update={"n_bad_rows": rows.n_bad_rows, "bad_rows": rows.bad_rows})
