"""Background work of the viewer: each run, group of runs and evaluation has a thread and an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from pydantic import Field
from starlette.exceptions import HTTPException

from steelyard.engine.progress import snapshot
from steelyard.engine.runs import Run
from steelyard.engine.workers import WorkerShown
from steelyard.errors import RunInUse, SteelyardError
from steelyard.judges.limiter import Limiter
from steelyard.protocols import vocabulary
from steelyard.records import Record, Usage, Verdict
from steelyard.store import Store

log = logging.getLogger("steelyard.web")
T = TypeVar("T")
Making = Callable[[Store], "Sequence[PreparedRun]"]
CLOSED = "the viewer was closed"
# How long it takes a cancelled run to write down how far it came.
LAST_WORDS = 2.0
# Seconds until an evaluation that found no place may find one.
RETRY_AFTER = 5


class RunProgress(Record):
    """How far a run is. `skipped` were judged before this time; rate, calls and tokens are of this time only."""

    id: str
    state: str = Field(description="running, stopped, complete or failed: the judge labelled nothing")
    stopping: bool = Field(default=False, description="it was told to stop and finishes what is in flight")
    waiting: bool = Field(default=False, description="it begins when the runs before it have ended")
    problem: str | None = Field(default=None, description="what ended it")
    done: int = 0
    total: int | None = Field(default=None, description="null where only reading the whole file would tell")
    skipped: int = 0
    bad_rows: int = 0
    judged: int = 0
    partial: int = 0
    failed: int = 0
    rate: float | None = Field(default=None, description="samples a second")
    eta_seconds: int | None = None
    calls: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    in_flight: int | None = None
    errors: Mapping[str, int] = Field(default_factory=dict)
    seconds: float | None = None
    scores: Mapping[str, float] = Field(
        default_factory=dict, description="means of the main scores over what was judged this time"
    )

    workers: tuple[WorkerShown, ...] = Field(default=(), description="who is or was at work on a run for workers")

    @property
    def passed(self) -> int:
        return self.done + self.skipped + self.bad_rows


class PreparedRun(NamedTuple):
    """A run that was created and not begun, with its limiter."""

    run: Run
    limiter: Limiter
    retry: bool = False


class RunningMeans:
    """The means of a run's main scores, kept up verdict by verdict: nothing is ever counted anew."""

    def __init__(self, protocol: str) -> None:
        self._vocab = vocabulary(protocol)
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, verdict: Verdict) -> None:
        for name in self._vocab.mains(verdict.scores):
            value = verdict.scores[name]
            if value is not None:
                total, n = self._sums.get(name, (0.0, 0))
                self._sums[name] = total + value, n + 1

    def means(self) -> dict[str, float]:
        return {name: total / n for name, (total, n) in self._sums.copy().items()}


