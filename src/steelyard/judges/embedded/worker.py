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

    def answer(self, asked: bytes, within: float | None = None) -> ReplyData | Unjudged:
        """The answer; `TimeoutError` where it takes longer than so many seconds: the process is killed then."""
        is_late = threading.Event()

        def kill() -> None:
            is_late.set()
            self._process.kill()

        timer = threading.Timer(within or threading.TIMEOUT_MAX, kill)
        timer.daemon = True
        timer.start()
        try:
            self._asks.write(asked)
            self._asks.flush()
            found: ReplyData | Unjudged = pickle.load(self._replies)
        except GONE:
            if is_late.is_set():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()
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
        self._lock = threading.Condition()
        self._is_open, self._is_started = True, False
        self._alive = 0

    def answer(self, ask: Ask, *, wait: bool = False, within: float | None = None) -> ReplyData | Unjudged | None:
        """The answer, or None where no process can give one yet, or ever: then this one has to.

        With `wait`, one that is starting or at work is waited for. `within` so many seconds it must answer.
        """
        try:
            asked = pickle.dumps((ask.task, ask.language, ask.data))
        except (pickle.PicklingError, AttributeError, TypeError):  # data of a kind that only this process knows
            return None
        worker = self._taken(wait)
        if worker is None:
            return None
        try:
            found = worker.answer(asked, within)
        except TimeoutError:
            self._replace(worker)
            return Unjudged(reason="timeout", detail=f"{ask.task}: not judged within {within:g} seconds")
        except GONE:
            code = self._replace(worker)
            return Unjudged(reason="judge_failed", detail=f"{ask.task}: the process that judged it ended with {code}")
        self._put_back(worker)
        return found

    def close(self) -> None:
        with self._lock:
            self._is_open = False
            idle, self._idle = self._idle, []
            self._lock.notify_all()
        for worker in idle:
            worker.close()

    def _taken(self, wait: bool) -> Worker | None:
        with self._lock:
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._start(self._count)
        with self._lock:
            if wait:
                self._lock.wait_for(lambda: self._idle or not self._alive or not self._is_open)
            return self._idle.pop() if self._idle else None

    def _start(self, count: int) -> None:
        with self._lock:
            self._alive += count
        # Loading takes a second or two; whoever waits to be judged need not wait for that.
        for _ in range(count):
            threading.Thread(target=self._started, name="embedded-start", daemon=True).start()

    def _started(self) -> None:
        worker = None
        try:
            # Packed into a program, the interpreter is that program: called again, it would begin anew.
            if not getattr(sys, "frozen", False) and sys.executable:
                worker = Worker()
        except OSError:
            pass
        if worker and worker.is_ready():
            self._put_back(worker)
        else:
            self._lose(worker)

    def _put_back(self, worker: Worker) -> None:
        with self._lock:
            if self._is_open:
                self._idle.append(worker)
                self._lock.notify()
                return
        self._lose(worker)

    def _replace(self, worker: Worker) -> int | None:
        """Ends a process and starts another; the code it ended with."""
        self._start(1)
        return self._lose(worker)

    def _lose(self, worker: Worker | None) -> int | None:
        code = worker.close() if worker else None
        with self._lock:
            self._alive -= 1
            self._lock.notify_all()
        return code


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
