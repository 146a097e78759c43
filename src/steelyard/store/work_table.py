"""The work tables of runs with several workers: leases of samples, claims of asks, shares of budgets.

Times are those of the database's server, so that the clocks of the workers do not matter.

    quotas    what a run is allowed: calls in flight, rates, budget; and how long a worker may be silent
    queued    the samples of a run
    leases    ranges of them, each open, held by a worker, or done
    workers   who is or was at work, when it was last heard of, what it spent and may spend
    claims    asks that a worker has sent or is about to send
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NamedTuple, Self

from pydantic import Field

from steelyard.errors import InputError
from steelyard.records import Record, Sample, Usage, Verdict
from steelyard.store.database import Database, SqlDialect, dump, insert, placeholders
from steelyard.store.reply_table import ADD_NEW_REPLY, USE_REPLY, ReplyTable, reply_row
from steelyard.store.rows import SAMPLE, StoredReply
from steelyard.store.verdict_table import ADD_BAD_ROW, ADD_VERDICT, bad_row, verdict_row

RANGE = 50
QUEUED_TOGETHER = 500


class WorkStatements:
    """Those that each database writes in its own way."""

    def __init__(self, sql: SqlDialect) -> None:
        silence = "(SELECT silence FROM quotas q WHERE q.run = w.run)"
        # A worker is gone when it said so, or has not been heard of for too long. A server that was away heard nobody.
        self.gone = (
            f"(w.left_at IS NOT NULL OR {sql.greatest}(w.heard_at, {sql.began}) < {sql.ago.format(seconds=silence)})"
        )
        # Who was cut off from the server finds the others silent, though they were cut off like it: until it has been
        # heard without a gap for as long as they may be silent, it takes nothing over.
        gap = sql.ago.format(seconds=f"{sql.greatest}(q.silence / 2, 2.5)")
        steady = f"""
            EXISTS (SELECT 1 FROM workers me JOIN quotas q ON q.run = me.run WHERE me.id = ?
            AND me.heard_at > {gap} AND me.steady_at < {sql.ago.format(seconds="q.silence")})
        """
        self.take = f"""
            UPDATE leases SET worker = ?, taken = taken + 1 WHERE (run, first) IN (
                SELECT l.run, l.first FROM leases l LEFT JOIN workers w ON w.id = l.worker
                WHERE l.run = ? AND l.done_at IS NULL AND (l.worker IS NULL OR ({self.gone} AND {steady}))
                ORDER BY l.first LIMIT 1 {sql.unlocked}
            ) RETURNING first, last
        """
        self.claim = f"""
            INSERT INTO claims (key, worker) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET worker = excluded.worker
            WHERE EXISTS (SELECT 1 FROM workers w WHERE w.id = claims.worker AND {self.gone}) AND {steady}
        """
        self.beat = f"""
            UPDATE workers AS w SET heard_at = {sql.now}, in_flight = ?, steady_at = CASE
                WHEN w.heard_at > {gap} THEN w.steady_at ELSE {sql.now} END
            FROM quotas AS q WHERE q.run = w.run AND w.id = ?
        """


statements_in = cache(WorkStatements)
UNCLAIM = "DELETE FROM claims WHERE key = ? AND worker = ?"
SPENT = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
SUMS = ", ".join(f"w.{part}" for part in SPENT)


class Quota(Record):
    """The limits of a run over all its workers, and how long one may be silent before others take over its work."""

    concurrency: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    silence: float = Field(default=15.0, gt=0)
    rows: int = 0
    """How many rows the input has, those that cannot be read among them."""

    @property
    def is_limited(self) -> bool:
        """Whether workers have to divide calls or rates among them."""
        return any((self.concurrency, self.requests_per_minute, self.tokens_per_minute))


class WorkerRow(NamedTuple):
    """A worker as `runs watch` shows it. `silent` is how many seconds ago it was last heard of."""

    id: str
    host: str
    process: int
    is_gone: bool
    silent: float
    judged: int
    in_flight: int
    ranges: int
    holds: str
    """The rows of these ranges, counted from 1: `1–50, 151–200`."""
    seconds: float
    spent: Usage


class Share(NamedTuple):
    """A worker's share of the limits until its next heartbeat: its place among all workers, and its budget."""

    place: int
    workers: int
    elapsed: float
    spent: Usage
    """By all workers of the run."""
    max_cost: float | None
    max_tokens: float | None
    is_running: bool
    heard: Mapping[str, float]
    """When each worker that is at work was last heard of, by the server's clock."""


