"""EmbeddedJudge: answers asks beside the event loop, and on every core once there are many."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from steelyard.judges.base import Judge
from steelyard.judges.embedded.judging import HOMES, answered, failed
from steelyard.judges.embedded.worker import Workers
from steelyard.records import Ask, Record, Reply, Unjudged

if TYPE_CHECKING:
    from steelyard.judges.embedded.support import Read

# A process takes a second or two to start, and some 170 MB: a handful of samples is judged sooner without.
ALONE = 24
MOST_PROCESSES = 4
# Rules can take time in the square of a text, and one that is at work cannot be interrupted: what is longer than this,
# in characters, goes to a process, which can be killed.
SHORT = 8_000
WITHIN = 60.0
LONGEST = 400_000
# Without a process: some ten seconds for the worst of texts.
LONGEST_HERE = 30_000


class EmbeddedJudge(Judge):
    """Answers every task of the four protocols without a model server, a key or the network.

    `read` reads passages and says what they support; the `local` judge brings its own, which only this process has.
    """

    follows_prompts = False

    def __init__(self, read: Read | None = None, *, name: str = "embedded") -> None:
        self.name = name
        self._read = read
        self._answered = 0
        hands = min(MOST_PROCESSES, _cores())
        self._workers = Workers(hands) if read is None else None
        self._spreads = self._workers is not None and hands > 1
        # Without processes two hands: one more sample is read while the first waits for the interpreter.
        threads = hands if self._spreads else min(2, hands)
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="embedded")

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
        if self._workers:
            await asyncio.to_thread(self._workers.close)

    def _answer(self, ask: Ask) -> Reply | Unjudged:
        self._answered += 1
        size, found = _size(ask.data), None
        if size > (LONGEST if self._workers else LONGEST_HERE):
            return _too_long(ask, size)
        if self._workers and (size > SHORT or (self._spreads and self._answered > ALONE)):
            found = self._workers.answer(ask, wait=size > SHORT, within=WITHIN)
        if found is None:
            if size > LONGEST_HERE:
                return _too_long(ask, size)
            found = answered(ask.task, ask.language, ask.data, self._read)
        if isinstance(found, Unjudged):
            return found
        try:
            # By name and value: an ask may want another model of the same shape.
            return Reply(data=found if isinstance(found, ask.reply) else ask.reply.model_validate(found.model_dump()))
        except ValueError as error:
            return failed(ask.task, error)


def _size(value: object) -> int:
    """How many characters of text there are in an ask's data."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Record):
        return sum(_size(part) for _, part in value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0


def _too_long(ask: Ask, size: int) -> Unjudged:
    return Unjudged(reason="too_long", detail=f"{ask.task}: {size:,} characters are more than this judge reads")


def _cores() -> int:
    """The cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
