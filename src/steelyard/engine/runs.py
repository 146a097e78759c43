"""Runs that are kept: started, resumed, retried, rescored. Everything is in the store before it is reported."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from steelyard.engine.inputs import BAD_ROWS_KEPT, Input, input_of
from steelyard.engine.journal import Journal, JournalStore, judge_of_run
from steelyard.engine.manifest import check_unchanged, make_manifest, now
from steelyard.engine.runner import Allowance, Budget, Row, Runner, Tally
from steelyard.engine.templates import check_judge, protocol_of_run
from steelyard.errors import ConfigError, InputError, JudgeError, NoReadableRow, StoreError, Surface
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limiter
from steelyard.judges.recorded import Recorder
from steelyard.judges.routed import RoutedJudge
from steelyard.prompts import Prompts
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.records import Sample, Verdict
from steelyard.reports.build import main_reason
from steelyard.reports.model import UNUSABLE, RunFailure, remedy
from steelyard.store import RunIdentity, RunRow, Store, Wording

ENOUGH_FOR_A_REASON = 100
OnVerdict = Callable[[Sample, Verdict], None]
Judged = tuple[int, Sample, Verdict]


@dataclass(frozen=True)
class RunSettings:
    """How hard to drive the judge and when to stop by itself."""

    workers: int = 32
    budget: Budget = field(default_factory=Budget)
    fresh: bool = False
    """Ask again even where the journal holds the reply."""
    limiter: Limiter | None = None
    """What the judge's calls go through, to be closed when the run is stopped."""
    record: Path | None = None
    """Also append every reply to this file."""
    keeps_unreadable: bool = False
    """Keep a run without a readable row too: over HTTP its id is given out, and its bad rows are looked up there."""


