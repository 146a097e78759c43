"""Attempts to judge one sample otherwise: shown beside a run's labels, and kept only where somebody asks for it."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steelyard.engine.runner import Runner
from steelyard.judges.base import Judge, Voice
from steelyard.judges.endpoint import Price
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.records import Ask, Reply, Sample, Unjudged, Verdict

MOST_KEPT = 100
Answered = Reply | Unjudged


@dataclass(frozen=True)
class PromptTrial:
    """One attempt, with all replies: a run can be made of it without asking again."""

    run: str
    sample: Sample
    judge: str
    edited: Mapping[str, str]
    person: str | None
    verdict: Verdict
    replies: Mapping[str, Answered]


@dataclass
class Trials:
    """The newest attempts of all readers, by the names that their pages know them by."""

    _kept: OrderedDict[str, PromptTrial] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, trial: PromptTrial) -> str:
        name = secrets.token_hex(8)
        with self._lock:
            self._kept[name] = trial
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return name

    def get(self, name: str, person: str | None) -> PromptTrial | None:
        """There is none but one's own."""
        found = self._kept.get(name)
        return found if found and found.person == person else None


async def tried(
    protocol: Protocol, options: Options, judge: Judge, sample: Sample
) -> tuple[Verdict | None, dict[str, Answered]]:
    """The verdict on one sample, and every reply that it rests on."""
    replies: dict[str, Answered] = {}
    verdicts: list[Verdict] = []
    numbered = enumerate(judge.voices())
    remembering = judge.exchanged(lambda voice: RememberingJudge(voice, next(numbered)[0], replies))
    runner = Runner(protocol, options, remembering, workers=1)
    await runner.run([(0, sample)], lambda _, __, verdict: verdicts.append(verdict), lambda _: None)
    return (verdicts[0] if verdicts else None), replies


def answering(judge: Judge, replies: Mapping[str, Answered]) -> Judge:
    """The judge, answering what it was asked before with what it said then; it is asked nothing more."""
    numbered = enumerate(judge.voices())
    return judge.exchanged(lambda voice: RememberingJudge(voice, next(numbered)[0], dict(replies), asks=False))


class RememberingJudge(Judge):
    """A judge in every respect, whose replies are written down as they come."""

    def __init__(self, voice: Voice, place: int, replies: dict[str, Answered], *, asks: bool = True) -> None:
        self._judge, self._place, self._replies, self._asks = voice.judge, place, replies, asks
        self.name, self.follows_prompts = voice.judge.name, voice.judge.follows_prompts

    async def answer(self, ask: Ask) -> Answered:
        key = f"{self._place} {ask.key}"
        if key not in self._replies:
            if not self._asks:
                return Unjudged(reason="not_recorded")
            self._replies[key] = await self._judge.answer(ask)
        return self._replies[key]

    async def aclose(self) -> None:
        await self._judge.aclose()

    def describe(self) -> dict[str, Any]:
        return self._judge.describe()

    def fingerprint(self, ask: Ask) -> str:
        return self._judge.fingerprint(ask)

    @property
    def missing(self) -> str:
        return self._judge.missing

    @property
    def offline(self) -> bool:
        return self._judge.offline

    @property
    def model(self) -> str:
        return self._judge.model

    @property
    def price(self) -> Price | None:
        return self._judge.price

    @property
    def structured(self) -> str | None:
        return self._judge.structured
