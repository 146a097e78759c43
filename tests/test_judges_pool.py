"""A run that asks from several processes: real processes, a real endpoint that counts its calls, real kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, fact_server, facts, lines_of, point_to, process_environment
from endpoint import Loopback
from steelyard.judges.limiter import AdaptiveLimiter, Limits
from steelyard.store import Store

COUNT = 60
MINE = ("-p", "atomic", "-j", "mine", "--progress", "quiet")
STORE = Path(".steelyard/store.db")


def started(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "steelyard", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=process_environment(), text=True, **pipes)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


def judged(path: str) -> list[dict[str, Any]]:
    """The lines without how long each sample took."""
    return [{**line, "seconds": None} for line in lines_of(path)]


def bill() -> tuple[int, int]:
    """Calls and replies that the store has of its last run."""
    with Store.open(STORE) as store:
        run = store.run("last").id
        return sum(usage.calls for usage in store.spent_by_judge(run).values()), store.kept(run)[1]


@pytest.fixture
def endpoint(steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MY_KEY", "k")
    with fact_server() as server:
        point_to(server)
        yield server


def test_two_processes_judge_as_one(steelyard: Steelyard, endpoint: Loopback) -> None:
    """The same lines and the same bill; every call is made once."""
    file = facts(Path("facts.jsonl"), COUNT)
    assert steelyard("run", file, *MINE, "-o", "one.jsonl", "--processes", 1, "--fresh").code == 0
    alone, paid = len(endpoint.requests), bill()
    done = started("run", file, *MINE, "-o", "two.jsonl", "--processes", 2, "--fresh", "-c", 8)
    _, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert len(endpoint.requests) == 2 * alone == 4 * COUNT
    assert judged("two.jsonl") == judged("one.jsonl")
    assert bill() == paid == (2 * COUNT, 2 * COUNT)


def test_a_process_that_is_killed(steelyard: Steelyard, endpoint: Loopback) -> None:
    """The other one goes on with what it was asking; only that is asked once more."""
    file = facts(Path("facts.jsonl"), COUNT)
    run = started("run", file, *MINE, "-o", "out.jsonl", "--processes", 2, "-c", 4)
    wait_until(lambda: len(endpoint.requests) >= COUNT // 2)
    os.kill(children(run.pid)[0], signal.SIGKILL)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert len(lines_of("out.jsonl")) == COUNT
    assert 2 * COUNT <= len(endpoint.requests) <= 2 * COUNT + 2
    assert bill() == (2 * COUNT, 2 * COUNT)


def test_the_first_process_is_killed(steelyard: Steelyard, endpoint: Loopback) -> None:
    """Its processes end with it, and `resume` asks only what was in flight again."""
    file = facts(Path("facts.jsonl"), COUNT)
    run = started("run", file, *MINE, "--processes", 2, "-c", 4)
    wait_until(lambda: len(endpoint.requests) >= COUNT // 2)
    pids = children(run.pid)
    assert len(pids) == 2
    run.kill()
    run.communicate()
    wait_until(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in pids))
    again = started("resume", "last", "--progress", "quiet", "-o", "out.jsonl", "--processes", 2, "-c", 4)
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert len(lines_of("out.jsonl")) == COUNT
    assert 2 * COUNT <= len(endpoint.requests) <= 2 * COUNT + 8
    assert bill()[1] == 2 * COUNT


def test_interrupted(steelyard: Steelyard, endpoint: Loopback) -> None:
    """Ctrl-C, which reaches all processes, finishes what is in flight; nothing is asked twice after it."""
    file = facts(Path("facts.jsonl"), COUNT)
    run = started("run", file, *MINE, "--processes", 2, "-c", 4)
    wait_until(lambda: len(endpoint.requests) >= COUNT // 2)
    for pid in [*children(run.pid), run.pid]:
        os.kill(pid, signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    again = started("resume", "last", "--progress", "quiet", "--processes", 2)
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert len(endpoint.requests) == 2 * COUNT


def test_a_budget_holds_over_all_processes(steelyard: Steelyard, endpoint: Loopback) -> None:
    """It is kept by the one process that journals."""
    file = facts(Path("facts.jsonl"), COUNT)
    with_one = started("run", file, *MINE, "--fresh", "--processes", 2, "-c", 4, "--max-tokens", 200)
    _, err = with_one.communicate(timeout=60)
    assert with_one.returncode == 3, err
    assert "--max-tokens 200 reached" in err
    assert len(endpoint.requests) < 2 * COUNT


@pytest.mark.parametrize(("place", "part"), [(0, 4), (1, 3), (2, 3)])
def test_limits_are_divided(place: int, part: int) -> None:
    limits = Limits(concurrency=10, requests_per_minute=60)
    limiter = limits.limiter()
    limits.divide(limiter, place, 3)
    assert limiter.limit == part
    assert limiter.pace is not None


def test_an_adaptive_limit_is_divided() -> None:
    limiter = AdaptiveLimiter()
    Limits().divide(limiter, 0, 2)
    assert (limiter.limit, limiter.ceiling) == (16, 128)