def new_run_id() -> str:
    """A run id that sorts by time, can be typed, and does not collide between machines."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class Run:
    """One run of the store, being judged. `start()` or `continue_()` make it; `drive()` does the work."""

    def __init__(
        self,
        row: RunRow,
        store: Store,
        protocol: Protocol,
        options: Options,
        judge: Judge,
        data: Input,
        settings: RunSettings,
        *,
        continued: bool = False,
        journal_store: JournalStore | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self.row, self.store, self.protocol, self.data = row, store, protocol, data
        self._keeps_unreadable = continued or settings.keeps_unreadable
        group = row.manifest.get("group")
        self._waits = store.is_remote or (journal_store is not None and journal_store.is_shared)
        self.journal = Journal(
            judge, store, row.id, fresh=settings.fresh, group=group, continued=continued, journal_store=journal_store
        )
        self.judge = self.journal.judge
        self.runner = Runner(
            protocol,
            options,
            # Outside the journal: a recording holds all that the run was told, also what was known before.
            Recorder(self.judge, settings.record) if settings.record else self.judge,
            workers=settings.workers,
            budget=settings.budget,
            # What the journal answers was paid for before; it must not use up the budget a second time.
            spent=lambda: self.journal.spent,
            silent=lambda: self.journal.silent,
            limiter=settings.limiter,
            in_order=False,
            allowance=allowance,
        )
        self.tally = self.runner.tally
        self._answered_before = continued and row.state != "failed"
        self._gaps = Counter[str]()

    async def drive(
        self, on_verdict: OnVerdict, on_bad_row: Callable[[InputError], None], *, retry: bool = False
    ) -> Tally:
        """Judge what is not judged yet. The store has the final state in any case."""
        with self.store.alone_with(self.row.id):
            tally = await self._judge_open_rows(on_verdict, on_bad_row, retry)
        if not (tally.done or tally.skipped or tally.stopped or self._keeps_unreadable):
            bad = self.store.bad_rows(self.row.id)
            self.store.delete_run(self.row.id)
            raise NoReadableRow(bad[:BAD_ROWS_KEPT], len(bad), file=", ".join(self.data.sources))
        return tally

    async def aclose(self) -> None:
        await self.runner.judge.aclose()

    async def _judge_open_rows(
        self, on_verdict: OnVerdict, on_bad_row: Callable[[InputError], None], retry: bool
    ) -> Tally:
        self.store.update_run(self.row.id, state="running", finished=None, manifest=self.row.manifest)
        self.journal.retry(retry)
        done = self.store.finished(self.row.id, retry=retry)
        self.store.clear_bad_rows(self.row.id)
        rows = 0

        def open_rows() -> Iterable[Row]:
            nonlocal rows
            for seq, sample in self.data.rows(self.protocol):
                rows = seq + 1
                if seq < len(done) and done[seq]:
                    self.tally.skipped += 1
                else:
                    yield seq, sample

        kept = self.writer(lambda judged: self.store.add_verdicts(self.row.id, judged))

        def keep(seq: int, sample: Sample, verdict: Verdict) -> None:
            kept.add(seq, sample, verdict)
            on_verdict(sample, verdict)

        def keep_bad(bad: InputError) -> None:
            self.store.add_bad_row(self.row.id, bad)
            on_bad_row(bad)

        state, refusal = "stopped", ""
        try:
            try:
                tally = await self.runner.run(open_rows(), keep, keep_bad)
            finally:
                await kept.finish()
            if not tally.stopped and (missing := self.store.unaccounted(self.row.id, rows)):
                tally.stopped = f"{missing} of {rows} rows have neither a verdict nor an error"
            state = "stopped" if tally.stopped else "complete"
            return tally
        except JudgeError as error:
            refusal = str(error)
            raise
        finally:
            self.conclude(state, rows, refusal)

    def writer(self, keep: Callable[[Sequence[Judged]], None]) -> VerdictWriter:
        """The writer of this run's verdicts, which also counts the reasons of gaps."""

        def kept(judged: Sequence[Judged]) -> None:
            keep(judged)
            self._gaps.update(main_reason(verdict) for _, _, verdict in judged if verdict.status != "judged")

        return VerdictWriter(kept, in_thread=self._waits)

    def conclude(self, state: str, rows: int, refusal: str = "") -> None:
        """Note how far the run came, over so many rows of the input."""
        manifest = {**self.row.manifest, "stopped": self.tally.stopped}
        manifest.pop("failure", None)
        if state == "complete":
            manifest["rows"] = rows
            self.store.clear_queue(self.row.id)
        if failure := self._failure(state, refusal):
            state, manifest["failure"] = "failed", failure
        if self.tally.self_judged or "self_judged" in manifest:
            manifest["self_judged"] = self.store.count_flagged(self.row.id, "self_judged")
        if len(self.journal.voices) > 1:
            spent = self.store.spent_by_judge(self.row.id)
            manifest["usage_by_judge"] = {name: usage.model_dump() for name, usage in spent.items()}
        if isinstance(self.judge, RoutedJudge):
            manifest["routing"] = self.journal.saved(len(self.judge.first.voices()))
        self.store.update_run(self.row.id, state=state, finished=now(), manifest=manifest)

    def _failure(self, state: str, refusal: str) -> dict[str, Any] | None:
        """Why the judge labelled nothing in this run; None where it labelled something, or may still do so."""
        if self.row.state == "failed" and not self.tally.done and not refusal:
            return self.row.manifest.get("failure")
        counts = self.store.judged(self.row.id)
        labelled = counts.get("judged", 0) + counts.get("partial", 0)
        # Empty answers and rules need no judge: with every call failed, what they gave is not the run's result.
        silent = not self.tally.answered and not (labelled and self._answered_before)
        if silent and refusal:
            return {"reason": UNUSABLE, "detail": refusal}
        if state != "complete" or not ((silent and self.tally.errors) or (counts and not labelled)):
            return None
        reason, n = next(iter(self._gaps.most_common(1)), ("unknown", 0))
        return {"reason": reason, "n": n, "of": sum(counts.values()), "detail": self.tally.details.get(reason, "")}


