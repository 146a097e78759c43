"""Ray: a real cluster of several nodes on this machine, a real database, a real endpoint that counts its calls."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from command import fact_server, facts, judge_facts, point_to, process_environment
from endpoint import Say
from postgres_server import PostgresServer
from promises import check_promises, slowly, until
from steelyard.store.postgres import PostgresStore

SAMPLES = 300
SILENCE = "4"
KEY = {"MY_KEY": "k"}


def descendants(root: int) -> list[int]:
    """A process and all that it started, as the kernel knows them."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [root]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def signal_all(processes: list[int], which: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, which)


class Cluster:
    """`ray start` processes, each a node with one CPU: the head, and others."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.said = Path(self._folder.name, "said")
        # Node processes have the judge's key; the driver has none.
        self._environment = {**process_environment(), **KEY, "RAY_USAGE_STATS_ENABLED": "0"}
        head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self._folder.name}/r")
        self._start(*head)
        until(lambda: "Ray runtime started" in self.said.read_text())
        found = re.search(r"ray start --address='([^']+)'", self.said.read_text())
        assert found, self.said.read_text()
        self.address = found[1]

    def add(self, count: int) -> None:
        for _ in range(count):
            self._start(f"--address={self.address}")
            until(lambda: self.said.read_text().count("Ray runtime started") == len(self.nodes), 120)

    def _start(self, *words: str) -> None:
        small = ("--num-cpus=1", "--object-store-memory=80000000", "--block", "--disable-usage-stats")
        command = [str(Path(sys.executable).with_name("ray")), "start", *words, *small]
        with self.said.open("ab") as said:
            self.nodes.append(subprocess.Popen(command, env=self._environment, stdout=said, stderr=said, cwd="/"))

    def node_of(self, process: int) -> list[int]:
        """All processes of the node that this one belongs to; empty for none."""
        return next((found for node in self.nodes if process in (found := descendants(node.pid))), [])

    def close(self) -> None:
        for node in reversed(self.nodes):
            signal_all(descendants(node.pid), signal.SIGKILL)
            node.wait()
        self._folder.cleanup()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        made.add(2)
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def url(database: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return database.schema(f"test_{secrets.token_hex(6)}")


def driver(url: str, count: int, *words: str) -> subprocess.Popen[str]:
    file = facts(Path("facts.jsonl"), count)
    run = ("run", str(file), "-p", "atomic", "-j", "mine", "--store", url, "--engine", "ray", "--silence", SILENCE)
    command = [sys.executable, "-m", "steelyard", *run, "-o", "out.jsonl", "--progress", "json", *words]
    environment = {name: value for name, value in process_environment().items() if name not in KEY}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def judged(store: PostgresStore) -> int:
    return sum(store.judged(store.run("last").id).values()) if store.runs() else 0


def test_a_node_that_is_killed_loses_nothing(cluster: Cluster, url: str) -> None:
    """Midway, with calls in flight, all processes of a node die. Its actor begins again on another node, every verdict
    is there once, and nothing that was answered is asked again."""
    with fact_server() as server, PostgresStore.at(url) as store:
        server.reply_for = slowly
        point_to(server)
        driving = driver(url, SAMPLES, "--address", cluster.address, "--processes", "2", "--concurrency", "8")
        try:
            until(lambda: judged(store) > SAMPLES // 4)
            run = store.run("last").id
            first = store.workers(run)
            head = descendants(cluster.nodes[0].pid)
            victim = next(one.process for one in first if one.process not in head)
            node = cluster.node_of(victim)
            assert len(node) > 2
            signal_all([victim], signal.SIGSTOP)
            in_flight = store.claims(run, victim)
            signal_all(node, signal.SIGKILL)
            # Ray takes a while to notice; the other actor shall not be done before that.
            server.reply_for = lambda request: Say(judge_facts(request), latency=2.0)
            until(lambda: len(store.workers(run)) > len(first))
            server.reply_for = slowly
            _, said = driving.communicate(timeout=240)
        finally:
            driving.kill()
        assert driving.returncode == 0, said
        check_promises(store, server, run, SAMPLES, in_flight)
        lines = [json.loads(line)["id"] for line in Path("out.jsonl").read_text("utf-8").splitlines()]
        assert lines == [f"fact-{n}" for n in range(1, SAMPLES + 1)]
        replaced = store.workers(run)
        assert (len(first), len(replaced)) == (2, 3)
        assert replaced[-1].judged > 0


def test_actors_leave_when_the_driver_is_interrupted(cluster: Cluster, url: str) -> None:
    """Ctrl-C lets calls in flight end; what is left is judged later, and nothing is asked again."""
    with fact_server() as server, PostgresStore.at(url) as store:
        server.reply_for = slowly
        point_to(server)
        driving = driver(url, 100, "--address", cluster.address, "--processes", "1", "--concurrency", "4")
        try:
            until(lambda: judged(store) > 5)
            driving.send_signal(signal.SIGINT)
            _, said = driving.communicate(timeout=240)
        finally:
            driving.kill()
        run = store.run("last").id
        assert driving.returncode == 130, said
        assert store.open_ranges(run)
        assert all(worker.is_gone for worker in store.workers(run))
        worker = [sys.executable, "-m", "steelyard", "worker", "--run", run, "--store", url, "--progress", "quiet"]
        done = subprocess.run(worker, env={**process_environment(), **KEY}, timeout=240, check=False)
        assert done.returncode == 0
        check_promises(store, server, run, 100, 0)


def test_actors_that_cannot_judge_say_why(cluster: Cluster, url: str) -> None:
    """Nodes without the judge's key judge nothing; the driver tells the reason and ends."""
    driving = driver(url, 3, "--address", cluster.address, "--processes", "1", "-j", "deepseek:deepseek-chat")
    _, said = driving.communicate(timeout=240)
    assert driving.returncode == 2, said
    assert "no worker is left" in said
    assert "DEEPSEEK_API_KEY" in said
    with PostgresStore.at(url) as store:
        assert store.open_ranges(store.run("last").id)


def test_an_address_where_no_cluster_is(url: str) -> None:
    """The user is told at once, and no run is left behind."""
    with fact_server() as server, socket.socket() as free, PostgresStore.at(url) as store:
        point_to(server)
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        began = time.monotonic()
        driving = driver(url, 3, "--address", address)
        _, said = driving.communicate(timeout=240)
        assert (driving.returncode, f"--address {address}: no Ray cluster" in said) == (2, True), said
        assert time.monotonic() - began < 30
        assert store.runs() == []