class Job:
    """One run at work, or waiting for those before it. What happens to it is said in `progress()`."""

    def __init__(self, driven: PreparedRun) -> None:
        self._run, self._limiter, self._retry = driven
        self.id = self._run.row.id
        self._scores = RunningMeans(self._run.row.protocol)
        self._loop = asyncio.get_running_loop()
        self._began: float | None = None
        self._task: asyncio.Task[object] | None = None
        self._is_stopping = False

    @property
    def spent(self) -> Usage:
        return self._run.journal.spent

    def share(self, spent: Usage, seconds: float) -> None:
        """Of the budget, leave what the runs before this one have not used."""
        self._run.runner.budget = self._run.runner.budget.after(spent, seconds)

    async def begin(self) -> None:
        """Begin to judge. The first step takes the run's lock; if somebody else has it, that is raised here."""
        self._began = time.monotonic()
        scores, retry = self._scores, self._retry
        driving = self._run.drive(lambda _, verdict: scores.add(verdict), lambda _: None, retry=retry)
        self._task = asyncio.create_task(driving)
        await asyncio.sleep(0)
        if self._task.done():
            self._task.result()

    async def end(self) -> None:
        """Until it is judged, as far as it comes."""
        if self._task:
            await self._task

    def progress(self) -> RunProgress:
        seconds = 0.0 if self._began is None else time.monotonic() - self._began
        state = snapshot(self._run.tally, seconds, self._limiter.in_flight)
        own = {"stopping": self._is_stopping, "waiting": self._began is None, "scores": self._scores.means()}
        return RunProgress(id=self.id, state="running", **own, **state)

    def stop(self, reason: str) -> None:
        """Stop gracefully: finish what is in flight, begin nothing new."""
        self._is_stopping = True
        self._tell(lambda: self._run.runner.stop(reason))

    def cancel(self) -> None:
        """Stop at once. Replies that arrived are in the store."""
        self._tell(lambda: self._task.cancel() if self._task else None)

    def _tell(self, what: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # its loop has ended meanwhile, and so has the run
            self._loop.call_soon_threadsafe(what)


class Jobs:
    """All runs at work in this viewer, and the errors of those that failed."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self.problems: dict[str, str] = {}
        self.closing = threading.Event()

    def begin(self, making: Making) -> list[str]:
        """Drive the runs that `making` makes, one after the other: what two of them ask alike is asked once, and they
        share one budget. Their ids. What keeps them from starting is raised here."""
        if self.closing.is_set():
            raise RunInUse(f"{CLOSED}; nothing new is begun")
        started: Future[list[str]] = Future()
        # Not waited for at exit: whoever presses Ctrl-C twice means it, and a killed run can be resumed.
        thread = threading.Thread(
            target=lambda: asyncio.run(self._work(making, started)), name="steelyard-job", daemon=True
        )
        thread.start()
        ids = started.result()
        with self._lock:
            self._threads |= dict.fromkeys(ids, thread)
        return ids

    async def _work(self, making: Making, started: Future[list[str]]) -> None:
        made: Sequence[PreparedRun] = ()
        try:
            with self._open_store() as store:
                made = making(store)
                try:
                    await self._judge([Job(one) for one in made], store, started)
                finally:
                    for one in made:
                        await one.run.aclose()
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            elif not isinstance(error, asyncio.CancelledError):
                log.error("the store of a run failed", exc_info=error)
        finally:
            with self._lock:
                for one in made:
                    self._jobs.pop(one.run.row.id, None)

    async def _judge(self, jobs: Sequence[Job], store: Store, started: Future[list[str]]) -> None:
        with contextlib.ExitStack() as stack:
            # Nobody else takes a run up that waits for its turn.
            waiting = [stack.enter_context(_locked(store, job.id)) for job in jobs[1:]]
            await self._one_by_one(jobs, waiting, started)

    async def _one_by_one(
        self, jobs: Sequence[Job], waiting: Sequence[contextlib.ExitStack], started: Future[list[str]]
    ) -> None:
        began = time.monotonic()
        for place, job in enumerate(jobs):
            try:
                if place:
                    waiting[place - 1].close()
                    spent = sum((earlier.spent for earlier in jobs[:place]), start=Usage())
                    job.share(spent, time.monotonic() - began)
                await job.begin()
                if place == 0:
                    with self._lock:
                        for one in jobs:
                            self.problems.pop(one.id, None)
                            self._jobs[one.id] = one
                    started.set_result([one.id for one in jobs])
                await job.end()
            except BaseException as error:
                if not started.done():
                    raise
                self._note(job.id, error)
                if isinstance(error, asyncio.CancelledError):
                    raise
            finally:
                with self._lock:
                    self._jobs.pop(job.id, None)
        if not started.done():
            started.set_result([])

    def _note(self, id: str, error: BaseException) -> None:
        if isinstance(error, SteelyardError):
            self.problems[id] = str(error)
        elif not isinstance(error, asyncio.CancelledError):
            log.error("run %s failed", id, exc_info=error)
            self.problems[id] = f"unexpected {type(error).__name__}: {error}"

    def get(self, id: str) -> Job | None:
        return self._jobs.get(id)

    def stop(self, id: str, reason: str) -> bool:
        """Says whether there was something to stop."""
        job = self._jobs.get(id)
        if job:
            job.stop(reason)
        return job is not None

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def close(self) -> None:
        """No new ones; those at work stop politely."""
        self.closing.set()
        for job in list(self._jobs.values()):
            job.stop(CLOSED)

    def cancel(self) -> None:
        for job in list(self._jobs.values()):
            job.cancel()
        deadline = time.monotonic() + LAST_WORDS
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def wait(self, id: str, timeout: float | None = None) -> None:
        """Until a run is not at work any more."""
        if thread := self._threads.get(id):
            thread.join(timeout)


@contextlib.contextmanager
def _locked(store: Store, run: str) -> Iterator[contextlib.ExitStack]:
    """A run that is locked until the stack is closed, or until this ends."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.alone_with(run))
        yield stack


class Evaluations:
    """Judging while the caller waits. Some at once, some more in line, and no further ones: a judge that hangs takes
    none of the threads that pages need."""

    def __init__(self, at_once: int = 8, waiting: int = 32) -> None:
        self._limiter = CapacityLimiter(at_once)
        self._most, self._begun = at_once + waiting, 0
        self._at_work: dict[asyncio.AbstractEventLoop, asyncio.Task[Any]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    async def judged(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the work returns, as soon as there is a thread for it."""
        if self._is_closed:
            raise _busy(CLOSED)
        # Counted here and not by the limiter, which hears of a request only at its next turn.
        if self._begun >= self._most:
            raise _busy("too many evaluations at once; try again later, or create a run (POST /runs)")
        self._begun += 1
        try:
            return await to_thread.run_sync(self._run, work, limiter=self._limiter)
        finally:
            self._begun -= 1

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def listed() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            with self._lock:
                if self._is_closed:
                    raise _busy(CLOSED)
                self._at_work[loop] = task
            try:
                return await work()
            finally:
                with self._lock:
                    del self._at_work[loop]

        try:
            return asyncio.run(listed())
        except asyncio.CancelledError:
            raise _busy(CLOSED) from None

    def close(self) -> None:
        """No new ones; those at work end now, since nothing of theirs is kept."""
        with self._lock:
            self._is_closed = True
            for loop, task in self._at_work.items():
                loop.call_soon_threadsafe(task.cancel)


def _busy(why: str) -> HTTPException:
    return HTTPException(503, why, {"Retry-After": str(RETRY_AFTER)})
