"""Real processes, real kills, a real server: nothing lost, nothing paid twice, no value changed by a fault."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, fact_server, facts, judge_facts, lines_of, point_to, process_environment, write_lines
from endpoint import Hang, Loopback, Raw, Request, Say, Status
from steelyard.store import Store
from steelyard.store import sqlite as store_module

MINE = ("-p", "atomic", "-j", "mine", "--progress", "quiet")
COUNT = 20


@pytest.fixture
def samples(steelyard: Steelyard) -> Path:
    """Twenty samples in the test's folder; judging them takes forty calls."""
    return facts(Path("facts.jsonl"), COUNT)


def process(*words: object, limit: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "steelyard", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=process_environment(), text=True, preexec_fn=limit, **pipes)


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


def asked(server: Loopback) -> Counter[tuple[str | None, str]]:
    return Counter((request.task, request.user) for request in server.requests)


def results(path: str = "out.jsonl") -> list[dict[str, Any]]:
    """The result lines without what they cost, which a reused reply changes."""
    return [{**line, "usage": None} for line in lines_of(path)]


@pytest.fixture
def undisturbed(steelyard: Steelyard, samples: Path) -> list[dict[str, Any]]:
    """What a run without any trouble says."""
    with fact_server() as server:
        point_to(server)
        assert steelyard("run", samples, *MINE, "-o", "calm.jsonl", "--store", "calm.db").code == 0
    return results("calm.jsonl")


# --- kill -9 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "then"),
    [
        (1, ["resume", "last"]),
        (13, ["resume", "last"]),
        (36, ["resume", "last"]),
        (1, ["run", "facts.jsonl", *MINE]),
        (22, ["run", "facts.jsonl", *MINE]),
    ],
)
def test_after_kill_only_what_was_unanswered_is_asked(
    steelyard: Steelyard, samples: Path, undisturbed: list[Any], requests: int, then: list[str]
) -> None:
    """Whenever it was killed, and however one goes on: no answered call again, the same results."""
    answered: list[Request] = []

    def judge(request: Request) -> Any:
        answered.append(request)
        return Say(judge_facts(request), latency=0.03)

    with fact_server() as server:
        server.reply_for = judge
        point_to(server)
        running = process("run", samples, *MINE, "-c", 4)
        wait_until(lambda: len(server.requests) >= requests)
        running.kill()
        running.communicate(timeout=120)
        wait_until(lambda: server.in_flight == 0)
        before = asked(server)
        assert sum(before.values()) < 2 * COUNT
        with Store.open(Path(".steelyard/store.db")) as store:
            kept = store._db.execute("SELECT count(*) FROM replies").fetchone()[0]
        # What the server had answered and the process had not yet read was in flight.
        assert sum(before.values()) - 4 <= kept <= sum(before.values())
        done = steelyard(*then, "-o", "out.jsonl")
        assert done.code == 0, done.err
        again = asked(server) - Counter(dict.fromkeys(before, 1))
        repeated = [ask for ask in again if ask in before]
        assert len(repeated) == sum(before.values()) - kept <= 4
        assert len(asked(server)) == 2 * COUNT
    assert results() == undisturbed


def test_a_killed_run_lets_go_of_itself(steelyard: Steelyard, samples: Path) -> None:
    """While a process is at work on a run, a second one is refused; once that is dead, it may go on."""
    with fact_server(latency=0.3) as server:
        point_to(server)
        running = process("run", samples, *MINE, "-c", 2)
        wait_until(lambda: len(server.requests) > 0)
        refused = steelyard("resume", "last")
        assert refused.code == 5
        assert "in the hands of another process" in refused.err
        running.kill()
        running.communicate(timeout=120)
        server.latency = 0
        assert steelyard("resume", "last").code == 0


# --- faults of the endpoint -----------------------------------------------------------------------------


class Faulty:
    """Trouble for the first try of some asks, chosen by their content, so that each run meets the same."""

    def __init__(self, hang: bool = False) -> None:
        self.tries: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.hang = hang

    def __call__(self, request: Request) -> Any:
        ask = request.user if len(request.messages) == 2 else request.messages[1]["content"]
        self.tries[ask] += 1
        if self.tries[ask] > 1:
            return judge_facts_of(ask, request)
        draw = int(hashlib.sha256(ask.encode()).hexdigest(), 16) % 100
        if self.hang and not self.faults["hang"] and request.task == "atomic.judge":
            self.faults["hang"] += 1
            return Hang(30)
        for kind, share, behaviour in (
            ("429", 10, Status(429, "slow down", headers={"Retry-After": str(draw % 2)})),
            ("500", 15, Status(500)),
            ("json", 20, Say('{"atoms": [{"id": 1, "te')),
            ("not json", 22, Raw(b"<html>bad gateway</html>", "text/html")),
        ):
            if draw < share:
                self.faults[kind] += 1
                return behaviour
        return judge_facts_of(ask, request)


