"""The processes of the embedded judge: the same answers on more cores, and nothing left behind."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import steelyard
from steelyard.judges.embedded import EmbeddedJudge
from steelyard.judges.embedded import judge as judge_module
from steelyard.judges.embedded.judging import answered
from steelyard.judges.embedded.worker import Worker, Workers
from steelyard.records import Ask, Data, Numbered, Unjudged
from steelyard.tasks import AtomicData, AtomicReply

PASSAGES = ("自习室在第二层，共有120个座位，于2015年开放。", "The reading room closes at nine; tea may be drunk there.")
PATIENCE = 300.0
T = TypeVar("T")


def ask(text: str = "自习室在第三层") -> Ask:
    atoms = (Numbered(id=1, text=text),)
    data = AtomicData(question="几层？", references=PASSAGES, answer=text, date="", place="", atoms=atoms)
    return Ask(task="atomic.judge", language="zh", data=data, reply=AtomicReply)


def until(found: Callable[[], T | None]) -> T:
    """What is not there yet, once it is."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if (value := found()) is not None:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come")


def gone(pid: int) -> bool | None:
    """True once no such process is there; None before."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return None


@pytest.fixture
def workers() -> Iterator[Workers]:
    found = Workers(1)
    yield found
    found.close()


def test_a_process_gives_the_same_answer(workers: Workers) -> None:
    """What another process finds is what this one finds, to the last word; before it is ready nobody waits for it."""
    assert workers.answer(ask()) is None
    found = until(lambda: workers.answer(ask()))
    assert found == answered("atomic.judge", "zh", ask().data)


async def test_many_asks_are_spread_over_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge with much to do is the same judge: same labels, same order of items."""
    answers = [f"自习室在第{floor}层。" for floor in "一二三四五六"] * 3
    rows = [{"question": "几层？", "answer": answer, "references": PASSAGES} for answer in answers]
    monkeypatch.setattr(judge_module, "ALONE", 10**6)
    alone = await steelyard.evaluate_async(rows, protocol="atomic", judge=EmbeddedJudge())
    monkeypatch.setattr(judge_module, "ALONE", 0)
    judge = EmbeddedJudge()
    assert judge._workers is not None
    until(lambda: judge._workers.answer(ask()))  # type: ignore[union-attr]
    spread = await steelyard.evaluate_async(rows, protocol="atomic", judge=judge)
    await judge.aclose()
    assert [verdict.items for verdict in spread] == [verdict.items for verdict in alone]


def test_a_process_that_dies_costs_one_ask(workers: Workers) -> None:
    """The ask it had is unjudged, with the reason; the next ones go to a new process."""
    until(lambda: workers.answer(ask()))
    (worker,) = workers._idle
    worker._process.kill()
    found = workers.answer(ask())
    assert isinstance(found, Unjudged)
    assert found.reason == "judge_failed"
    assert "ended with -9" in found.detail
    assert isinstance(until(lambda: workers.answer(ask())), AtomicReply)


def test_ctrl_c_is_the_runs_to_answer() -> None:
    """A terminal tells all its processes; those that judge go on until they are closed."""
    worker = Worker()
    assert worker.is_ready()
    worker._process.send_signal(signal.SIGINT)
    assert isinstance(worker.answer(pickle.dumps(("atomic.judge", "zh", ask().data))), AtomicReply)
    assert worker.close() == 0


def test_closing_leaves_no_process(workers: Workers) -> None:
    """Each has ended when `close` returns, and no new one is begun."""
    until(lambda: workers.answer(ask()))
    pid = workers._idle[0]._process.pid
    workers.close()
    assert gone(pid)
    assert workers.answer(ask()) is None


class Unknown(Data):
    """Data that another process could not import, were it defined in a script."""

    text: str

    def __reduce__(self) -> str:
        raise TypeError("not to be sent")


def test_what_cannot_be_sent_is_judged_here(workers: Workers) -> None:
    """Not every kind of data can go to another process; then none is asked."""
    strange = Ask(task="atomic.judge", language="zh", data=Unknown(text="x"), reply=AtomicReply)
    assert workers.answer(strange) is None
    assert not workers._is_started


def test_where_no_process_can_start(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that cannot be called again judges by itself."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert [workers.answer(ask()) for _ in range(3)] == [None] * 3


def test_a_packed_program_is_not_called_again(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the interpreter is the program itself: no process is begun, and this one judges."""
    begun: list[object] = []
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **_: begun.append(given))
    assert workers.answer(ask()) is None
    until(lambda: True if not [one for one in threading.enumerate() if one.name == "embedded-start"] else None)
    assert begun == []


SCRIPT = """
import os, time
from steelyard.judges.embedded.worker import Workers
from steelyard.records import Ask
from steelyard.tasks import SplitData, SplitReply

print("begins", flush=True)
ask = Ask(task="atomic.split", language="en", data=SplitData(question="", answer="It is."), reply=SplitReply)
workers = Workers(1)
while workers.answer(ask) is None:
    time.sleep(0.1)
print(workers._idle[0]._process.pid, flush=True)
"""


@pytest.mark.parametrize("ending", ["pass", "os.kill(os.getpid(), 9)"])
def test_a_script_runs_once_and_takes_its_processes_with_it(ending: str, tmp_path: Path) -> None:
    """A script without a `__main__` guard may evaluate; when it ends, or is killed, so does what it started."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(SCRIPT) + ending + "\n", "utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    begins, pid = done.stdout.split()
    assert begins == "begins"
    assert until(lambda: gone(int(pid)))
