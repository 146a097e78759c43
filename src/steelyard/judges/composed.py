"""Judges made of judges."""

from __future__ import annotations

import asyncio
import hashlib
from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Sequence

from steelyard.judges.base import Judge, Replacing, Voice
from steelyard.judges.limiter import Stopped
from steelyard.records import Ask, Reply, Unjudged


class ComposedJudge(Judge):
    """A judge that answers by asking others. It votes on single items, which only the shipped prompts ask for."""

    follows_prompts = False

    @abstractmethod
    def parts(self) -> Sequence[Judge]:
        """Those it asks, always in the same order."""

    @abstractmethod
    def exchanged(self, replace: Replacing) -> ComposedJudge: ...

    def voices(self) -> Sequence[Voice]:
        return [voice for part in self.parts() for voice in part.voices()]

    async def aclose(self) -> None:
        """Close each part once, however often it is asked."""
        for judge in {id(judge): judge for judge in self.parts()}.values():
            await judge.aclose()


def joint_fingerprint(judges: Iterable[Judge], ask: Ask, *settings: object) -> str:
    """Changes whenever one of the answers might, or what is made of them."""
    parts = [f"{judge.fingerprint(ask)} {ask.key}" for judge in judges]
    return hashlib.sha256("\x00".join([*parts, *map(str, settings)]).encode()).hexdigest()[:32]


async def all_of(answers: Iterable[Awaitable[Reply | Unjudged]]) -> list[Reply | Unjudged]:
    """All answers in order. When one ends the run, the others are still awaited: what they were paid for is kept."""
    results = await asyncio.gather(*answers, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        # What went wrong is news; that the others were stopped because of it is not.
        raise next((error for error in errors if not isinstance(error, Stopped)), errors[0])
    return [result for result in results if not isinstance(result, BaseException)]
