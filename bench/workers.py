"""How far several workers on PostgreSQL are from linear, and whether the simulation tells the same.

    python bench/workers.py                                  # 1, 2 and 4 workers
    python bench/workers.py --workers 1 2 --samples 40       # shorter
    python bench/workers.py --workers 2 --samples 20000 --latency-ms 100 --concurrency 64     # long: is memory flat?

Needs the programs of PostgreSQL (Debian: `apt install postgresql`) and the extra `postgres`. Each worker has as many
calls in flight as any other, and an endpoint that only takes its time: with enough latency the processor of one machine
is not the bound. A rate is that of the calls between the first and the last fifth.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from environments import PROJECT
from harness import Lab
from results import RESULTS, Results, Row
from simulation import Plan, simulated, steady_rate

from steelyard.records import Usage
from steelyard.store.postgres import PostgresStore

sys.path.append(str(PROJECT / "tests"))
from postgres_server import PostgresServer

LOOK_SECONDS = 0.25
CALLS = 2
"""Of a sample, by `atomic`."""


def memory_mb(process: int) -> float:
    """What a process holds now."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def commit_seconds(url: str) -> float:
    """What a small transaction takes here."""
    with PostgresStore.at(url) as store:

        def once() -> float:
            began = time.perf_counter()
            store.drop_claims([("none", Usage())], "nobody", 0)
            return time.perf_counter() - began

        return statistics.median(once() for _ in range(50))


@contextmanager
def started(lab: Lab, url: str, run: str, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    python, environment = lab.own()
    words = [python, "-m", "steelyard", "worker", "--run", run, "--progress", "quiet"]
    environment |= {"STEELYARD_STORE": url, "STEELYARD_CONFIG": str(lab.folder / "steelyard.toml")}
    working = [subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield working
    finally:
        for process in working:
            process.kill()
            process.wait()


def detached(lab: Lab, url: str, samples: int, concurrency: int) -> str:
    python, environment = lab.own()
    config = lab.folder / "steelyard.toml"
    config.write_text(f'[judges.stub]\nkind = "openai"\nmodel = "stub"\nbase_url = "{lab.url}"\ntimeout = 120\n')
    words = ["run", str(lab.data(samples)), "-p", "atomic", "-j", "stub", "--store", url, "--config", str(config)]
    command = [python, "-m", "steelyard", *words, "--detach", "--concurrency", str(concurrency)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with PostgresStore.at(url) as store:
        return store.run("last").id


def measured(lab: Lab, url: str, workers: int, given: argparse.Namespace, tell: Callable[[str], None]) -> Row:
    """One run: how fast it was, what the workers needed, and what the simulation says of it."""
    samples, concurrency = workers * given.samples, workers * given.concurrency
    lab.control(reset=True, latency_ms=given.latency_ms)
    run = detached(lab, url, samples, concurrency)
    times: list[float] = []
    memory: list[list[float]] = []
    cpu = 0.0
    children = os.times()
    with started(lab, url, run, workers) as working, PostgresStore.at(url) as store:
        told = time.monotonic()
        while any(process.poll() is None for process in working):
            time.sleep(LOOK_SECONDS)
            now, calls = time.monotonic(), lab.stats().get("requests", 0)
            times += [now] * (calls - len(times))
            alive = [process.pid for process in working if process.poll() is None]
            memory.append([memory_mb(process) for process in alive])
            if now - told > 15:
                told = now
                tell(f"{calls} calls, {max(memory[-1], default=0):.0f} MB")
        row = store.run(run)
        paid = store.paid(run)
    after = os.times()
    cpu = after.children_user + after.children_system - children.children_user - children.children_system
    assert row.state == "complete", row.manifest.get("stopped")
    assert paid.calls == CALLS * samples == lab.stats()["requests"]
    steady = steady_rate(times)
    plan = Plan(
        samples=samples,
        calls=CALLS,
        workers=workers,
        concurrency=concurrency,
        latency=given.latency_ms / 1000,
        cpu=cpu / paid.calls,
        commit=commit_seconds(url),
    )
    half = [max(found) for found in memory[: len(memory) // 2] if found]
    return {
        "workers": workers,
        "samples": samples,
        "calls_per_second": steady,
        "simulated": simulated(plan).steady,
        "seconds": times[-1] - times[0],
        "simulated_seconds": simulated(plan).seconds,
        "cpu_ms_per_call": 1000 * plan.cpu,
        "commit_ms": 1000 * plan.commit,
        "peak_mb": max(max(found) for found in memory if found),
        "peak_mb_in_first_half": max(half),
        "rate_by_tenth": [round(_rate(times, tenth), 1) for tenth in range(1, 9)],
    }


def _rate(times: list[float], tenth: int) -> float:
    part = times[len(times) * tenth // 10 : len(times) * (tenth + 1) // 10]
    return len(part) / max(1e-9, part[-1] - part[0])


def rows(given: argparse.Namespace) -> Iterator[Row]:
    one: float | None = None
    with tempfile.TemporaryDirectory(), closing(PostgresServer()) as server, Lab(Path(sys.executable)) as lab:
        for workers in given.workers:
            url = server.schema(f"bench_{workers}")
            row: dict[str, Any] = measured(lab, url, workers, given, lambda said: print(said, file=sys.stderr))
            one = one or row["calls_per_second"] / workers
            row["of_linear"] = row["calls_per_second"] / workers / one
            with PostgresStore.at(url) as store:
                (size,) = next(store.query("SELECT pg_database_size(current_database())"))
            row["database_mb"] = size / 1e6
            print(json.dumps(row), file=sys.stderr, flush=True)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--samples", type=int, default=160, help="for each worker")
    parser.add_argument("--concurrency", type=int, default=8, help="calls in flight of each worker")
    parser.add_argument("--latency-ms", type=float, default=2000)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    given = parser.parse_args()
    Results(given.results).add("workers", rows(given))


if __name__ == "__main__":
    main()
