"""What a run by many workers would take: a discrete simulation of samples, calls, workers and the database.

    python bench/simulation.py --samples 10000000 --calls 3 --latency 2 --workers 16 --concurrency 256

Each worker takes ranges of samples, has twice as many samples at work as calls in flight, and asks the calls of a
sample one after the other. A call waits for the rate, then for one of the worker's slots; it takes its latency, some of
the worker's one core, and two looks at the database, which a worker does in groups, one group after the other; the
server does the writing of all workers, one reply after the other. A long run is simulated in part and extrapolated at
its steady rate.

`bench/workers.py` measures runs and holds this up to them; docs/scale.md has the figures.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log

# More samples than this are extrapolated.
SIMULATED = 40_000


@dataclass(frozen=True)
class Plan:
    """A run, what it runs on, and what its parts take, in seconds."""

    samples: int
    calls: int = 2
    workers: int = 1
    concurrency: int = 64
    """Calls in flight over all workers."""
    latency: float = 1.0
    """Of a call: its median."""
    spread: float = 0.0
    """Of the latencies: the standard deviation of their logarithm; 0: all take the same."""
    rate: float | None = None
    """Calls a second over all workers."""
    cpu: float = 0.003
    """Of a worker, for one call."""
    commit: float = 0.004
    """For a group, however large: the way to the database and back, and its commit."""
    written: float = 0.0002
    """Of the database server, for one reply in a group."""
    lease: int = 50
    leasing: float = 0.01
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What it would take."""

    seconds: float
    calls: int
    cpu_busy: float
    """The share of the time in which a worker's core is at work."""
    server_busy: float
    steady: float
    """Calls a second, without the first and the last fifth of them."""


@dataclass
class _Server:
    """Does one thing after the other; whoever comes waits for those before."""

    free_at: float = 0.0
    busy: float = 0.0

    def take(self, now: float, seconds: float) -> float:
        self.free_at = max(now, self.free_at) + seconds
        self.busy += seconds
        return self.free_at


@dataclass
class _Worker:
    slots: int
    room: int
    core: _Server = field(default_factory=_Server)
    pace: _Server = field(default_factory=_Server)
    asking: deque[int] = field(default_factory=deque)
    """Samples (as calls left) that wait for a slot."""
    in_flight: int = 0
    leased: int = 0
    at_work: int = 0
    committing: bool = False
    group: list[Callable[[float], None]] = field(default_factory=list)


class Simulation:
    """One run, event after event."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._random = random.Random(plan.seed)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = 0
        self._open = plan.samples
        self._database = _Server()
        whole, rest = divmod(plan.concurrency, plan.workers)
        slots = [max(1, whole + (place < rest)) for place in range(plan.workers)]
        self._workers = [_Worker(each, 2 * each) for each in slots]
        self.answered: list[float] = []

    def run(self) -> Outcome:
        for worker in self._workers:
            self._lease(0.0, worker)
        now = 0.0
        while self._events:
            now, _, event = heapq.heappop(self._events)
            event(now)
        busy = sum(worker.core.busy for worker in self._workers) / len(self._workers)
        return Outcome(now, len(self.answered), busy / now, self._database.busy / now, steady_rate(self.answered))

    def _at(self, time: float, event: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, event))

    def _lease(self, now: float, worker: _Worker) -> None:
        """As many samples as fit are begun; with none left, a range is taken."""
        while worker.at_work < worker.room and worker.leased:
            worker.leased -= 1
            worker.at_work += 1
            self._look(now, worker, self.plan.calls)
        if worker.at_work < worker.room and self._open:
            taken = min(self.plan.lease, self._open)
            self._open -= taken
            worker.leased += taken
            self._at(now + self.plan.leasing, lambda then: self._lease(then, worker))

    def _look(self, now: float, worker: _Worker, left: int) -> None:
        """Whether the reply is known already, and the claim to the call."""
        self._stored(now, worker, lambda then: self._wait_for_turn(then, worker, left))

    def _stored(self, now: float, worker: _Worker, then: Callable[[float], None]) -> None:
        worker.group.append(then)
        if not worker.committing:
            self._commit(now, worker)

    def _commit(self, now: float, worker: _Worker) -> None:
        group, worker.group = worker.group, []
        worker.committing = bool(group)
        if not group:
            return
        done = self._database.take(now, self.plan.written * len(group)) + self.plan.commit

        def settle(then: float) -> None:
            for one in group:
                one(then)
            self._commit(then, worker)

        self._at(done, settle)

    def _wait_for_turn(self, now: float, worker: _Worker, left: int) -> None:
        if self.plan.rate:
            turn = worker.pace.take(now, self.plan.workers / self.plan.rate)
            self._at(turn, lambda then: self._wait_for_slot(then, worker, left))
        else:
            self._wait_for_slot(now, worker, left)

    def _wait_for_slot(self, now: float, worker: _Worker, left: int) -> None:
        if worker.in_flight >= worker.slots:
            worker.asking.append(left)
            return
        worker.in_flight += 1
        sent = worker.core.take(now, self.plan.cpu / 2)
        latency = self._random.lognormvariate(log(self.plan.latency), self.plan.spread)
        self._at(sent + latency, lambda then: self._answered(then, worker, left))

    def _answered(self, now: float, worker: _Worker, left: int) -> None:
        read = worker.core.take(now, self.plan.cpu / 2)
        self._at(read, lambda then: self._read(then, worker, left))

    def _read(self, now: float, worker: _Worker, left: int) -> None:
        self.answered.append(now)
        worker.in_flight -= 1
        if worker.asking:
            self._wait_for_slot(now, worker, worker.asking.popleft())
        self._stored(now, worker, lambda then: self._kept(then, worker, left - 1))

    def _kept(self, now: float, worker: _Worker, left: int) -> None:
        if left:
            self._look(now, worker, left)
            return
        worker.at_work -= 1
        self._lease(now, worker)


def steady_rate(times: list[float]) -> float:
    """Of calls that were answered at these times: so many a second, without the first and the last fifth."""
    first, last = len(times) // 5, len(times) * 4 // 5
    return (last - first) / (times[last] - times[first])


def simulated(plan: Plan) -> Outcome:
    """The run, or a part of it that is long enough, extrapolated at its steady rate."""
    if plan.samples <= SIMULATED:
        return Simulation(plan).run()
    part = Simulation(replace(plan, samples=SIMULATED)).run()
    seconds = part.seconds + (plan.samples - SIMULATED) * plan.calls / part.steady
    return replace(part, seconds=seconds, calls=plan.samples * plan.calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in Plan(samples=10_000_000, calls=3, workers=16, concurrency=256, latency=2.0).__dict__.items():
        kind = float if name == "rate" else type(default)
        parser.add_argument(f"--{name}", type=kind, default=default)
    plan = Plan(**vars(parser.parse_args()))
    outcome = simulated(plan)
    print(f"{outcome.seconds / 3600:.2f} hours, {outcome.steady:.1f} calls a second")
    print(f"a worker's core {outcome.cpu_busy:.0%} busy, the database's writer {outcome.server_busy:.0%}")


if __name__ == "__main__":
    main()
