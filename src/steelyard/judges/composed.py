"""Judges made of judges: how to reach those who really answer, and how to exchange them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from steelyard.judges.base import Judge
from steelyard.judges.gate import Stopped
from steelyard.records import Reply, Unjudged


class Voice(NamedTuple):
    """Somebody who answers by himself; `repeat` counts how often the same one was asked before."""

    judge: Judge
    repeat: int = 0


Exchange = Callable[[Voice], Judge]


@runtime_checkable
class Composed(Judge, Protocol):
    """A judge that answers by asking others."""

    def voices(self) -> Iterator[Voice]:
        """Those who answer, each once, always in the same order."""
        ...

    def exchanged(self, exchange: Exchange) -> Self:
        """The same judge with each voice replaced, in that order."""
        ...

    def describe(self) -> dict[str, Any]: ...


def voices_of(judge: Judge) -> list[Voice]:
    """Those who really answer: the voices of a composed judge, or the judge itself."""
    return list(judge.voices()) if isinstance(judge, Composed) else [Voice(judge)]


def exchanged(judge: Judge, exchange: Exchange) -> Judge:
    return judge.exchanged(exchange) if isinstance(judge, Composed) else exchange(Voice(judge))


def described(judge: Judge) -> dict[str, Any]:
    """What a manifest says of a judge."""
    describe: Callable[[], Mapping[str, Any]] = getattr(judge, "describe", dict)
    return {"name": judge.name, **describe()}


def fingerprint_of(judge: Judge, ask: Any) -> str:
    fingerprint = getattr(judge, "fingerprint", None)
    return str(fingerprint(ask)) if fingerprint else f"{judge.name} {ask.key}"


async def all_of(answers: Iterable[Awaitable[Reply | Unjudged]]) -> list[Reply | Unjudged]:
    """All answers in order. When one ends the run, the others are still awaited: what they were paid for is kept."""
    results = await asyncio.gather(*answers, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        # What went wrong is news; that the others were stopped because of it is not.
        raise next((error for error in errors if not isinstance(error, Stopped)), errors[0])
    return [result for result in results if not isinstance(result, BaseException)]


async def close_all(judges: Iterable[Judge]) -> None:
    """Close each once, however often it is asked."""
    for judge in {id(judge): judge for judge in judges}.values():
        await judge.aclose()
