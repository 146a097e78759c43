"""What every judge is: something that answers asks. Ten lines make a new one (docs/judges.md)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from steelyard.records import Ask, Reply, Unjudged


@runtime_checkable
class Judge(Protocol):
    """Answers asks. `name` is written beside every verdict, so it should say exactly who judged.

    A judge may also have `describe()`, what a run's manifest says of it, and `fingerprint(ask)`, which changes
    whenever its answer to that ask might.
    """

    @property
    def name(self) -> str: ...

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        """A reply whose data satisfies `ask.reply`, or why there is none. Raises only `JudgeError`."""
        ...

    async def aclose(self) -> None:
        """Give back connections and files."""
        ...