def judge_facts_of(ask: str, request: Request) -> dict[str, Any]:
    """The flawless reply, also where the ask is followed by what was wrong with the first one."""
    first = {"messages": [{"role": "user", "content": ask}]}
    return judge_facts(Request(request.path, request.headers, {**request.body, **first}))


def test_no_value_is_changed_by_a_fault(steelyard: Steelyard) -> None:
    """429, 500, broken JSON and a hang: every sample scored as without them, one extra call for each fault."""
    many = facts(Path("many.jsonl"), 60)
    with fact_server() as server:
        point_to(server)
        began = time.monotonic()
        assert steelyard("run", many, *MINE, "-o", "calm.jsonl", "--store", "calm.db").code == 0
        calm, calm_seconds = len(server.requests), time.monotonic() - began
    faulty = Faulty(hang=True)
    with Loopback(reply_for=faulty) as server:
        point_to(server, retries=4, backoff=0.01, timeout=1.0)
        began = time.monotonic()
        done = steelyard("run", many, *MINE, "-c", 16, "-o", "out.jsonl")
        seconds = time.monotonic() - began
        assert done.code == 0, done.err
        assert min(faulty.faults[kind] for kind in ("429", "500", "json", "hang")) >= 1
        assert len(server.requests) == calm + sum(faulty.faults.values())
        # Of a call that was given up the server hears a moment later.
        assert server.max_in_flight <= 16 + faulty.faults["hang"]
    assert results() == results("calm.jsonl")
    # The hang costs one deadline and the longest Retry-After one second, side by side.
    assert seconds < 6 + 4 * calm_seconds


def test_what_stays_broken_is_told_apart_by_reason(steelyard: Steelyard, samples: Path) -> None:
    """Infrastructure that fails for good gives failed samples with their reason, never a score."""

    def broken(request: Request) -> Any:
        return Status(500) if "Fact 7 " in request.user else judge_facts(request)

    with Loopback(reply_for=broken) as server:
        point_to(server, retries=1, backoff=0.01)
        done = steelyard("run", samples, "-p", "atomic", "-j", "mine", "--progress", "json", "-o", "out.jsonl")
    assert done.code == 3
    (failed,) = [line for line in lines_of("out.jsonl") if line["status"] != "judged"]
    assert (failed["id"], failed["status"], failed["scores"]["accuracy"]) == ("fact-7", "failed", None)
    last = json.loads([line for line in done.err.splitlines() if line.startswith("{")][-1])
    assert last["errors"] == {"server_error": 1}
    assert (last["judged"], last["failed"]) == (COUNT - 1, 1)


def test_a_bad_key_is_knocked_with_once(steelyard: Steelyard, samples: Path) -> None:
    """Thousands of samples or one: a refused key stops the run after the first request."""
    with fact_server(key="right", latency=0.05) as server:
        point_to(server)
        done = steelyard("run", samples, *MINE)
        assert (done.code, len(server.requests)) == (4, 1)


# --- the limit --------------------------------------------------------------------------------------------


def long_samples(path: Path) -> Path:
    """Samples of eight sentences each: `--thorough` asks about each on its own."""
    return write_lines(
        path,
        [
            {
                "id": f"long-{n}",
                "question": f"What holds of {n}?",
                "references": [f"Little is known of {n}."],
                "answer": " ".join(f"Fact {n}{part} holds." for part in range(8)),
            }
            for n in range(1, 9)
        ],
    )


def judge_long(request: Request) -> Any:
    """One atom for each sentence; labels whatever atom is asked about."""
    if request.task == "atomic.split":
        found = re.findall(r"Fact \d+ holds\.", request.user)
        return {"atoms": [{"id": id, "text": text} for id, text in enumerate(found, start=1)]}
    ids = re.findall(r"^(\d+)\. Fact", request.user, re.MULTILINE)
    return {"atoms": [{"id": int(id), "label": "undetermined", "level": 1} for id in ids], "fallback": False}


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_calls_in_flight_never_exceed_the_limit(steelyard: Steelyard, limit: int) -> None:
    """The limit counts HTTP calls, not samples, however many asks a sample has at once."""
    with Loopback(reply_for=judge_long, latency=0.01) as server:
        point_to(server)
        done = steelyard("run", long_samples(Path("long.jsonl")), *MINE, "--thorough", "-c", limit, "-o", "out.jsonl")
        assert done.code == 0, done.err
        assert len(server.requests) == 8 * 9
        assert server.max_in_flight == limit


