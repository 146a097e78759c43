"""EmbeddedJudge: answers asks beside the event loop, on as many threads as there are cores."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Literal

from steelyard.errors import JudgeError
from steelyard.judges.base import Judge
from steelyard.records import Ask, Record, Reply, ReplyData, Unjudged

if TYPE_CHECKING:
    from steelyard.judges.embedded.network import Reader

# Where each task is answered; a module is loaded at its first ask.
TASK_FUNCTIONS = {
    "atomic.split": ("atomic", "split"),
    "atomic.judge": ("atomic", "judge"),
    "grounded.judge": ("grounded", "judge"),
    "scorecard.key_points": ("scorecard", "key_points"),
    "scorecard.judge": ("scorecard", "judge"),
    "dialogue.validity": ("dialogue", "validity"),
    "dialogue.compliance": ("dialogue", "compliance"),
    "rubric.judge": ("criteria", "rubric"),
    "rubric.dialogue": ("criteria", "rubric"),
    "retrieval.judge": ("retrieval", "judge"),
    "pairwise.judge": ("criteria", "pairwise"),
}
TaskFunction = Callable[[Any, Literal["zh", "en"], "Reader | None"], ReplyData]

# In characters, and in seconds. What is longer would take longer than anybody waits.
LONGEST, WITHIN = 400_000, 60.0


class EmbeddedJudge(Judge):
    """Answers the tasks of the protocols without a model server, a key or the network.

    `reader` reads passages and claims in place of the network in the box (`judges/verifiers/`).
    """

    follows_prompts = False

    def __init__(self, reader: Reader | None = None, *, name: str = "embedded") -> None:
        self.name = name
        self._reader = reader
        self._pool: ThreadPoolExecutor | None = None

    def describe(self) -> dict[str, Any]:
        """For a run's manifest: which code and weights judged."""
        return {"model": self._model(), "offline": True}

    def fingerprint(self, ask: Ask) -> str:
        """Changes with the ask, with anything in this folder, code and weights alike, and with the reader."""
        return hashlib.sha256(f"{self.name} {self._model()} {ask.key}".encode()).hexdigest()[:32]

    def _model(self) -> str:
        return f"{self.name}-{edition()}" if self._reader is None else f"{self._reader.identity}-{edition()}"

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if ask.task not in TASK_FUNCTIONS:
            known = ", ".join(TASK_FUNCTIONS)
            return Unjudged(
                reason="unknown_task",
                detail=f"the embedded judge has no function for {ask.task}; it answers {known}. Take a language model",
            )
        if (size := _size(ask.data)) > LONGEST:
            return Unjudged(reason="too_long", detail=f"{ask.task}: {size:,} characters are more than this judge reads")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=usable_cores(), thread_name_prefix="embedded")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, ask)

    async def aclose(self) -> None:
        """Its threads end; another ask begins new ones."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def _answer(self, ask: Ask) -> Reply | Unjudged:
        from steelyard.judges.embedded.network import within

        try:
            with within(self.seconds):
                found = task_function(ask.task)(ask.data, ask.language, self._reader)
            # By name and value: an ask may want another model of the same shape.
            return Reply(data=found if isinstance(found, ask.reply) else ask.reply.model_validate(found.model_dump()))
        except JudgeError:
            raise
        except TimeoutError:
            return Unjudged(reason="timeout", detail=f"{ask.task}: not judged within {self.seconds:g} seconds")
        except Exception as error:  # one sample that breaks something must not end a run over a million
            return Unjudged(reason="judge_failed", detail=f"{ask.task}: {type(error).__name__}: {error}")

    @property
    def seconds(self) -> float:
        """How long it may take over one ask."""
        return WITHIN


def task_function(task: str) -> TaskFunction:
    module, function = TASK_FUNCTIONS[task]
    found: TaskFunction = getattr(import_module(f"steelyard.judges.embedded.{module}"), function)
    return found


def _size(value: object) -> int:
    """How many characters of text there are in an ask's data."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Record):
        return sum(_size(part) for _, part in value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0


def usable_cores() -> int:
    """How many cores this process may use; more threads would only wait for each other."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def edition(package: str = "steelyard.judges.embedded") -> str:
    """The content address of everything that shapes the answers: the code and the weights."""
    digest = hashlib.sha256()
    for file in _files(files(package)):
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