def state_of(row: RunRow, store: Store) -> str:
    """running, stopped, complete or failed. A run that was killed still says `running`, but nobody is at work on it;
    one of an earlier version says `complete` although every sample failed."""
    if row.state == "running" and not store.in_use(row.id):
        return "stopped"
    if row.state == "complete":
        failed, judged = (
            list(store.query(f"SELECT 1 FROM samples WHERE run = ? AND status {test} 'failed' LIMIT 1", row.id))
            for test in ("=", "<>")
        )
        return "failed" if failed and not judged else "complete"
    return row.state


def failure_of(row: RunRow, store: Store) -> RunFailure | None:
    """Why a run failed; None for one that did not. One of an earlier version noted none: its first samples tell."""
    if state_of(row, store) != "failed":
        return None
    noted = row.manifest.get("failure")
    if not noted:
        gaps = Counter(main_reason(verdict) for _, verdict in islice(store.verdicts(row.id), ENOUGH_FOR_A_REASON))
        noted = {"reason": gaps.most_common(1)[0][0]}
    return RunFailure(**noted, remedy=remedy(noted["reason"], "en"))


class VerdictWriter:
    """Verdicts on their way into the store, a few at a time: a transaction for each costs more than the judging.

    A process that is killed meanwhile loses nothing: their replies are in the journal.
    """

    MOST, SECONDS = 64, 1.0

    def __init__(self, keep: Callable[[Sequence[Judged]], None], *, in_thread: bool) -> None:
        self._keep, self._in_thread = keep, in_thread
        self._waiting: list[Judged] = []
        self._due: asyncio.TimerHandle | None = None
        self._under_way: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    def add(self, seq: int, sample: Sample, verdict: Verdict) -> None:
        self._waiting.append((seq, sample, verdict))
        if len(self._waiting) >= self.MOST:
            self._begin()
        elif self._due is None:
            # Somebody may be watching: a slow judge fills no batch for minutes.
            self._due = asyncio.get_running_loop().call_later(self.SECONDS, self._in_time)

    async def finish(self) -> None:
        """Write what is left, and say what could not be written."""
        if self._under_way:
            with suppress(StoreError):  # it went on waiting; the next line says what is wrong
                await self._under_way
        if self._due:
            self._due.cancel()
        self._write()
        if self._failure:
            raise self._failure

    def _begin(self) -> None:
        if self._due:
            self._due.cancel()
            self._due = None
        if not self._in_thread:
            self._write()
        elif self._under_way is None or self._under_way.done():
            # A server that is away for a while must not hold up the calls to the judge.
            self._under_way = asyncio.get_running_loop().create_task(asyncio.to_thread(self._write))
            self._under_way.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        failed = task.exception()  # the next ask meets the same trouble, and says so
        if self._waiting and self._due is None:
            # What came meanwhile has nobody who writes it.
            self._due = asyncio.get_running_loop().call_later(self.SECONDS if failed else 0.0, self._in_time)

    def _write(self) -> None:
        """Write all that wait. One that cannot be written keeps none of the others out."""
        writing = self._waiting[:]
        if not writing:
            return
        try:
            self._keep(writing)
        except StoreError:
            raise  # all go on waiting: the next try may find room
        except Exception:
            for one in writing:
                self._write_alone(one)
        del self._waiting[: len(writing)]

    def _write_alone(self, one: Judged) -> None:
        try:
            self._keep([one])
        except StoreError:
            raise
        except Exception as error:
            self._failure = self._failure or error

    def _in_time(self) -> None:
        self._due = None
        with suppress(StoreError):  # the next ask or verdict meets the same trouble, and says so
            self._begin()


