"""The figures, each a function of the lab and the sizes that returns rows for the table."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from environments import BARE, CLIENTS, COMMAND
from harness import Lab, Load, Measured

Row = dict[str, Any]
FAULTS = {"p429": 0.1, "p500": 0.05, "p_broken": 0.05, "hang_at": 50, "hang_s": 60.0}
SENT = ("sent_429", "sent_500", "sent_broken", "hung")
# For one attempt, where a call may hang.
DEADLINE = 10.0
SLOW_MS = 2000
# A client that never comes to its end is stopped; one that is slow by itself gets so many times its own calm run.
LONGEST, PATIENCE = 300.0, 4
INSTALLER = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")


@dataclass(frozen=True)
class Sizes:
    """How much of everything; `peers` have fewer samples, as some take minutes for what others do in seconds."""

    samples: int = 1000
    peer_samples: int = 200
    big: int = 50_000
    repeats: int = 3
    clients: Sequence[str] = tuple(CLIENTS)
    seen: list[Measured] = field(default_factory=list)

    def of(self, client: str) -> int:
        return self.peer_samples if CLIENTS[client].is_peer else self.samples

    @property
    def peers(self) -> list[str]:
        return [name for name in self.clients if CLIENTS[name].is_peer]

    @property
    def own(self) -> list[str]:
        return [name for name in self.clients if not CLIENTS[name].is_peer]


def wall(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """Wall time over the bare loop, 200 ms: own clients take turns, so that a busy moment hits all alike."""
    for concurrency in (32, 256):
        times: dict[str, list[Measured]] = {name: [] for name in sizes.own}
        for _ in range(sizes.repeats):
            for name, runs in times.items():
                runs.append(_kept(sizes, lab.run(name, Load(sizes.samples, concurrency))))
        floor = _median(times[BARE], lambda run: run.wall_s) if BARE in times else None
        for runs in times.values():
            took = _median(runs, lambda run: run.wall_s)
            over_bare = took / floor if floor else None
            yield _about(runs[0]) | {"wall_s": took, "over_bare": over_bare, "of_ideal": _ideal(runs)}
    for name in sizes.peers:
        run = _kept(sizes, lab.run(name, Load(sizes.peer_samples)))
        measured = {"wall_s": run.wall_s, "over_bare": None, "of_ideal": run.of_ideal} if run.reported else {}
        yield _about(run) | measured


def cpu(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """CPU per call at 20 ms, of the judging and of the whole process, and the peak of memory."""
    for name in sizes.clients:
        repeats = 1 if CLIENTS[name].is_peer else sizes.repeats
        runs = [_kept(sizes, lab.run(name, Load(sizes.of(name), latency_ms=20))) for _ in range(repeats)]
        yield _about(runs[0]) | {
            "cpu_ms_per_call": _median(runs, lambda run: run.cpu_ms_per_call) if runs[-1].reported else None,
            "whole_cpu_ms_per_call": _median(runs, lambda run: 1000 * run.whole_cpu_s / max(1, run.all_calls)),
            "peak_mb": max(run.peak_mb for run in runs),
        }


def calls(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """What one sample costs in calls and prompt tokens (characters ÷ 4, schemas and tools included)."""
    for name in sizes.clients:
        if name != BARE:
            load = Load(sizes.peer_samples, latency_ms=20)
            # Nothing here hangs on time, so a run that was made for another figure will do.
            made = (run for run in sizes.seen if (run.client, run.load) == (name, load))
            run = next(made, None) or _kept(sizes, lab.run(name, load))
            embeddings = run.stub.get("embedding_requests", 0)
            per_sample = {
                "calls": run.calls / run.load.samples,
                "embedding_calls": embeddings / run.load.samples,
                "prompt_tokens": run.prompt_tokens / run.load.samples,
                "uncached_tokens": run.uncached_tokens / run.load.samples,
            }
            yield _about(run) | per_sample | {"metrics": CLIENTS[name].metrics}


def faults(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """10 % 429, 5 % 500, 5 % broken JSON and one hang of 60 s, against the same client without them."""
    for name in sizes.clients:
        if name != BARE:
            calm_load = Load(sizes.of(name), deadline=DEADLINE)
            calm = _kept(sizes, lab.run(name, calm_load))
            seconds = max(LONGEST, PATIENCE * calm.whole_wall_s)
            rough = _kept(sizes, lab.run(name, replace(calm_load, faults=FAULTS), seconds=seconds))
            faulty = sum(rough.stub.get(kind, 0) for kind in SENT)
            yield _about(rough) | {
                "scored": rough.scored,
                "changed": _changed(calm, rough),
                "faults": faulty,
                # A client that gives up early asks less than it should.
                "calls_beyond_need": rough.calls - calm.calls - faulty,
                "over_calm": rough.wall_s / calm.wall_s if calm.reported and rough.reported else None,
            }


def in_flight(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """The most requests at once in any run so far, next to the limit that the client was given.

    And in one of its own: an endpoint so slow that even a client short of processor time has all in flight that it may.
    """
    for name in sizes.clients:
        load = Load(sizes.peer_samples, latency_ms=SLOW_MS)
        load = replace(load, samples=min(load.samples, 3 * load.concurrency))
        _kept(sizes, lab.run(name, load))
    worst: dict[tuple[str, int], int] = {}
    for run in sizes.seen:
        key = run.client, run.load.concurrency
        worst[key] = max(worst.get(key, 0), run.stub["peak_in_flight"])
    for (name, limit), peak in worst.items():
        yield {"client": name, "limit": limit, "limit_of": CLIENTS[name].limit_of, "peak": peak}


def resume(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """kill -9 at half of the calls, then on with what the client has for that."""
    for name in sizes.clients:
        if way := CLIENTS[name].resumes:
            load = Load(sizes.of(name))
            whole = lab.run(name, load, told={"doing": "keep"})
            half, work = whole.calls // 2, Path(tempfile.mkdtemp(dir=lab.folder))
            killed = lab.run(
                name,
                load,
                work=work,
                told={"doing": "keep"},
                kill_when=lambda stats, half=half: stats.get("requests", 0) >= half,
            )
            going_on = lab.run(name, load, work=work, told={"doing": "resume"}, keep_counting=True)
            resumed = _kept(sizes, going_on)
            answered_again = resumed.stub.get("settled_asked_again", 0)
            yield _about(resumed) | {
                "way": way,
                "calls_at_kill": killed.calls,
                "in_flight_at_kill": resumed.stub.get("client_gave_up", 0),
                "answered_asked_again": answered_again,
                "others_asked_again": resumed.stub["repeated"] - answered_again,
                "scored": resumed.scored,
                "changed": _changed(whole, resumed),
                "calls_in_all": resumed.calls,
                "calls_needed": whole.calls,
            }


def memory(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """Peak of memory of `steelyard run` with a store, few samples and many, judged inside the process."""
    # The protocol with a single ask: what is kept of a million asks is as much as of any others.
    told = {"judge": "instant", "values": False, "protocol": "grounded"}
    small, large = (lab.run(COMMAND, Load(count), told=told, seconds=6 * 3600) for count in (sizes.samples, sizes.big))
    for run in (small, large):
        about = {"client": COMMAND, "samples": run.load.samples, "ended": run.ended, "wall_s": run.wall_s}
        yield about | {"peak_mb": run.peak_mb, "over_small": run.peak_mb / small.peak_mb}


def startup(lab: Lab, sizes: Sizes) -> Iterator[Row]:
    """Start-up next to the bare interpreter, warm and in turns; and the size of the core install."""
    python, variables = lab.own()
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "import steelyard": [python, "-c", "import steelyard"],
        "steelyard --help": [python, "-m", "steelyard", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(3 + 4 * sizes.repeats):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True, cwd=lab.folder, env=variables)
            if turn >= 3:  # the first turns only warm the caches
                times[name].append(time.perf_counter() - began)
    floor = statistics.median(times["python -c pass"])
    for name, took in times.items():
        yield {"what": name, "ms": 1000 * statistics.median(took), "over_python": statistics.median(took) / floor}
    yield {"what": "core install", "mb": _installed_mb(Path(python))}


FIGURES: dict[str, Callable[[Lab, Sizes], Iterator[Row]]] = {
    "wall": wall,
    "cpu": cpu,
    "calls": calls,
    "faults": faults,
    "in-flight": in_flight,
    "resume": resume,
    "memory": memory,
    "startup": startup,
}


def _kept(sizes: Sizes, run: Measured) -> Measured:
    if (run.values and run.scored < run.load.samples) or not run.reported:
        print(f"{run.client}: {run.ended}, {run.scored} scored\n{run.log[-600:]}", file=sys.stderr, flush=True)
    sizes.seen.append(run)
    return run


def _about(run: Measured) -> Row:
    own = {"client": run.client, "samples": run.load.samples, "concurrency": run.load.concurrency}
    complete = run.client == BARE or run.scored == run.load.samples
    return own | {"ended": run.ended if complete else f"{run.ended}, {run.scored} scored"}


def _median(runs: Sequence[Measured], value: Callable[[Measured], float]) -> float:
    return statistics.median(value(run) for run in runs)


def _ideal(runs: Sequence[Measured]) -> float:
    return _median(runs, lambda run: run.of_ideal)


def _changed(calm: Measured, rough: Measured) -> int:
    """Values that are there in both runs and differ: what is missing is not scored, which is another matter."""
    pairs = chain.from_iterable(
        ((value, rough.values[id].get(name)) for name, value in scores.items())
        for id, scores in calm.values.items()
        if id in rough.values
    )
    return sum(before != after for before, after in pairs if before is not None and after is not None)


def _installed_mb(python: Path) -> float:
    """What pip brought for Steelyard alone, in megabytes on disk."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    packages = Path(found.stdout.strip())
    files = (path for path in packages.rglob("*") if path.is_file() and not path.is_symlink())
    brought = (path for path in files if not path.relative_to(packages).parts[0].startswith(INSTALLER))
    return sum(path.stat().st_blocks * 512 for path in brought) / 1e6