def test_a_stop_is_not_delayed_by_asks_that_wait_for_a_slot(steelyard: Steelyard) -> None:
    """With many asks per sample, a budget ends after the calls in flight, not after all that were lined up."""
    with Loopback(reply_for=judge_long, latency=0.01) as server:
        point_to(server)
        done = steelyard(
            "run", long_samples(Path("long.jsonl")), *MINE, "--thorough", "-c", 4, "--max-tokens", 120 * 20
        )
        assert done.code == 3
        # Twenty calls are paid for; on a busy machine up to four more are in flight before the count is in.
        assert 16 <= len(server.requests) <= 24
        before = len(server.requests)
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        assert len(server.requests) == 8 * 9
        assert before < 8 * 9
    assert sum(line["usage"]["calls"] for line in lines_of("out.jsonl")) == 8 * 9


def test_a_slow_pace_does_not_hold_up_ctrl_c(steelyard: Steelyard, samples: Path) -> None:
    """Asks that wait for their minute are let go: the run ends at once, not at the pace."""
    with fact_server() as server:
        point_to(server)
        running = process("run", samples, *MINE, "--rpm", 2)
        wait_until(lambda: len(server.requests) > 0)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)
        assert (running.returncode, "stopped: interrupted" in err) == (130, True)
        assert time.monotonic() - began < 20
        assert len(server.requests) <= 2


def test_a_long_retry_after_does_not_hold_up_sigterm(steelyard: Steelyard, samples: Path) -> None:
    """Schedulers say SIGTERM: the run reports, can be resumed, and does not wait out the endpoint's pause."""
    with fact_server() as server:
        server.reply_for = lambda request: Status(429, headers={"Retry-After": "60"})
        point_to(server, retries=3)
        running = process("run", samples, *MINE, "-c", 3)
        wait_until(lambda: len(server.requests) > 0)
        time.sleep(0.2)
        began = time.monotonic()
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=120)
        assert (running.returncode, "Traceback" in err) == (130, False)
        assert time.monotonic() - began < 20
        server.reply_for = judge_facts
        assert steelyard("resume", "last").code == 0


# --- faults of the store ------------------------------------------------------------------------------------


def small_files() -> None:
    """No file of this process may grow beyond this size, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (360_000, 360_000))


def test_a_full_disk_ends_the_run_and_keeps_what_was_there(
    steelyard: Steelyard, samples: Path, undisturbed: list[Any]
) -> None:
    """Exit code 5, one line that says what to do, and when there is room again the run goes on."""
    with fact_server(latency=0.01) as server:
        point_to(server)
        running = process("run", samples, *MINE, "-c", 2, limit=small_files)
        _, err = running.communicate(timeout=60)
        assert running.returncode == 5, err
        assert "Traceback" not in err
        (complaint,) = [line for line in err.splitlines() if line.startswith("steelyard:")]
        assert "disk" in complaint
        assert "resume" in complaint
        told = re.search(r"kept: (\d+) verdicts and (\d+) replies in .*; (\d+) replies could not be written", err)
        assert told, err
        with Store.open(Path(".steelyard/store.db")) as store:
            assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            kept = store._db.execute("SELECT count(*) FROM replies").fetchone()[0]
            verdicts = store._db.execute("SELECT count(*) FROM samples").fetchone()[0]
        assert (int(told[1]), int(told[2])) == (verdicts, kept)
        assert 1 <= int(told[3]) <= 2
        before = len(server.requests)
        # Lost are at most the two whose writing failed and the two that were let in before the run ended.
        assert 0 < before - 4 <= kept <= before < 2 * COUNT
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        assert len(server.requests) == before + 2 * COUNT - kept
    assert results() == undisturbed


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_locked_store_ends_the_run(steelyard: Steelyard, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that keeps the store locked is named after the wait, before anything is paid for."""
    path = Path(".steelyard/store.db")
    Store.open(path).close()
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.3)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        fact_server() as server,
        subprocess.Popen([sys.executable, "-c", HOLD, str(path)], text=True, **pipes) as holder,
    ):
        point_to(server)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = steelyard("run", samples, *MINE)
        assert (done.code, len(server.requests)) == (5, 0)
        assert "another process has been writing to it for 0.3 seconds" in done.err
        holder.communicate("")
        assert steelyard("run", samples, *MINE).code == 0


def test_a_store_that_is_locked_midway(steelyard: Steelyard, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends with 5 and can be resumed: only what could not be written is asked again."""
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.2)
    holders: list[sqlite3.Connection] = []

    def judge(request: Request) -> Any:
        if len(server.requests) == 9:
            other = sqlite3.connect(".steelyard/store.db", isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            holders.append(other)
        return judge_facts(request)

    with Loopback(reply_for=judge) as server:
        point_to(server)
        done = steelyard("run", samples, *MINE, "-c", 2)
        assert (done.code, "another process has been writing" in done.err) == (5, True)
        holders[0].close()
        assert steelyard("resume", "last", "-o", "out.jsonl").code == 0
        # Two that could not be written, and two more that were in flight by then.
        assert 2 * COUNT < len(server.requests) <= 2 * COUNT + 4
    assert [line["status"] for line in lines_of("out.jsonl")] == ["judged"] * COUNT
