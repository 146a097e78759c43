"""More interpreters that judge: rules hold theirs, so another core needs another process.

`python -m steelyard.judges.embedded.worker` is what runs in each. It is not multiprocessing's: that would run the
script of whoever calls `evaluate` once more in every process.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from typing import IO, Any, cast

from steelyard.judges.embedded.judging import answered, loaded
from steelyard.records import Ask, ReplyData, Unjudged

READY = "ready"
CLOSES_WITHIN = 5.0
# What a pipe says when there is nobody at its other end.
GONE = (OSError, EOFError, pickle.UnpicklingError)


class Worker:
    """One process, asked by one thread at a time. It ends with its pipe, so also when this process is killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "steelyard.judges.embedded.worker"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asks, self._replies = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)

    def is_ready(self) -> bool:
        """Whether it runs; it cannot where only this process knows where the package is."""
        try:
            return bool(pickle.load(self._replies) == READY)
        except GONE:
            return False

    def answer(self, asked: bytes) -> ReplyData | Unjudged:
        self._asks.write(asked)
        self._asks.flush()
        found: ReplyData | Unjudged = pickle.load(self._replies)
        return found

    def close(self) -> int:
        """Ends it; the code it ended with."""
        for pipe in (self._asks, self._replies):
            try:
                pipe.close()
            except OSError:  # it has gone, with something still to be said to it
                continue
        try:
            return self._process.wait(CLOSES_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class Workers:
    """Some processes, started beside the work and kept until they are closed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._is_open, self._is_started = True, False

    def answer(self, ask: Ask) -> ReplyData | Unjudged | None:
        """The answer, or None where no process can give one yet, or ever: then this one has to."""
        try:
            asked = pickle.dumps((ask.task, ask.language, ask.data))
        except (pickle.PicklingError, AttributeError, TypeError):  # data of a kind that only this process knows
            return None
        worker = self._taken()
        if worker is None:
            return None
        try:
            found = worker.answer(asked)
        except GONE:
            code = worker.close()
            self._start(1)
            return Unjudged(reason="judge_failed", detail=f"{ask.task}: the process that judged it ended with {code}")
        self._put_back(worker)
        return found

    def close(self) -> None:
        with self._lock:
            self._is_open = False
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _taken(self) -> Worker | None:
        with self._lock:
            is_first, self._is_started = not self._is_started, True
            if self._idle:
                return self._idle.pop()
        if is_first:
            self._start(self._count)
        return None

    def _start(self, count: int) -> None:
        # Loading takes a second or two; whoever waits to be judged need not wait for that.
        for _ in range(count):
            threading.Thread(target=self._started, name="embedded-start", daemon=True).start()

    def _started(self) -> None:
        # Packed into a program, the interpreter is that program: called again, it would begin anew.
        if getattr(sys, "frozen", False) or not sys.executable:
            return
        try:
            worker = Worker()
        except OSError:
            return
        if worker.is_ready():
            self._put_back(worker)
        else:
            worker.close()

    def _put_back(self, worker: Worker) -> None:
        with self._lock:
            if self._is_open:
                self._idle.append(worker)
                return
        worker.close()


def main() -> None:
    """Answers what comes in until the pipe is closed."""
    # Who presses Ctrl-C means the run; it closes the pipe when it is through.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not come between the replies.
    os.dup2(2, 1)
    loaded()
    said: Any = READY
    while True:
        pickle.dump(said, replies)
        replies.flush()
        try:
            task, language, data = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        said = answered(task, language, data)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
