"""Workers: real processes, a real database, a real endpoint that counts its calls, and real kills."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from arrivals import Arrivals, most_in_a_second
from command import Steelyard, fact_server, facts, judge_facts, point_to, process_environment
from cut_network import CutNetwork
from endpoint import Say
from postgres_server import PostgresServer
from promises import CALL_TOKENS, check_promises, slowly, until
from steelyard.engine.inputs import Input
from steelyard.engine.runs import RunSettings, start
from steelyard.engine.workers import BURST_SECONDS
from steelyard.evaluation.factory import JudgeFactory
from steelyard.evaluation.joining import join_run
from steelyard.judges.limiter import Limits, Pace
from steelyard.protocols import get_protocol
from steelyard.settings import Settings
from steelyard.store import Store
from steelyard.store.work_table import Quota, Share, _part

SAMPLES = 300


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that workers share: a file for those of this machine, a database for those of many."""
    if request.param == "sqlite":
        file = tmp_path / "shared.db"
        Store.open(file).close()
        return str(file)
    url: str = request.getfixturevalue("postgres_url")
    return url


SILENCE = "4"


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


def test_workers_that_are_killed_lose_nothing(steelyard: Steelyard, shared_url: str) -> None:
    """Two of three workers are killed with calls in flight; the others take over what they held."""
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server)
        run = detached(steelyard, shared_url, SAMPLES)
        in_flight = 0
        with workers(shared_url, run, 3) as working:
            for victim, share in ((0, 5), (1, 2)):
                until(lambda share=share: sum(store.judged(run).values()) > SAMPLES // share)
                working.processes[victim].send_signal(signal.SIGSTOP)
                in_flight += store.claims(run, working.processes[victim].pid)
                working.processes[victim].kill()
                working.start()
            ended = working.wait()
        assert sorted(code for code, _ in ended) == [-9, -9, 0, 0, 0], ended
        assert not any("heartbeat" in said for _, said in ended)
        check_promises(store, server, run, SAMPLES, in_flight)
        shown = json.loads(steelyard("runs", "watch", run, "--once", "--json", "--store", shared_url).out)
        assert (shown["judged"], shown["open_ranges"], len(shown["workers"])) == (SAMPLES, 0, 5)


@pytest.mark.chaos
def test_kills_and_a_restart_for_a_long_time(steelyard: Steelyard) -> None:
    """20,000 samples, a random one of four workers killed ten times; midway the database crashes and starts again, and
    later the network to it is cut for half a minute."""
    count, kills, in_flight = 20_000, 10, 0
    own, chance = PostgresServer(), random.Random()
    try:
        url = own.schema("team")
        with fact_server() as server, CutNetwork(own.port) as network:
            server.reply_for = slowly
            # Calls of a machine that is busy with something else take longer than those of a test.
            point_to(server, timeout=120)
            run = detached(steelyard, url, count)
            with Store.open(url) as store, workers(network.through(url), run, 4) as working:
                for kill in range(1, kills + 1):
                    until(lambda kill=kill: sum(store.judged(run).values()) > count * kill // (kills + 2), 1800)
                    alive = [process for process in working.processes if process.poll() is None]
                    victim = chance.choice(alive)
                    victim.send_signal(signal.SIGSTOP)
                    in_flight += store.claims(run, victim.pid)
                    victim.kill()
                    working.start()
                    if kill == kills // 2:
                        own.stop(signal.SIGQUIT)
                        time.sleep(5)
                        own.start()
                    if kill == kills * 8 // 10:
                        network.cut()
                        time.sleep(30)
                        network.mend()
                for process in working.processes:
                    process.wait(1800)
                check_promises(store, server, run, count, in_flight)
    finally:
        own.close()


def test_a_database_that_restarts_ends_no_run(steelyard: Steelyard) -> None:
    """Killed as by a power cut and started again midway: workers wait, go on by themselves, and ask nothing twice."""
    own = PostgresServer()
    try:
        url = own.schema("team")
        with fact_server() as server:
            server.reply_for = slowly
            point_to(server)
            run = detached(steelyard, url, SAMPLES)
            with Store.open(url) as store, workers(url, run, 2) as working:
                until(lambda: sum(store.judged(run).values()) > SAMPLES // 4)
                own.stop(signal.SIGQUIT)
                time.sleep(1)
                own.start()
                assert [code for code, _ in working.wait()] == [0, 0]
                check_promises(store, server, run, SAMPLES, 0)
    finally:
        own.close()


def test_a_network_that_is_cut_ends_no_run(
    steelyard: Steelyard, postgres_server: PostgresServer, postgres_url: str
) -> None:
    """For longer than a worker may be silent nothing passes between workers and database. None takes the others for
    gone, and nothing is asked twice. A run of one process keeps its run, though the server holds its old session."""
    alone = postgres_server.schema(f"alone_{secrets.token_hex(6)}")
    with (
        fact_server() as server,
        fact_server() as other,
        CutNetwork(postgres_server.port) as network,
        Store.open(postgres_url) as store,
        Store.open(alone) as second,
    ):
        server.reply_for = other.reply_for = slowly
        point_to(other)
        words = ("run", facts(Path("facts.jsonl"), SAMPLES), "-p", "atomic", "-j", "mine", "--progress", "quiet")
        command = [sys.executable, "-m", "steelyard", *map(str, words), "--store", network.through(alone)]
        single = subprocess.Popen(
            command, env={**process_environment(), "MY_KEY": "k"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            until(lambda: bool(second.runs()))
            point_to(server)
            run = detached(steelyard, postgres_url, SAMPLES)
            with workers(network.through(postgres_url), run, 2) as working:
                until(lambda: sum(store.judged(run).values()) > SAMPLES // 5 and bool(other.requests))
                network.cut()
                time.sleep(1.5 * float(SILENCE))
                network.mend()
                server.reply_for = other.reply_for = judge_facts
                assert [code for code, _ in working.wait()] == [0, 0]
            _, said = single.communicate(timeout=60)
        finally:
            single.kill()
        check_promises(store, server, run, SAMPLES, 0)
        assert single.returncode == 0, said
        assert (second.run("last").state, len(other.requests)) == ("complete", 2 * SAMPLES)


def test_a_worker_leaves_politely(steelyard: Steelyard, shared_url: str) -> None:
    """Told to leave, it finishes what is in flight and gives the rest back at once; nothing is asked a second time."""
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server)
        run = detached(steelyard, shared_url, 100, "--concurrency", 8)
        with workers(shared_url, run, 1) as working:
            until(lambda: len(server.requests) > 20)
            working.processes[0].terminate()
            ((code, said),) = working.wait()
            assert code == 0, said
            assert store.open_ranges(run)
            assert steelyard("runs", "list", "--store", shared_url).out.count("stopped") == 1
            working.start()
            working.wait()
        check_promises(store, server, run, 100, 0)


def test_what_another_worker_asks_is_waited_for(steelyard: Steelyard, shared_url: str, tmp_path: Path) -> None:
    """Samples that say the same are asked about once, whichever workers hold them."""
    row = json.loads(facts(tmp_path / "one.jsonl", 1).read_text("utf-8"))
    same = Path("same.jsonl")
    same.write_text("".join(json.dumps({**row, "id": f"s{n}"}) + "\n" for n in range(200)))
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = lambda request: Say(judge_facts(request), latency=0.5)
        point_to(server)
        words = ("run", same, "-p", "atomic", "-j", "mine", "--store", shared_url, "--detach", "--silence", SILENCE)
        assert steelyard(*words).code == 0
        run = store.run("last").id
        with workers(shared_url, run, 2) as working:
            working.wait()
        assert store.judged(run) == {"judged": 200}
        assert len(server.requests) == 2
        assert store.paid(run).calls == 2


def test_a_budget_holds_over_all_workers(steelyard: Steelyard, shared_url: str) -> None:
    """Together they take no more than the limit and what was in flight; the run is stopped, and says why."""
    most = 150 * CALL_TOKENS
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server)
        run = detached(steelyard, shared_url, SAMPLES, "--max-tokens", most, "--concurrency", 8)
        with workers(shared_url, run, 3) as working:
            working.wait()
        row = store.run(run)
        assert (row.state, row.manifest["stopped"]) == ("stopped", f"--max-tokens {most} reached")
        assert 120 <= len(server.requests) <= 150 + 8
        assert server.max_in_flight <= 8
        assert store.paid(run).calls == len(server.requests)


def judged_at_a_rate(steelyard: Steelyard, url: str, rate: int, samples: int, count: int) -> list[float]:
    """When the calls of so many workers, of which all but one join a little later, reached the endpoint."""
    with fact_server() as server, Arrivals(server.url) as arrivals, Store.open(url) as store:
        server.reply_for = slowly
        point_to(server, base_url=arrivals.url, timeout=60)
        run = detached(steelyard, url, samples, "--rpm", rate * 60)
        with workers(url, run, 1) as working:
            until(lambda: bool(arrivals.times))
            for _ in range(count - 1):
                working.start()
            working.wait()
        assert store.judged(run) == {"judged": samples}
        assert len(arrivals.times) == len(server.requests) == 2 * samples
        return arrivals.times


@pytest.mark.parametrize(("late", "used"), [(0.0, 99.5), (0.005, 99.5), (0.01, 99.0)])
def test_shares_of_a_rate_are_used(late: float, used: float) -> None:
    """Four workers whose calls leave late, by ten milliseconds on average, make 99 of 100 calls a second all the same,
    and never more than 104 in any second."""
    chance, times = random.Random(1), []
    for _ in range(4):
        pace, now = Pace(1500.0, None, BURST_SECONDS), chance.random() * 0.04
        while now < 120:
            times.append(now)
            pace.spend(0, now)
            now = max(now, pace.due) + (chance.expovariate(1 / late) if late else 0.0)
    assert len(times) / 120 >= used
    assert most_in_a_second(sorted(times)) <= 104


def test_a_rate_holds_over_all_workers(steelyard: Steelyard, shared_url: str) -> None:
    """Forty calls a second at most, in every second, whoever joins midway."""
    # 42 leave in a second at most; on their way some come nearer to each other.
    assert most_in_a_second(judged_at_a_rate(steelyard, shared_url, 40, 100, 2)) <= 44


@pytest.mark.chaos
def test_a_rate_is_held_and_used(steelyard: Steelyard, shared_url: str) -> None:
    """A hundred calls a second over four workers: never above 105 in any second, 95 on average once all work."""
    times = judged_at_a_rate(steelyard, shared_url, 100, 3000, 4)
    assert most_in_a_second(times) <= 105
    # They share the rate from the moment the last has joined; at the end some have nothing left to ask.
    steady = [at for at in times if times[0] + 15 <= at <= times[-1] - 5]
    assert len(steady) / (steady[-1] - steady[0]) >= 95


@pytest.mark.chaos
def test_a_budget_holds_over_four_workers(steelyard: Steelyard, shared_url: str) -> None:
    """Of 6,000 calls four workers may make 4,000: they make no more than those and what is in flight, nor far fewer."""
    most = 4000 * CALL_TOKENS
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server, timeout=60)
        run = detached(steelyard, shared_url, 3000, "--max-tokens", most, "--concurrency", 64)
        with workers(shared_url, run, 4) as working:
            working.wait()
        row = store.run(run)
        assert (row.state, row.manifest["stopped"]) == ("stopped", f"--max-tokens {most} reached")
        assert 3900 <= len(server.requests) <= 4000 + 64
        assert store.paid(run).calls == len(server.requests)


@pytest.mark.parametrize("spent", [{}, {"a": (10.0, 30.0), "b": (5.0, 20.0)}, {"a": (90.0, 90.0), "b": (0.0, 9.0)}])
def test_parts_of_a_budget_never_exceed_the_whole(spent: dict[str, tuple[float, float]]) -> None:
    """However often workers ask for more, what all have been given together is within the limit."""
    chance = random.Random(1)
    now = dict(spent)
    for _ in range(300):
        worker = chance.choice("abc")
        used, cap = now.get(worker, (0.0, 0.0))
        used += chance.random() * (cap - used)
        now[worker] = used, cap
        now[worker] = used, _part(100.0, now, worker, 3, 20)
        assert sum(cap for _, cap in now.values()) <= 100.0 + 1e-9
        assert all(used <= cap for used, cap in now.values())
    assert sum(used for used, _ in now.values()) > 90


def test_a_worker_that_judges_otherwise_is_refused(
    steelyard: Steelyard, shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another prompt, another model, another version of the package: it is told what differs, and asks nothing."""
    with fact_server() as server, Store.open(shared_url) as store:
        monkeypatch.setenv("MY_KEY", "k")
        point_to(server)
        run = detached(steelyard, shared_url, 3)
        join = ("worker", "--run", run, "--store", shared_url, "--progress", "quiet")
        point_to(server, model="other-model")
        told = steelyard(*join)
        assert told.code == 2
        assert "other-model" in told.err or "model" in told.err
        point_to(server)
        prompt = steelyard("prompts", "show", "atomic.split.en").out
        Path("mine").mkdir()
        Path("mine/atomic.split.en.md").write_text(prompt + "\nBe brief.\n")
        told = steelyard(*join, "--prompts", "mine")
        assert told.code == 2, told.err
        assert "atomic.split" in told.err
        row = store.run(run)
        store.update_run(
            run, state="running", finished=None, manifest={**row.manifest, "packages": {"steelyard": "0.0.1"}}
        )
        told = steelyard(*join)
        assert told.code == 2
        assert "steelyard 0.1.0, the run 0.0.1" in told.err
        assert server.requests == []


def test_processes_on_this_machine(steelyard: Steelyard, shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command starts the workers, waits, writes the lines and reports, as a run of one process does."""
    monkeypatch.setenv("MY_KEY", "k")
    for name, value in process_environment().items():
        monkeypatch.setenv(name, value)
    with fact_server() as server:
        point_to(server)
        file = facts(Path("facts.jsonl"), 60)
        words = ("run", file, "-p", "atomic", "-j", "mine", "--store", shared_url, "-o", "out.jsonl")
        done = steelyard(*words, "--processes", 2)
        assert done.code == 0, done.err
        lines = [json.loads(line)["id"] for line in Path("out.jsonl").read_text("utf-8").splitlines()]
        assert lines == [f"fact-{n}" for n in range(1, 61)]
        assert len(server.requests) == 120


def command(*words: object) -> subprocess.Popen[bytes]:
    """A command as a process of its own, which gets signals as one from a terminal does."""
    environment = {**process_environment(), "MY_KEY": "k"}
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "steelyard", *map(str, words)], env=environment, **said)  # type: ignore[call-overload,no-any-return]


def test_processes_are_interrupted_and_the_run_is_resumed(
    steelyard: Steelyard, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C lets all finish what is in flight; `resume` asks only for what is left, in one process."""
    monkeypatch.setenv("MY_KEY", "k")
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server)
        words = ("run", facts(Path("facts.jsonl"), 120), "-p", "atomic", "-j", "mine", "--store", shared_url)
        process = command(*words, "--processes", 2, "--concurrency", 8, "--progress", "quiet")
        until(lambda: len(server.requests) > 30)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said.decode()
        assert b"go on with: steelyard resume" in said
        left = 120 - sum(store.judged(store.run("last").id).values())
        assert 0 < left < 120
        done = steelyard("resume", "last", "--store", shared_url, "--progress", "quiet")
        assert done.code == 0, done.err
        assert store.judged(store.run("last").id) == {"judged": 120}
        assert len(server.requests) == 240
        assert store.is_remote or not list(Path(shared_url).parent.glob("*.lock"))


def test_a_process_that_is_killed_is_replaced(steelyard: Steelyard, shared_url: str) -> None:
    """kill -9 of one of two: another one is started, and what was in flight is asked for once more."""
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server)
        words = ("run", facts(Path("facts.jsonl"), SAMPLES), "-p", "atomic", "-j", "mine", "--store", shared_url)
        process = command(*words, "--processes", 2, "--progress", "quiet", "--silence", SILENCE)
        until(lambda: len(server.requests) > SAMPLES // 4)
        run = store.run("last").id
        until(lambda: any(worker.in_flight for worker in store.workers(run)))
        victim = next(worker.process for worker in store.workers(run) if worker.in_flight)
        os.kill(victim, signal.SIGSTOP)
        in_flight = store.claims(run, victim)
        os.kill(victim, signal.SIGKILL)
        _, said = process.communicate(timeout=100)
        assert process.returncode == 0, said.decode()
        check_promises(store, server, run, SAMPLES, in_flight)
        assert len(store.workers(run)) == 3


@pytest.mark.parametrize("how", ["--processes", "--detach"])
def test_a_set_for_workers(steelyard: Steelyard, shared_url: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples of a set are judged by workers as those of a file are."""
    monkeypatch.setenv("MY_KEY", "k")
    for name, value in process_environment().items():
        monkeypatch.setenv(name, value)
    with fact_server() as server, Store.open(shared_url) as store:
        point_to(server)
        stored = ("--store", shared_url)
        assert steelyard("run", facts(Path("facts.jsonl"), 20), "-p", "atomic", "-j", "mine", *stored).code == 0
        made = steelyard("sets", "add", "mine", "last", "--all", *stored)
        assert made.code == 0, made.err
        told = steelyard(
            "run",
            "--set",
            "mine",
            "-p",
            "atomic",
            "-j",
            "mine",
            *stored,
            "--fresh",
            how,
            *([2] if how == "--processes" else []),
        )
        assert told.code == 0, told.err
        if how == "--detach":
            assert steelyard("worker", *stored, "--progress", "quiet").code == 0
        row = store.run("last")
        assert (row.state, store.judged(row.id)) == ("complete", {"judged": 20})
        assert [verdict.id for _, verdict in store.verdicts(row.id)] == [f"fact-{n}" for n in range(1, 21)]
        assert len(server.requests) == 80


def test_the_embedded_judge_in_several_processes(
    steelyard: Steelyard, shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process has its own; the verdicts are those of one."""
    for name, value in process_environment().items():
        monkeypatch.setenv(name, value)
    words = ("run", facts(Path("facts.jsonl"), 12), "-p", "atomic", "-j", "embedded", "--progress", "quiet")
    alone = steelyard(*words, "-o", "alone.jsonl")
    together = steelyard(*words, "-o", "together.jsonl", "--store", shared_url, "--processes", 2)
    assert alone.code == together.code, together.err
    assert Path("alone.jsonl").read_text("utf-8") == Path("together.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    "allowed", [Quota(), Quota(max_tokens=10), Quota(concurrency=2)], ids=["all", "budget", "room"]
)
async def test_a_worker_whose_heartbeat_fails_leaves(
    shared_url: str, allowed: Quota, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever goes wrong there, even in the interpreter: it neither waits for ever nor works on unheard."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "k")
    with fact_server() as server, Store.open(shared_url) as store:
        server.reply_for = slowly
        point_to(server)
        settings = Settings.load(Path("steelyard.toml"))
        factory = JudgeFactory(settings, settings.prompts, Limits().limiter())
        protocol = get_protocol("atomic")
        rows = Input([str(facts(Path("facts.jsonl"), 400))])
        options, judge = protocol.parse_options({}), factory.judge("mine")
        made = start(store, protocol, options, judge, "mine", settings.prompts, rows, RunSettings())
        store.queue_run(made.row.id, rows.rows(protocol), allowed)
        store.join(made.row.id, "another", "elsewhere", 1)
        beats = 0
        beat = Store.beat

        def failing(self: Store, *about: Any) -> Share:
            nonlocal beats
            beats += 1
            if beats > 1:
                raise SystemError("provoked")
            return beat(self, *about)

        monkeypatch.setattr(Store, "beat", failing)
        joined = join_run(settings, settings.prompts, store, made.row.id)
        with pytest.raises(SystemError, match="provoked"):
            await asyncio.wait_for(joined.worker.work(), 30)
        await joined.judge.aclose()
        await made.aclose()


def test_a_run_that_is_not_for_workers(steelyard: Steelyard, shared_url: str) -> None:
    """A worker is sent to `resume`; where nothing waits, it says so."""
    file = facts(Path("facts.jsonl"), 1)
    store = ("--store", shared_url)
    assert steelyard("run", file, "-p", "atomic", "-j", "embedded", "--progress", "quiet", *store).code in (0, 3)
    assert "no run waits" in steelyard("worker", *store).err
    assert "steelyard resume" in steelyard("worker", "--run", "last", *store).err


def test_a_quota_knows_whether_it_divides_anything() -> None:
    """Only then do workers wait for the others to make room."""
    assert not Quota(max_cost=1.0).is_limited
    assert Quota(concurrency=3).is_limited


def test_ray_that_is_not_installed(steelyard: Steelyard, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what to install, before a run is made."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "steelyard.integrations.ray", raising=False)
    file = facts(Path("facts.jsonl"), 1)
    told = steelyard("run", file, "-p", "atomic", "-j", "embedded", "--engine", "ray", "--store", postgres_url)
    assert (told.code, "pip install 'steelyard[ray]'" in told.err) == (2, True)
    with Store.open(postgres_url) as store:
        assert store.runs() == []


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--engine", "ray"], "--engine ray needs a store that its nodes can reach"),
        (["--address", "127.0.0.1:6379"], "add --engine ray"),
        (["--engine", "ray", "--detach"], "--detach judges nothing here"),
        (["--engine", "ray", "--record", "replies.jsonl"], "--record needs one process"),
    ],
)
def test_flags_that_do_not_go_with_ray(steelyard: Steelyard, flags: list[str], told: str) -> None:
    """They are refused before anything is connected."""
    done = steelyard("run", facts(Path("facts.jsonl"), 1), "-p", "atomic", "-j", "embedded", *flags)
    assert (done.code, told in done.err) == (2, True), done.err
