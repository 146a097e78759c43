"""What a judge was asked about one sample and what it said, in order: the protocol is driven again over the stored
replies, and each ask is worded as it was then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.errors import PromptError
from steelyard.journal import StoredJudge, marks_in
from steelyard.prompts import Prompts
from steelyard.protocols import get_protocol
from steelyard.records import Again, Ask, Record, Reply, Sample, Unjudged, Usage
from steelyard.store import RunRow, Store


class Wording(Record):
    """The prompt an ask was put in: then, as the run recorded it, and as it is worded now."""

    id: str
    version: int
    recorded_version: int | None
    is_same: bool


class Message(Record):
    role: str
    content: str


class Exchange(Record):
    """One ask and its reply. `messages` is empty for a judge that is given data rather than a prompt."""

    number: int
    round: int
    task: str
    language: str
    again: Again | None
    wording: Wording | None
    messages: tuple[Message, ...]
    data: dict[str, Any]
    reply: Any
    raw: str
    reason: str = ""
    usage: Usage
    paid_by: str | None


def exchanges(store: Store, row: RunRow, sample: Sample, prompts: Prompts) -> list[Exchange]:
    """Every ask about the sample. What has no reply on record says so; nothing is asked of anybody."""
    protocol = get_protocol(row.protocol)
    options = protocol.parse_options(row.manifest.get("options", {}))
    teller = _Teller(StoredJudge(store, row.judge, row.id), row, prompts.with_texts(protocol.prompts))
    rounds = protocol.rounds(sample, options)
    found: list[Exchange] = []
    try:
        asks, number = next(rounds), 1
        while True:
            replies: list[Reply | Unjudged] = []
            for ask in asks:
                exchange, reply = teller.told(ask, len(found) + 1, number)
                found.append(exchange)
                replies.append(reply)
            asks, number = rounds.send(replies), number + 1
    except StopIteration:
        return found


class _Teller:
    def __init__(self, judge: StoredJudge, row: RunRow, prompts: Prompts) -> None:
        self._judge, self._prompts = judge, prompts
        self._recorded: Mapping[str, Any] = row.manifest.get("prompts", {})
        # Only a judge over HTTP is sent the prompt as it stands; the others get the ask itself.
        self._worded = "base_url" in row.manifest.get("judge", {})

    def told(self, ask: Ask, number: int, round: int) -> tuple[Exchange, Reply | Unjudged]:
        known = self._judge.recall(ask)
        reply: Reply | Unjudged = (
            Reply(data=known[1], raw=known[0].raw, usage=known[0].usage, marks=marks_in(known[0]))
            if known
            else Unjudged(reason="not_recorded")
        )
        return Exchange(
            number=number,
            round=round,
            task=ask.task,
            language=ask.language,
            again=ask.again,
            wording=self._wording(ask) if self._worded else None,
            messages=tuple(self._messages(ask)) if self._worded else (),
            data=ask.data.model_dump(mode="json"),
            reply=json.loads(known[0].reply) if known else None,
            raw=known[0].raw if known else "",
            reason="" if known else "not_recorded",
            usage=reply.usage,
            paid_by=known[0].run if known else None,
        ), reply

    def _wording(self, ask: Ask) -> Wording | None:
        try:
            prompt = self._prompts.get(ask.task, ask.language)
        except PromptError:
            return None
        then = self._recorded.get(prompt.id, {})
        same = then.get("sha256") == prompt.sha256
        return Wording(id=prompt.id, version=prompt.version, recorded_version=then.get("version"), is_same=same)

    def _messages(self, ask: Ask) -> Iterator[Message]:
        try:
            for message in self._prompts.messages(ask):
                yield Message(role=message["role"], content=message["content"])
        except PromptError:
            return