class WorkTable(ReplyTable, Database):
    """Queues, leases, workers and claims."""

    @abstractmethod
    def another(self) -> Self:
        """The same store through a connection of its own, for what must not wait."""

    @abstractmethod
    def together_with(self, run: str) -> AbstractContextManager[None]:
        """Held by each worker of a run: nobody who must be alone with it may have it meanwhile."""

    def take_time(self) -> None:
        """Say that this transaction may take long."""

    @property
    def _statements(self) -> WorkStatements:
        return statements_in(self.dialect)

    def _seconds(self, time: str) -> str:
        return self.dialect.seconds.format(time=time)

    # --- the queue ---

    def queue_run(self, run: str, rows: Iterable[tuple[int, Sample | InputError]], quota: Quota) -> Quota:
        """Put the samples of a run where workers find them, all or nothing; returns the quota with how many rows."""
        last = -1
        with self.all_or_nothing():
            self.take_time()  # rows may come from far away, at their own pace
            batch: list[tuple[Any, ...]] = []
            for last, sample in rows:
                if isinstance(sample, InputError):
                    self.write(ADD_BAD_ROW, *bad_row(run, sample))
                    continue
                batch.append((run, last, sample.model_dump_json()))
                if len(batch) >= QUEUED_TOGETHER:
                    self.change((insert("queued", "run seq sample"), batch))
                    batch = []
            self.change((insert("queued", "run seq sample"), batch))
            ranges = [(run, start, min(start + RANGE - 1, last)) for start in range(0, last + 1, RANGE)]
            self.change((insert("leases", "run first last"), ranges))
            counted = quota.model_copy(update={"rows": last + 1})
            self.write(insert("quotas", "run silence quota"), run, quota.silence, counted.model_dump_json())
        return counted

    def quota(self, run: str) -> Quota | None:
        """What a run is allowed; None for one that is not for workers."""
        for (quota,) in self.query("SELECT quota FROM quotas WHERE run = ?", run):
            return Quota.model_validate_json(quota)
        return None

    def waiting_runs(self) -> list[str]:
        """Runs with samples for workers, the oldest first."""
        sql = (
            "SELECT r.id FROM runs r WHERE r.state = 'running' AND EXISTS "
            "(SELECT 1 FROM leases l WHERE l.run = r.id AND l.done_at IS NULL) ORDER BY r.number"
        )
        return [run for (run,) in self.query(sql)]

    def open_ranges(self, run: str) -> int:
        """How many ranges of a run are not done."""
        (n,) = next(self.query("SELECT count(*) FROM leases WHERE run = ? AND done_at IS NULL", run))
        return int(n)

    def stop_run(self, run: str, reason: str) -> None:
        """End a run for all its workers: each hears of it with its next beat."""
        for (manifest,) in self.query("SELECT manifest FROM runs WHERE id = ? AND state = 'running'", run):
            stopped = dump({**json.loads(manifest), "stopped": reason})
            sql = "UPDATE runs SET state = 'stopped', manifest = ? WHERE id = ? AND state = 'running'"
            self.write(sql, stopped, run)

    def clear_queue(self, run: str) -> None:
        """Take away what only workers needed; the run is complete."""
        for table in ("queued", "leases"):
            self.write(f"DELETE FROM {table} WHERE run = ?", run)

    # --- leases ---

    def take_range(self, run: str, worker: str) -> tuple[int, int] | None:
        """Take the next range that nobody holds, or that a worker held that is gone."""
        # Not in a transaction: a server that goes away meanwhile is asked again. To its end: then SQLite commits it.
        found = list(self.query(self._statements.take, worker, run, worker))
        return found[0] if found else None

    def samples_of(self, run: str, first: int, last: int) -> list[tuple[int, Sample]]:
        """The samples of a range that have no verdict yet."""
        sql = (
            "SELECT q.seq, q.sample FROM queued q WHERE q.run = ? AND q.seq BETWEEN ? AND ? AND NOT EXISTS "
            "(SELECT 1 FROM samples s WHERE s.run = q.run AND s.seq = q.seq) ORDER BY q.seq"
        )
        with self.explained_errors():
            return [(seq, SAMPLE.validate_json(sample)) for seq, sample in self.query(sql, run, first, last)]

    def keep_verdicts(
        self, run: str, worker: str, judged: Sequence[tuple[int, Sample, Verdict]], done: Sequence[int]
    ) -> None:
        """Keep verdicts, and that these ranges (by their first places) are done: all or none."""
        self.change(
            (ADD_VERDICT, [verdict_row(run, *one) for one in judged]),
            (
                f"UPDATE leases SET done_at = {self.dialect.now} WHERE run = ? AND first = ?",
                [(run, one) for one in done],
            ),
            ("UPDATE workers SET judged = judged + ? WHERE id = ?", [(len(judged), worker)]),
        )

    def give_back(self, run: str, worker: str) -> None:
        """Leave: what this worker holds is open again, at once."""
        self.change(
            ("UPDATE leases SET worker = NULL WHERE run = ? AND worker = ? AND done_at IS NULL", [(run, worker)]),
            ("DELETE FROM claims WHERE worker = ?", [(worker,)]),
            (f"UPDATE workers SET left_at = {self.dialect.now} WHERE id = ?", [(worker,)]),
        )

    # --- asks ---

    def replies_or_claims(self, keys: Sequence[str], worker: str) -> list[StoredReply | bool]:
        """For each key its reply, or whether this worker is to ask; False: another one is asking. What a worker was
        asking that is gone, this one asks."""
        missing = [key for key, found in zip(keys, self.replies(keys), strict=True) if found is None]
        if missing:
            # In one order for all workers, or two of them would wait for each other.
            self.change((self._statements.claim, [(key, worker, worker) for key in sorted(missing)]))
        own = f"SELECT key FROM claims WHERE worker = ? AND key IN ({placeholders(missing)})"
        claimed = {key for (key,) in self.query(own, worker, *missing)}
        # Once more: whoever asked may have been answered between the two looks.
        found = dict(zip(keys, self.replies(keys), strict=True))
        if late := [(key, worker) for key in claimed if found[key]]:
            self.change((UNCLAIM, late))
        return [found[key] or key in claimed for key in keys]

    def keep_replies(
        self, replies: Sequence[tuple[str, StoredReply]], place: int, worker: str, payment: int
    ) -> list[StoredReply]:
        """Keep replies under their keys, what they cost, and that they are not asked for any more: all or none. Where
        another worker was first, that reply stays and is the one to use. A worker numbers its payments, so that one
        that is tried again counts once."""
        self.change(
            (ADD_NEW_REPLY, [reply_row(key, stored) for key, stored in replies]),
            (USE_REPLY, [(stored.run, stored.ask, place, key) for key, stored in replies]),
            _paid(worker, sum((stored.usage for _, stored in replies), start=Usage()), payment),
            (UNCLAIM, [(key, worker) for key, _ in replies]),
        )
        kept = self.replies([key for key, _ in replies])
        return [found or stored for found, (_, stored) in zip(kept, replies, strict=True)]

    def drop_claims(self, dropped: Sequence[tuple[str, Usage]], worker: str, payment: int) -> None:
        """Asks that got no usable reply, with what they cost all the same."""
        usage = sum((usage for _, usage in dropped), start=Usage())
        self.change((UNCLAIM, [(key, worker) for key, _ in dropped]), _paid(worker, usage, payment))

    # --- workers ---

    def join(self, run: str, worker: str, host: str, process: int) -> None:
        now = self.dialect.now
        sql = (
            "INSERT INTO workers (id, run, host, process, joined_at, heard_at, steady_at) "
            f"VALUES (?, ?, ?, ?, {now}, {now}, {now}) ON CONFLICT DO NOTHING"
        )
        self.write(sql, worker, run, host, process)

    def declare_gone(self, run: str, host: str, process: int) -> None:
        """Say of a worker that it is gone; whoever started the process knows before its silence tells."""
        who = "run = ? AND host = ? AND process = ? AND left_at IS NULL"
        self.write(f"UPDATE workers SET left_at = {self.dialect.now} WHERE {who}", run, host, process)

    def beat(self, run: str, worker: str, in_flight: int, quota: Quota) -> Share:
        """Say that this worker is alive, and learn what it may do until the next beat.

        Of what is left of a budget it gets its part, over what it has spent; together the parts never exceed the whole.
        """
        with self.all_or_nothing(f"the budget of {run}"):
            self.write(self._statements.beat, in_flight, worker)
            sql = (
                f"SELECT w.id, {self._statements.gone}, {self._seconds('w.heard_at')}, w.cap_cost, w.cap_tokens, "
                f"{SUMS} FROM workers w WHERE w.run = ? ORDER BY w.joined_at, w.id"
            )
            costs, tokens, heard, spent = {}, {}, {}, Usage()
            for id, is_gone, heard_at, cap_cost, cap_tokens, *sums in self.query(sql, run):
                usage = _usage(sums)
                spent += usage
                own = usage.prompt_tokens + usage.completion_tokens
                # One that is gone spends no more; of one at work, all that it was given may be spent.
                costs[id] = usage.cost or 0.0, max(usage.cost or 0.0, 0.0 if is_gone else cap_cost)
                tokens[id] = own, max(own, 0.0 if is_gone else cap_tokens)
                if not is_gone:
                    heard[id] = heard_at
            n = max(1, len(heard))
            max_cost, max_tokens = (
                None if most is None else _part(most, sums, worker, n, spent.calls)
                for most, sums in ((quota.max_cost, costs), (quota.max_tokens, tokens))
            )
            given = "UPDATE workers SET cap_cost = ?, cap_tokens = ? WHERE id = ?"
            self.write(given, max_cost or 0.0, max_tokens or 0.0, worker)
        began = "(SELECT min(joined_at) FROM workers w WHERE w.run = r.id)"
        elapsed = self._seconds(f"({self.dialect.now} - {began})")
        state, seconds = next(self.query(f"SELECT state, {elapsed} FROM runs r WHERE id = ?", run), ("deleted", 0.0))
        place = list(heard).index(worker) if worker in heard else 0
        return Share(place, n, float(seconds or 0.0), spent, max_cost, max_tokens, state == "running", heard)

    def workers(self, run: str) -> list[WorkerRow]:
        """Who is or was at work on a run, in the order they joined."""
        silent = self._seconds(f"({self.dialect.now} - w.heard_at)")
        lasted = self._seconds("(coalesce(w.left_at, w.heard_at) - w.joined_at)")
        held = "SELECT worker, first, last FROM leases WHERE run = ? AND worker IS NOT NULL AND done_at IS NULL"
        ranges: dict[str, list[str]] = {}
        for worker, first, last in self.query(f"{held} ORDER BY first", run):
            ranges.setdefault(worker, []).append(f"{first + 1}–{last + 1}")
        sql = (
            f"SELECT w.id, w.host, w.process, {self._statements.gone}, {silent}, w.judged, w.in_flight, {lasted}, "
            f"{SUMS} FROM workers w WHERE w.run = ? ORDER BY w.joined_at, w.id"
        )
        return [
            WorkerRow(
                id=id,
                host=host,
                process=process,
                is_gone=bool(is_gone),
                silent=silent_for,
                judged=judged,
                in_flight=in_flight,
                ranges=len(ranges.get(id, ())),
                holds=", ".join(ranges.get(id, ())),
                seconds=seconds,
                spent=_usage(spent),
            )
            for id, host, process, is_gone, silent_for, judged, in_flight, seconds, *spent in self.query(sql, run)
        ]

    def claims(self, run: str, process: int) -> int:
        """How many asks a process has sent, or is about to send, that it has not kept a reply to."""
        sql = "SELECT count(*) FROM claims c JOIN workers w ON w.id = c.worker WHERE w.run = ? AND w.process = ?"
        (n,) = next(self.query(sql, run, process))
        return int(n)

    def paid(self, run: str) -> Usage:
        """The cost of all workers of a run, of the replies that arrived."""
        return sum((row.spent for row in self.workers(run)), start=Usage())


