"""The asks about one sample and the judges' replies, in order: the protocol is replayed over the stored
replies, and each ask is worded as it was then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.engine.journal import StoredJudge, judge_of_run, marks_in
from steelyard.engine.runner import replay
from steelyard.engine.templates import protocol_of_run
from steelyard.errors import PromptError
from steelyard.judges.base import Judge
from steelyard.prompts import Prompts
from steelyard.records import Again, Ask, Record, Reply, Sample, Unjudged, Usage
from steelyard.store import RunRow, Store, StoredReply


class PromptVersion(Record):
    """The prompt an ask was put in: then, as the run recorded it, and as it is worded now."""

    id: str
    version: int
    recorded_version: int | None
    is_same: bool


class PromptMessage(Record):
    role: str
    content: str


class JudgeCall(Record):
    """One ask and its reply. `messages` is empty for a judge that is given data rather than a prompt."""

    number: int
    round: int
    judge: str
    task: str
    language: str
    again: Again | None
    wording: PromptVersion | None
    messages: tuple[PromptMessage, ...]
    data: dict[str, Any]
    reply: Any
    raw: str
    reason: str = ""
    usage: Usage
    paid_by: str | None


def exchanges(store: Store, row: RunRow, sample: Sample, prompts: Prompts) -> list[JudgeCall]:
    """Every ask about the sample, of each judge where there were several. What has no reply on record says so; nothing
    is asked of anybody."""
    protocol = protocol_of_run(row.protocol, row.manifest)
    options = protocol.parse_options(row.manifest.get("options", {}))
    log = _ExchangeLog(row, prompts.with_texts(protocol.prompts))
    judge = judge_of_run(store, row, lambda voice, described: _ReplayedVoice(voice, "base_url" in described, log))

    async def answer(asks: list[Ask]) -> list[Reply | Unjudged]:
        log.round += 1
        return [await judge.answer(ask) for ask in asks]

    asyncio.run(replay(protocol, sample, answer, options))
    return log.found


class _ReplayedVoice(Judge):
    """A judge of the run whose stored replies are written down as they are used."""

    def __init__(self, judge: StoredJudge, worded: bool, log: _ExchangeLog) -> None:
        # Only a judge over HTTP is sent the prompt as it stands; the others get the ask itself.
        self._judge, self._worded, self._log = judge, worded, log
        self.name = judge.name

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        known = self._judge.recall(ask)
        self._log.add(ask, known[0] if known else None, self.name, worded=self._worded)
        if known is None:
            return Unjudged(reason="not_recorded")
        return Reply(data=known[1], raw=known[0].raw, usage=known[0].usage, marks=marks_in(known[0]))


class _ExchangeLog:
    def __init__(self, row: RunRow, prompts: Prompts) -> None:
        self._prompts = prompts
        self._recorded: Mapping[str, Any] = row.manifest.get("prompts", {})
        self.found: list[JudgeCall] = []
        self.round = 0

    def add(self, ask: Ask, stored: StoredReply | None, judge: str, *, worded: bool) -> None:
        self.found.append(
            JudgeCall(
                number=len(self.found) + 1,
                round=self.round,
                judge=judge,
                task=ask.task,
                language=ask.language,
                again=ask.again,
                wording=self._wording(ask) if worded else None,
                messages=tuple(self._messages(ask)) if worded else (),
                data=ask.data.model_dump(mode="json"),
                reply=json.loads(stored.reply) if stored else None,
                raw=stored.raw if stored else "",
                reason="" if stored else "not_recorded",
                usage=stored.usage if stored else Usage(),
                paid_by=stored.run if stored else None,
            )
        )

    def _wording(self, ask: Ask) -> PromptVersion | None:
        try:
            prompt = self._prompts.get(ask.task, ask.language)
        except PromptError:
            return None
        then = self._recorded.get(prompt.id, {})
        same = then.get("sha256") == prompt.sha256
        return PromptVersion(id=prompt.id, version=prompt.version, recorded_version=then.get("version"), is_same=same)

    def _messages(self, ask: Ask) -> Iterator[PromptMessage]:
        try:
            for message in self._prompts.messages(ask):
                yield PromptMessage(role=message["role"], content=message["content"])
        except PromptError:
            return
