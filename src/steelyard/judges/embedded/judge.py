"""EmbeddedJudge: one function per task, looked up by the task's name and run beside the event loop."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import JudgeError
from steelyard.records import Ask, Reply, ReplyData, Unjudged

if TYPE_CHECKING:
    from steelyard.judges.embedded.support import Read

TaskFunction = Callable[[Any, Literal["zh", "en"], "Read"], ReplyData]

HOMES = {
    "atomic.split": ("atomic", "split"),
    "atomic.judge": ("atomic", "judge"),
    "grounded.judge": ("grounded", "judge"),
    "scorecard.key_points": ("scorecard", "key_points"),
    "scorecard.judge": ("scorecard", "judge"),
    "dialogue.validity": ("dialogue", "validity"),
    "dialogue.compliance": ("dialogue", "compliance"),
}


class EmbeddedJudge:
    """Answers every task of the four protocols without a model server, a key or the network.

    `read` reads passages and says what they support; the `local` judge brings its own.
    """

    def __init__(self, read: Read | None = None, *, name: str = "embedded") -> None:
        self.name = name
        self._read = read
        # Two hands: one more sample is read while the first waits for the interpreter.
        self._pool = ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1), thread_name_prefix="embedded")

    def describe(self) -> dict[str, Any]:
        """For a run's manifest: which rules and weights judged."""
        return {"model": f"{self.name}-{edition()}", "offline": True}

    def fingerprint(self, ask: Ask) -> str:
        """Changes with the ask and with anything in this folder, rules and weights alike."""
        return hashlib.sha256(f"{self.name} {edition()} {ask.key}".encode()).hexdigest()[:32]

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if ask.task not in HOMES:
            known = ", ".join(HOMES)
            return Unjudged(
                reason="unknown_task",
                detail=f"the embedded judge has no function for {ask.task}; it answers {known}. Take a language model",
            )
        # Encoding a long passage takes tens of milliseconds: the loop must go on meanwhile.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._answer, ask)

    async def aclose(self) -> None:
        self._pool.shutdown(wait=False)

    def _answer(self, ask: Ask) -> Reply | Unjudged:
        read = self._read or _reader()
        try:
            with _one_thread():
                data = task_function(ask.task)(ask.data, ask.language, read)
            # By name and value: an ask may want another model of the same shape.
            data = data if isinstance(data, ask.reply) else ask.reply.model_validate(data.model_dump())
        except JudgeError:
            raise
        except Exception as error:  # one sample that breaks a rule must not end a run over a million
            return Unjudged(reason="judge_failed", detail=f"{ask.task}: {type(error).__name__}: {error}")
        return Reply(data=data)


def task_function(task: str) -> TaskFunction:
    module, function = HOMES[task]
    found: TaskFunction = getattr(import_module(f"steelyard.judges.embedded.{module}"), function)
    return found


def _reader() -> Read:
    """The package's own reading; what it is made of is loaded at the first ask, not at import."""
    try:
        from steelyard.judges.embedded.support import read
    except ImportError as error:
        raise JudgeError(f"the embedded judge cannot start: {error}; install steelyard anew") from error
    return read


def _one_thread() -> AbstractContextManager[None]:
    from steelyard.judges.embedded.meaning import ONE_THREAD

    return ONE_THREAD


@cache
def edition() -> str:
    """The content address of everything that shapes the answers: the rules, the tables, the weights."""
    digest = hashlib.sha256()
    for file in _files(files("steelyard.judges.embedded")):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _files(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            if not entry.name.startswith(("__", ".")):
                yield from _files(entry)
        elif not entry.name.endswith(".pyc"):
            yield entry
