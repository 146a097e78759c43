"""Workers: several processes, on one machine or many, judge one run together.

A worker holds ranges of samples, drives them with the same runner and protocols as a run of one process, and writes
what it gets. It may die at any moment: the store remembers. Once a second it says that it is alive and learns its
share of what the run is allowed (`WorkTable.beat`).
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from steelyard.engine.inputs import Input
from steelyard.engine.journal import JournalStore
from steelyard.engine.manifest import check_unchanged, differing_packages
from steelyard.engine.runner import Allowance, Budget, Row, Tally
from steelyard.engine.runs import Judged, OnVerdict, Run, RunSettings
from steelyard.engine.templates import protocol_of_run
from steelyard.errors import ConfigError, ServerAway, StoreError
from steelyard.judges.base import Judge
from steelyard.judges.limiter import Limiter, Pace
from steelyard.prompts import Prompts
from steelyard.records import Record, Sample, Usage, Verdict
from steelyard.store import RunRow, Store, StoredReply

if TYPE_CHECKING:
    from steelyard.store.work_table import Share

BEAT = 1.0
# How often to look for samples while others hold the rest.
IDLE_SECONDS = 0.5
# A share of a rate is used evenly: bursts of several workers would add up. With this much a call that is a little late
# is caught up, and no second has more than 4 % above the share, rounded up.
BURST_SECONDS = 0.04
# How long the server may be away before a worker leaves.
PATIENCE = 120.0
LEFT = "asked to leave"


def new_worker_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


def check_same(row: RunRow, judge: Judge, prompts: Prompts) -> None:
    """Refuse a worker that would judge otherwise than the run began: another package, prompt, model or parameter."""
    if changed := differing_packages(row.manifest):
        differences = "; ".join(f"{name} {here}, the run {there}" for name, here, there in changed)
        raise ConfigError(f"this worker differs from run {row.id}: it has {differences}; install the same version")
    check_unchanged(row, judge, prompts)


class SharedJournalStore(JournalStore):
    """A journal shared by workers: while one of them asks, the others wait for its reply."""

    is_shared = True

    def __init__(self, store: Store, worker: str) -> None:
        super().__init__(store)
        self._shared, self._worker = store, worker
        self._paying, self._payments = threading.Lock(), 0

    def find(self, keys: Sequence[str]) -> Sequence[StoredReply | bool]:
        return self._shared.replies_or_claims(keys, self._worker)

    def keep(self, replies: Sequence[tuple[str, StoredReply]], place: int) -> Sequence[StoredReply]:
        with self._paying:
            self._payments += 1
            return self._shared.keep_replies(replies, place, self._worker, self._payments)

    def drop(self, dropped: Sequence[tuple[str, Usage]]) -> Sequence[None]:
        with self._paying:
            self._payments += 1
            self._shared.drop_claims(dropped, self._worker, self._payments)
        return [None] * len(dropped)


class ShareOfBudget(Allowance):
    """This worker's share of the budget until its next heartbeat."""

    def __init__(self, limiter: Limiter | None) -> None:
        self._limiter = limiter
        self._share: Share | None = None
        self._new = asyncio.Event()

    def update(self, share: Share) -> None:
        self._share = share
        self.wake()

    def wake(self) -> None:
        """Let those who wait look again: there may be more, or the worker leaves."""
        self._new.set()
        self._new = asyncio.Event()

    def is_spent(self, usage: Usage, asking: int) -> bool:
        share = self._share
        if share is None:
            return True
        if share.max_cost is None and share.max_tokens is None:
            return False
        if not usage.calls:
            # Nobody knows yet what a call takes: no more than can be in flight.
            return asking >= (self._limiter.limit if self._limiter else 1)
        ahead = 1 + (asking + 1) / usage.calls - 1e-9  # what was given for just one more call is enough for it
        tokens = usage.prompt_tokens + usage.completion_tokens
        return (share.max_cost is not None and (usage.cost or 0) * ahead > share.max_cost) or (
            share.max_tokens is not None and tokens * ahead > share.max_tokens
        )

    async def more(self) -> None:
        await self._new.wait()


