"""`worker`, and the runs that are made for workers: queued in the store, judged by processes here or elsewhere."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.common import ConfigOption, ProgressStyle, StoreOption, console, note
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.cli.session import Session
    from steelyard.engine.runs import Run
    from steelyard.integrations.ray import RayCluster, WorkOrder
    from steelyard.prompts import Prompts
    from steelyard.settings import Settings
    from steelyard.store import Store, StoreLocation

WAIT_SECONDS = 5.0
# So many of its own workers that ended badly one after the other are enough to give up.
PATIENCE_WITH_PROCESSES = 3


def register(app: typer.Typer) -> None:
    app.command("worker")(worker)


def worker(
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only this run; default: any that waits for workers.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="When nothing is left, wait for the next run.")] = False,
    prompts: Annotated[
        list[Path] | None, typer.Option("--prompts", help="Your own prompt file or folder, as the run has it.")
    ] = None,
    progress: Annotated[
        ProgressStyle, typer.Option(help="How to show progress, on standard error.")
    ] = ProgressStyle.auto,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Join a run that was made for workers and judge samples of it, until none is left.

    Example:  steelyard worker --store postgresql://steelyard@db.example.com/evals
    """
    from steelyard.settings import Settings
    from steelyard.store import Store

    settings = Settings.load(config)
    known = settings.prompts.with_files(prompts or [])
    with Store.open(settings.store_location(store), create=False) as opened:
        while True:
            names = [opened.run(run).id] if run else opened.waiting_runs()
            for name in names:
                if not _join(settings, known, opened, name, store, progress):
                    return
            if not wait:
                if not names:
                    print("no run waits for workers", file=sys.stderr)
                return
            time.sleep(WAIT_SECONDS)


def followed(store: Store, run: str) -> Iterator[dict[str, Any]]:
    """The progress of a run, once a second, until it has ended."""
    from steelyard.engine.workers import run_shown

    while True:
        shown = run_shown(store, run)
        yield shown
        if shown["state"] != "running":
            return
        time.sleep(1)


def watched(shown: dict[str, Any]) -> Table:
    """A run's progress and its workers, as a table."""
    from rich.table import Table

    title = f"{shown['run']} · {shown['state']} · {shown['judged']}/{shown['rows']} rows"
    table = Table("worker", title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("state", "judged", "a second", "in flight", "calls", "holds rows"):
        table.add_column(column, justify="left" if column in ("state", "holds rows") else "right")
    for worker in shown["workers"]:
        keys = ("worker", "state", "judged", "per_second", "in_flight", "calls", "holds")
        table.add_row(*(str(worker[key]) for key in keys))
    return table


def _join(
    settings: Settings, prompts: Prompts, store: Store, name: str, location: str | None, style: ProgressStyle
) -> bool:
    """Work on one run; whether to go on with another one."""
    from steelyard.cli.session import interruptible
    from steelyard.engine.progress import ProgressLine
    from steelyard.engine.runner import run_to_end
    from steelyard.evaluation.joining import join_run

    at_work, judge, limiter = join_run(settings, prompts, store, name, location)
    row = at_work.run.row
    print(f"worker {at_work.id} · run {row.id} · {row.protocol} · {judge.name}", file=sys.stderr)

    async def work() -> None:
        try:
            with ProgressLine(style.value, at_work.tally, lambda: limiter.in_flight) as shown:
                await interruptible(at_work.work(), at_work.tally, at_work.leave, shown.tick)
        finally:
            await judge.aclose()

    run_to_end(work())
    stopped = at_work.tally.stopped
    print(f"judged {at_work.tally.done} samples{f'; {stopped}' if stopped else ''}", file=sys.stderr)
    return stopped != "interrupted"


def queue(session: Session, store: Store, started: Sequence[Run], silence: float) -> None:
    """Queue the samples of new runs for workers."""
    from steelyard.store.work_table import Quota

    limits, budget = session.limits, session.budget
    quota = Quota(
        concurrency=limits.concurrency,
        requests_per_minute=limits.requests_per_minute,
        tokens_per_minute=limits.tokens_per_minute,
        max_cost=budget.max_cost,
        max_tokens=budget.max_tokens,
        max_seconds=budget.max_seconds,
        silence=silence,
    )
    for run in started:
        rows = store.queue_run(run.row.id, run.data.rows(run.protocol), quota).rows
        print(f"run {run.row.id}: {rows} rows wait for workers (steelyard worker --run {run.row.id})", file=sys.stderr)


def judge_with_processes(
    store: Store,
    location: StoreLocation,
    run: str,
    processes: int,
    config: Path | None,
    prompts: Sequence[Path],
) -> None:
    """Start workers on this machine and wait for them. A killed worker is replaced; Ctrl-C stops all gracefully."""
    words = [sys.executable, "-m", "steelyard", "worker", "--run", run, "--progress", "quiet"]
    words += [
        *(("--config", str(config)) if config else ()),
        *(word for path in prompts for word in ("--prompts", str(path))),
    ]
    # Not on the command line, where every user of the machine could read a password in it.
    environment = {**os.environ, "STEELYARD_STORE": str(location)}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, env=environment, start_new_session=True)

    working, failures, leaving = [start() for _ in range(processes)], 0, False
    try:
        while working:
            try:
                time.sleep(0.1)
            except KeyboardInterrupt:
                leaving = True
                for process in working:
                    process.send_signal(signal.SIGTERM)
            for process in [process for process in working if process.poll() is not None]:
                working.remove(process)
                if process.returncode and not leaving:
                    store.declare_gone(run, socket.gethostname(), process.pid)
                    failures += 1
                    # Killed, perhaps for its memory: its samples need somebody. Other failures would only be repeated.
                    if process.returncode < 0 and failures < PATIENCE_WITH_PROCESSES * processes:
                        working.append(start())
    finally:
        for process in working:
            process.kill()


def judge_with_ray(
    store: Store, cluster: RayCluster, order: WorkOrder, actors: int | None, style: ProgressStyle
) -> None:
    """Judge with Ray actors and follow the run in the store. Ctrl-C stops gracefully; a second one at once."""
    from rich.live import Live

    room = cluster.cpus
    count = actors or max(1, room)
    if count > room:
        note(f"the cluster has {room} CPUs for {count} actors; the others begin when there is room")
    interrupted = False
    # A shell that starts a command in the background has it ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with cluster.actors(order, count) as group:
        try:
            with Live(console=console(stderr=True), auto_refresh=False, transient=True) as live:
                for shown in followed(store, order.run):
                    if style is ProgressStyle.json:
                        print(json.dumps(shown, ensure_ascii=False), file=sys.stderr, flush=True)
                    elif style is not ProgressStyle.quiet:
                        live.update(watched(shown), refresh=True)
                    if group.are_done():
                        break
        except KeyboardInterrupt:
            interrupted = True
            print("\nfinishing what is in flight; press Ctrl-C again to stop now", file=sys.stderr)
        group.leave()
        failures = list(dict.fromkeys(group.failures))
    if failures and not interrupted and store.run(order.run).state == "running":
        again = f"go on with: steelyard worker --run {order.run}"
        raise ConfigError(f"no worker is left ({'; '.join(failures)}); {again}")
    for failure in failures:
        note(f"a worker failed: {failure}")