def _paid(worker: str, usage: Usage, payment: int) -> tuple[str, list[tuple[Any, ...]]]:
    sums = ", ".join(f"{part} = {part} + ?" for part in SPENT[:-1])
    # What has no known price stays unknown, unlike what costs nothing.
    cost = "cost = CASE WHEN CAST(? AS DOUBLE PRECISION) IS NULL THEN cost ELSE coalesce(cost, 0) + ? END"
    counts = (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    sql = f"UPDATE workers SET {sums}, {cost}, paid = ? WHERE id = ? AND paid < ?"
    return sql, [(*counts, usage.cost, usage.cost, payment, worker, payment)]


def _part(most: float, spent: Mapping[str, tuple[float, float]], worker: str, workers: int, calls: int) -> float:
    """Up to where a worker may spend: what it has, and its part of what nobody has spent or been given. Less than one
    call takes is of no use to it, and stays for others."""
    own = spent.get(worker, (0.0, 0.0))[0]
    others = sum(cap for id, (_, cap) in spent.items() if id != worker)
    free = max(0.0, most - others - own)
    one_call = sum(used for used, _ in spent.values()) / calls if calls else 0.0
    part = free / workers
    return own + (part if part >= one_call else one_call if free >= one_call else 0.0)


def _usage(sums: Sequence[Any]) -> Usage:
    return Usage(**dict(zip(SPENT, sums, strict=True)))