class Leased(AsyncIterator[Row]):
    """The leased samples of a worker, range after range, until none is left."""

    def __init__(self, store: Store, run: str, worker: str, room: Callable[[], int]) -> None:
        self._store, self._run, self._worker, self._room = store, run, worker, room
        self._waiting: deque[tuple[int, Sample]] = deque()
        self._left: dict[int, set[int]] = {}
        self._turn = asyncio.Lock()
        self.is_over = False

    async def __anext__(self) -> Row:
        async with self._turn:
            while not self._waiting:
                if self.is_over:
                    raise StopAsyncIteration
                if sum(map(len, self._left.values())) < self._room() and await asyncio.to_thread(self._take):
                    continue
                await asyncio.sleep(IDLE_SECONDS if not self._left else BEAT / 20)
            return self._waiting.popleft()

    def _take(self) -> bool:
        taken = self._store.take_range(self._run, self._worker)
        if taken is None:
            if not self._left:
                self.is_over = not self._store.open_ranges(self._run)
            return False
        samples = self._store.samples_of(self._run, *taken)
        if samples:
            self._left[taken[0]] = {seq for seq, _ in samples}
            self._waiting.extend(samples)
        else:
            self._store.keep_verdicts(self._run, self._worker, (), [taken[0]])
        return True

    def keep(self, judged: Sequence[Judged]) -> None:
        """Write verdicts, and that ranges are done with them."""
        seqs = {seq for seq, _, _ in judged}
        done = [first for first, left in list(self._left.items()) if left <= seqs]
        self._store.keep_verdicts(self._run, self._worker, judged, done)
        for first, left in list(self._left.items()):
            left -= seqs
            if not left:
                del self._left[first]


class Worker:
    """One worker of one run. `work()` judges until nothing is left, or the run is stopped, or `leave()` was called."""

    def __init__(
        self, store: Store, row: RunRow, judge: Judge, prompts: Prompts, limiter: Limiter, workers: int
    ) -> None:
        quota = store.quota(row.id)
        if quota is None:
            raise ConfigError(f"run {row.id} was not made for workers; go on with: steelyard resume {row.id}")
        check_same(row, judge, prompts)
        self.id, self.quota = new_worker_id(), quota
        self._store, self._limiter = store, limiter
        protocol = protocol_of_run(row.protocol, row.manifest)
        self.allowance, self._journal_store = ShareOfBudget(limiter), SharedJournalStore(store, self.id)
        self.run = Run(
            *(row, store, protocol, protocol.parse_options(row.manifest["options"]), judge, Input([])),
            RunSettings(workers, fresh=bool(row.manifest.get("fresh")), limiter=limiter),
            continued=True,
            journal_store=self._journal_store,
            allowance=self.allowance,
        )
        self.source = Leased(store, row.id, self.id, lambda: 2 * limiter.limit)
        self.tally = self.run.tally
        self._budget = Budget(quota.max_cost, quota.max_tokens, quota.max_seconds)
        self._shares = (0, 0)
        self._pace: Pace | None = None
        self._room, self._beats_of = asyncio.Event(), defaultdict[str, set[float]](set)
        if not quota.is_limited:
            self._room.set()
        self._beating = ThreadPoolExecutor(1, thread_name_prefix="steelyard-beat")

    def leave(self, reason: str = LEFT) -> None:
        """Finish what is in flight and leave the run, which continues without this worker."""
        self.source.is_over = True
        self._room.set()
        self.run.runner.stop(reason)
        self.allowance.wake()

    async def work(self, on_verdict: OnVerdict = lambda sample, verdict: None) -> Tally:
        run = self.run.row.id
        with self._store.together_with(run):
            await asyncio.to_thread(self._store.join, run, self.id, socket.gethostname(), os.getpid())
            with self._store.another() as beats:
                await self._beat(beats)
                beating = asyncio.create_task(self._beat_on(beats))
                # Without heartbeats its samples go to others, and nobody tells it what it may still spend.
                beating.add_done_callback(self._beats_ended)
                try:
                    await self._room.wait()
                    return await self._judge(on_verdict)
                finally:
                    beating.cancel()
                    self._beating.shutdown(wait=False)
                    with suppress(asyncio.CancelledError):
                        await beating

    async def _judge(self, on_verdict: OnVerdict) -> Tally:
        run = self.run.row.id
        kept = self.run.writer(self.source.keep)

        def keep(seq: int, sample: Sample, verdict: Verdict) -> None:
            kept.add(seq, sample, verdict)
            on_verdict(sample, verdict)

        try:
            try:
                tally = await self.run.runner.run(self.source, keep)
            finally:
                await kept.finish()
        finally:
            await asyncio.to_thread(self._store.give_back, run, self.id)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                await asyncio.to_thread(self._conclude)
                return tally
            except ServerAway:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(BEAT)

    def _conclude(self) -> None:
        """Mark the run as finished if nothing is left; only one worker does."""
        run = self.run.row.id
        with self._store.all_or_nothing(f"the end of {run}"):
            if self._store.run(run).state != "running" or self._store.open_ranges(run):
                return
            missing = self._store.unaccounted(run, self.quota.rows)
            stopped = f"{missing} of {self.quota.rows} rows have neither a verdict nor an error" if missing else None
            self.tally.stopped = stopped
            self.run.conclude("stopped" if missing else "complete", self.quota.rows)
            if missing:
                self._store.clear_queue(run)

    # --- once a second ---

    def _beats_ended(self, beating: asyncio.Task[None]) -> None:
        if not beating.cancelled():
            self.leave("its heartbeat ended")

    async def _beat_on(self, beats: Store) -> None:
        heard = time.monotonic()
        while True:
            await asyncio.sleep(BEAT if self._room.is_set() else BEAT / 4)
            try:
                await self._beat(beats)
            except StoreError as error:
                if time.monotonic() - heard > PATIENCE:
                    self.leave(str(error))
                    return
                continue
            heard = time.monotonic()

    async def _beat(self, beats: Store) -> None:
        run = self.run.row.id
        # In a thread of its own: all others may be waiting for the server.
        beat = functools.partial(beats.beat, run, self.id, self._limiter.in_flight, self.quota)
        share = await asyncio.get_running_loop().run_in_executor(self._beating, beat)
        if (share.place, share.workers) != self._shares:
            self._shares = share.place, share.workers
            self._divide(share)
        self.allowance.update(share)
        if not self._room.is_set():
            self._look_for_room(share)
        if not share.is_running:
            self.leave("the run was stopped")
        elif reason := self._budget.exceeded(share.spent, share.elapsed, 1):
            await asyncio.to_thread(beats.stop_run, run, reason)
            self.leave(reason)

    def _look_for_room(self, share: Share) -> None:
        """Begin when all others were heard of twice since this worker first was: the first time they are told of it,
        and the second time they have made room."""
        joined = self._beats_of[self.id]
        for worker, heard in share.heard.items():
            if worker == self.id:
                joined.add(heard)
            elif joined and heard > min(joined):
                self._beats_of[worker].add(heard)
        if all(len(self._beats_of[worker]) >= 2 for worker in share.heard if worker != self.id):
            self._room.set()

    def _divide(self, share: Share) -> None:
        quota, n = self.quota, share.workers
        if quota.concurrency:
            whole, rest = divmod(quota.concurrency, n)
            self._limiter.resize(whole + (share.place < rest))
        requests, tokens = (rate / n if rate else None for rate in (quota.requests_per_minute, quota.tokens_per_minute))
        if self._pace is None and (requests or tokens):
            self._pace = self._limiter.pace = Pace(requests, tokens, BURST_SECONDS)
        elif self._pace:
            self._pace.change(requests, tokens)


