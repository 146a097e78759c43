"""Workers: real processes, a real database, a real endpoint that counts its calls, and real kills."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, fact_server, facts, judge_facts, point_to, process_environment
from endpoint import Loopback, Request, Say
from postgres_server import PostgresServer
from steelyard.records import Usage
from steelyard.store.postgres import PostgresStore
from steelyard.store.work_table import Quota, _part

SAMPLES = 300
SILENCE = "2"
# What the endpoint takes for each call.
CALL_TOKENS = 120


def slowly(request: Request) -> Say:
    return Say(judge_facts(request), latency=0.15)


def detached(steelyard: Steelyard, url: str, count: int, *more: object) -> str:
    """A run of so many samples, queued; its id."""
    file = facts(Path("facts.jsonl"), count)
    words = ("run", file, "-p", "atomic", "-j", "mine", "--store", url, "--detach", "--silence", SILENCE)
    done = steelyard(*words, *more)
    assert done.code == 0, done.err
    found = re.search(r"run (\S+): \d+ rows wait", done.err)
    assert found, done.err
    return found[1]


class Workers:
    """Worker processes of one run, that can be killed."""

    def __init__(self, url: str, run: str) -> None:
        self._environment = {**process_environment(), "STEELYARD_STORE": url, "MY_KEY": "k"}
        self._words = [sys.executable, "-m", "steelyard", "worker", "--run", run, "--progress", "quiet"]
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self._words, env=self._environment, stderr=subprocess.PIPE)
        self.processes.append(process)
        return process

    def wait(self) -> list[tuple[int, str]]:
        """Exit codes and what was said."""
        return [(process.returncode, said.decode()) for process, (_, said) in self._ended()]

    def _ended(self) -> Iterator[tuple[subprocess.Popen[bytes], tuple[bytes, bytes]]]:
        return ((process, process.communicate(timeout=120)) for process in self.processes)


@contextmanager
def workers(url: str, run: str, count: int) -> Iterator[Workers]:
    started = Workers(url, run)
    try:
        for _ in range(count):
            started.start()
        yield started
    finally:
        for process in started.processes:
            process.kill()
            process.communicate()


def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.02)


def asked(server: Loopback) -> Counter[tuple[str, str]]:
    """How often each fact was asked about, by task."""
    found: Counter[tuple[str, str]] = Counter()
    for request in list(server.requests):
        fact = re.search(r"Fact (\d+) holds", request.user)
        assert fact
        found[request.task, fact[1]] += 1
    return found


def check_promises(store: PostgresStore, server: Loopback, run: str, count: int, in_flight_at_kills: int) -> None:
    """Nothing lost or doubled; nothing answered asked again; what was in flight at a kill at most once; one bill."""
    row = store.run(run)
    assert row.state == "complete", row.manifest.get("stopped")
    assert [verdict.id for _, verdict in store.verdicts(run)] == [f"fact-{n}" for n in range(1, count + 1)]
    assert store.judged(run) == {"judged": count}
    calls = asked(server)
    assert len(calls) == 2 * count
    again = sum(calls.values()) - len(calls)
    assert max(calls.values()) <= 2
    assert again <= in_flight_at_kills
    paid = store.paid(run)
    replies = sum(store.spent_by_judge(run).values(), start=Usage())
    assert paid.calls == replies.calls == 2 * count
    assert paid.prompt_tokens + paid.completion_tokens == CALL_TOKENS * paid.calls
    # What the endpoint was asked and the store has no reply to was in flight when a worker was killed.
    assert sum(calls.values()) - paid.calls == again


def test_workers_that_are_killed_lose_nothing(steelyard: Steelyard, postgres_url: str) -> None:
    """Two of three workers are killed with calls in flight; the others take over what they held."""
    with fact_server() as server, PostgresStore.at(postgres_url) as store:
        server.reply_for = slowly
        point_to(server)
        run = detached(steelyard, postgres_url, SAMPLES)
        in_flight = 0
        with workers(postgres_url, run, 3) as working:
            for victim, share in ((0, 5), (1, 2)):
                until(lambda share=share: sum(store.judged(run).values()) > SAMPLES // share)
                working.processes[victim].send_signal(signal.SIGSTOP)
                in_flight += server.in_flight
                working.processes[victim].kill()
                working.start()
            codes = [code for code, _ in working.wait()]
        assert sorted(codes) == [-9, -9, 0, 0, 0]
        check_promises(store, server, run, SAMPLES, in_flight)
        shown = json.loads(steelyard("runs", "watch", run, "--once", "--json", "--store", postgres_url).out)
        assert (shown["judged"], shown["open_ranges"], len(shown["workers"])) == (SAMPLES, 0, 5)