def start(
    store: Store,
    protocol: Protocol,
    options: Options,
    judge: Judge,
    judge_spec: str,
    prompts: Prompts,
    data: Input,
    settings: RunSettings,
    together: Mapping[str, Any] | None = None,
    identity: RunIdentity | None = None,
    group: str | None = None,
) -> Run:
    """A new run over the given input, which must hold a row that can be read. `judge_spec` and `together` make the
    same judge again when it is resumed; `identity` is what the user calls it; runs of one `group` judge the same
    samples by several protocols."""
    check_judge(protocol, judge)
    if not settings.keeps_unreadable:
        data.check_readable(protocol)
    manifest = make_manifest(protocol, options, judge, prompts, data.described, data.fields, data.encoding)
    manifest |= {"judge_spec": judge_spec, "format": data.format, "fresh": settings.fresh}
    if data.importer:
        manifest["importer"] = data.importer
    if together:
        manifest["together"] = dict(together)
    if group:
        manifest["group"] = group
    row = store.create_run(new_run_id(), protocol.name, judge.name, now(), manifest, identity)
    store.keep_wordings(
        Wording(prompt.sha256, prompt.id, prompt.version, prompt.text)
        for prompt in prompts
        if prompt.id in manifest["prompts"]
    )
    return Run(row, store, protocol, options, judge, data, settings)


def open_runs(store: Store, row: RunRow) -> list[RunRow]:
    """This run, with those of its group that are not finished, in the order in which they were started."""
    group = row.manifest.get("group")
    members = [one for one in store.runs() if group and one.manifest.get("group") == group]
    waiting = [one for one in members if one.id != row.id and state_of(one, store) in ("stopped", "failed")]
    return sorted([row, *waiting], key=lambda one: one.number)


def earlier_date(store: Store, protocol: Protocol, judge: str, data: Input) -> tuple[str, str] | None:
    """The date that the newest earlier run of this judge over the same data was judged at, and that run's id.

    The date is part of what is asked: with another one, everything would be asked and paid for again.
    """
    hashes = [part.get("sha256") for part in data.described]
    if "date" not in protocol.options.model_fields or not all(hashes):
        return None
    for row in store.runs():
        date = row.manifest.get("options", {}).get("date")
        same = row.protocol == protocol.name and row.judge == judge
        if date and same and [part.get("sha256") for part in row.manifest.get("data", ())] == hashes:
            return str(date), row.id
    return None


def check_ready(judge: Judge) -> None:
    """Refuse a judge whose API key is missing, before a run is created."""
    if missing := next((voice.judge.missing for voice in judge.voices() if voice.judge.missing), ""):
        raise ConfigError(missing)


def check_affordable(judge: Judge, budget: Budget) -> None:
    """Refuse a cost limit for a judge whose price is unknown."""
    limit, other = (budget.surface.setting(name).rstrip("=") for name in ("max_cost", "max_tokens"))
    instead = f", or use {other}" if budget.surface is Surface.flags else ""
    for known in (voice.judge.described() for voice in judge.voices()):
        if budget.max_cost is not None and "price" in known and known["price"] is None:
            raise ConfigError(
                f"{limit} needs the prices of {known['name']}: set "
                f'[prices."{known.get("model")}"] in steelyard.toml '
                f"(US dollars for a million tokens){instead}"
            )


def continue_(store: Store, name: str, judge: Judge, prompts: Prompts, settings: RunSettings) -> Run:
    """An earlier run, to be continued with the same data, judge and prompts."""
    row = store.run(name)
    check_unchanged(row, judge, prompts)
    protocol = protocol_of_run(row.protocol, row.manifest)
    if protocol.origin:
        from steelyard.protocols.rubric import check_unchanged as check_rubric

        check_rubric(protocol.origin, row.id)
    options = protocol.parse_options(row.manifest["options"])
    settings = replace(settings, fresh=bool(row.manifest.get("fresh")))
    return Run(row, store, protocol, options, judge, input_of(row, store), settings, continued=True)


async def rescore(store: Store, name: str, options: Mapping[str, Any], on_verdict: OnVerdict) -> Tally:
    """Recompute a run's scores from its stored replies, without a call, also with other options.

    What was unjudged stays unjudged; the stored verdicts are not touched.
    """
    row = store.run(name)
    protocol = protocol_of_run(row.protocol, row.manifest)
    chosen = protocol.parse_options({**row.manifest["options"], **options})
    runner = Runner(protocol, chosen, judge_of_run(store, row), workers=1)
    stored = ((seq, sample) for seq, (sample, _) in enumerate(store.verdicts(row.id)))
    return await runner.run(stored, lambda _, sample, verdict: on_verdict(sample, verdict))