class WorkerShown(Record):
    """A worker as `runs watch` and the viewer show it."""

    worker: str
    state: Literal["at work", "gone"]
    silent: int = Field(description="seconds since it was last heard of")
    judged: int
    per_second: float = Field(description="samples a second, since it joined")
    in_flight: int
    ranges: int = Field(description="ranges of samples that it holds")
    holds: str = Field(description="the rows of these ranges, counted from 1")
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def workers_shown(store: Store, run: str) -> tuple[WorkerShown, ...]:
    """The workers of a run, present and past."""
    return tuple(
        WorkerShown(
            worker=worker.id,
            state="gone" if worker.is_gone else "at work",
            silent=round(worker.silent),
            judged=worker.judged,
            per_second=round(worker.judged / worker.seconds, 1) if worker.seconds > 0 else 0.0,
            in_flight=0 if worker.is_gone else worker.in_flight,
            ranges=worker.ranges,
            holds=worker.holds,
            calls=worker.spent.calls,
            prompt_tokens=worker.spent.prompt_tokens,
            completion_tokens=worker.spent.completion_tokens,
            cost=worker.spent.cost,
        )
        for worker in store.workers(run)
    )


def rows_queued(store: Store, run: str) -> int | None:
    """How many rows a run for workers has; None for another run."""
    quota = store.quota(run)
    return quota.rows if quota else None


def run_shown(store: Store, run: str) -> dict[str, Any]:
    """A run's progress and its workers, for `runs watch`."""
    judged, rows = sum(store.judged(run).values()), rows_queued(store, run)
    return {
        "run": run,
        "state": store.run(run).state,
        "judged": judged,
        "rows": judged if rows is None else rows,
        "open_ranges": store.open_ranges(run),
        "workers": [worker.model_dump() for worker in workers_shown(store, run)],
    }
