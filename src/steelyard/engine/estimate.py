"""Estimates calls, tokens and cost before anything is sent: real prompts, stand-in replies of typical size."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field

from steelyard.engine.runner import Row, Runner
from steelyard.errors import InputError
from steelyard.judges.base import Judge, Voice
from steelyard.judges.endpoint import Price
from steelyard.judges.panel import PanelJudge
from steelyard.judges.routed import RoutedJudge
from steelyard.judges.verifying import VerifyingJudge
from steelyard.prompts import Prompts, nonce
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.records import Ask, Data, Record, Reply, ReplyData, TextReply, Unjudged, Usage
from steelyard.text import HAN, sentences

TYPICAL_REASON = "a short sentence that says why this label fits"
TYPICAL_LIST = 4
# Tokens of a reply to a user's own prompt: the source documents' examples have 400 to 900.
TYPICAL_TRANSCRIPT = 600
LOOKED_AT = 500


def tokens(text: str) -> int:
    """Roughly how many tokens a text has: some 1.5 Chinese characters, or four others, to a token."""
    han = len(HAN.findall(text))
    return round(han / 1.5 + (len(text) - han) / 4)


class RunEstimate(Record):
    """The estimate. `looked_at` samples were simulated; the rest is extrapolated from them."""

    samples: int
    looked_at: int
    bad_rows: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    further: int = Field(default=0, description="calls at most on top: splits, second looks, what is passed on")
    further_tokens: int = Field(default=0, description="of what a routed judge passes on at most")
    further_cost: float | None = Field(default=None, description="the same in US dollars")


class StandIn(Judge):
    """A judge that sends nothing: it counts the prompt's tokens and returns a dummy reply of the right shape.

    One that stands in for a judge on this machine (`offline`) has nothing to send.
    """

    name = "estimate"

    def __init__(self, prompts: Prompts, price: Price | None, *, offline: bool = False) -> None:
        self._prompts, self._price, self._offline = prompts, price, offline
        self.labelled, self.on_items = 0, Usage()
        self.on_labelled: Callable[[Ask], None] = lambda ask: None

    @property
    def offline(self) -> bool:
        return self._offline

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if issubclass(ask.reply, TextReply):
            # No words stand in for a transcript; one that cannot be read would be asked for a second time.
            return Unjudged(reason="not_recorded", usage=self._spent(ask, TYPICAL_TRANSCRIPT))
        if ask.data.items():
            self.labelled += 1
            self.on_labelled(ask)
        data = ask.reply.model_validate(example(ask))
        usage = self.weigh(ask, data)
        if ask.data.items():
            self.on_items += usage
        return Reply(data=_sure(data, ask), usage=usage)

    def weigh(self, ask: Ask, data: ReplyData | None = None) -> Usage:
        """The tokens and cost of this ask."""
        if self.offline:
            return Usage()
        data = data or ask.reply.model_validate(example(ask))
        return self._spent(ask, tokens(f'"code":"{nonce(ask)}",{data.model_dump_json()}'))

    def _spent(self, ask: Ask, said: int) -> Usage:
        prompt = "".join(message["content"] for message in self._prompts.messages(ask))
        usage = Usage(calls=1, prompt_tokens=tokens(prompt), completion_tokens=said)
        if self._price:
            usage = usage.model_copy(update={"cost": self._price.of(usage)})
        return usage


def standing_in(judge: Judge, prompts: Prompts) -> Judge:
    """The judge with a stand-in for each of its voices: a panel of three takes three times the calls."""

    def stand_in(voice: Voice) -> Judge:
        return StandIn(prompts, voice.judge.price, offline=voice.judge.offline)

    return judge.exchanged(stand_in)


async def estimate(
    rows: Iterable[Row], protocol: Protocol, options: Options, judge: Judge, total: int | None, most: int = LOOKED_AT
) -> RunEstimate:
    """Simulate the first samples, at most `most`, and scale up to all of them."""
    runner = Runner(protocol, options, judge, workers=1)
    passed_on = _passed_on_at_most(judge)
    good = bad = beyond = 0

    def looked_at() -> Iterable[Row]:
        nonlocal good, bad, beyond
        for seq, row in rows:
            if isinstance(row, InputError):
                bad += 1
            elif good < most:
                good += 1
                yield seq, row
            elif total is not None:
                return
            else:
                beyond += 1

    tally = await runner.run(looked_at(), lambda *_: None)
    everything = max(good, total - bad) if total is not None else good + beyond
    scale = everything / good if good else 0.0
    more = passed_on()
    return RunEstimate(
        samples=everything,
        looked_at=good,
        bad_rows=bad,
        calls=round(tally.usage.calls * scale),
        prompt_tokens=round(tally.usage.prompt_tokens * scale),
        completion_tokens=round(tally.usage.completion_tokens * scale),
        cost=None if tally.usage.cost is None else tally.usage.cost * scale,
        further=round((_further(judge) + more.calls) * scale),
        further_tokens=round((more.prompt_tokens + more.completion_tokens) * scale),
        further_cost=None if more.cost is None else more.cost * scale,
    )


def _passed_on_at_most(judge: Judge) -> Callable[[], Usage]:
    """What a routed judge would pass on if its first judge were sure of nothing, beyond what was asked already; to be
    told when all asks have been answered."""
    passed_to = [voice.judge for voice in judge.then.voices()] if isinstance(judge, RoutedJudge) else []
    stand_ins = [one for one in passed_to if isinstance(one, StandIn)]
    total = Usage()

    def weigh(ask: Ask) -> None:
        nonlocal total
        total = sum((one.weigh(ask) for one in stand_ins), start=total)

    def further() -> Usage:
        asked = sum((one.on_items for one in stand_ins), start=Usage())
        return Usage(
            calls=max(0, total.calls - asked.calls),
            prompt_tokens=max(0, total.prompt_tokens - asked.prompt_tokens),
            completion_tokens=max(0, total.completion_tokens - asked.completion_tokens),
            cost=None if total.cost is None else max(0.0, total.cost - (asked.cost or 0)),
        )

    first = judge.voices()[0].judge
    if isinstance(first, StandIn):
        first.on_labelled = weigh
    return further


def _sure(data: ReplyData, ask: Ask) -> ReplyData:
    """The reply of a judge that is sure of all its labels; what it passes on otherwise is counted by itself."""
    rows = {name: getattr(data, name) for name in ask.data.items()}
    sure = {
        name: [row.model_copy(update={"confidence": 1.0}) for row in labels]
        for name, labels in rows.items()
        if labels and "confidence" in type(labels[0]).model_fields
    }
    return data.model_copy(update=sure) if sure else data


def _further(judge: Judge) -> int:
    """How many more calls there would be if every labelling ask had a split vote and a negative label."""
    first = judge.voices()[0].judge
    labelled = first.labelled if isinstance(first, StandIn) else 0
    calls = 0
    if isinstance(judge, VerifyingJudge):
        calls, judge = calls + labelled * _paid_voices(judge.verifier), judge.judge
    if isinstance(judge, PanelJudge) and judge.escalate:
        calls += labelled * _paid_voices(judge.escalate)
    return calls


def _paid_voices(judge: Judge) -> int:
    return sum(not voice.judge.offline for voice in judge.voices())


def example(ask: Ask) -> dict[str, Any]:
    """A reply of typical size to any ask: every item labelled, texts and quotes taken from the data itself."""
    return {name: _value(field.annotation, name, ask) for name, field in ask.reply.model_fields.items()}


def _value(annotation: Any, name: str, ask: Ask) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        inner = next(argument for argument in arguments if argument is not type(None))
        # What is optional is rare, apart from evidence and depth.
        return _value(inner, name, ask) if name in ("quote", "reference", "depth", "source") else None
    if origin is Literal:
        # Assumes positive labels: negative ones would be re-checked.
        return 1 if arguments == (0, 1) else arguments[0]
    if origin is list:
        return _rows(arguments[0], name, ask)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {key: _value(field.annotation, key, ask) for key, field in annotation.model_fields.items()}
    simple = {bool: True, int: 0, float: 0.0}
    return simple[annotation] if annotation in simple else _text(name, ask.data)


def _rows(row: type[ReplyData], name: str, ask: Ask) -> list[Any]:
    items = ask.data.items().get(name)
    said = sentences(str(getattr(ask.data, "answer", ""))) or [TYPICAL_REASON] * TYPICAL_LIST
    ids = [item.id for item in items] if items else list(range(1, len(said) + 1))
    rows = []
    for index, id in enumerate(ids):
        made = _value(row, name, ask)
        if isinstance(made, dict):
            made |= {key: value for key, value in (("id", id), ("text", said[index % len(said)])) if key in made}
            if allowed := getattr(ask.reply, "allowed", {}).get(id):
                failing = getattr(row, "failing", {}).get(id, ())
                made["label"] = min(allowed.difference(failing) or allowed)
        rows.append(made)
    return rows


def _text(name: str, data: Data) -> str:
    if name != "quote":
        return TYPICAL_REASON
    source = next(iter(data.quotable), "")
    found = sentences(source)
    return found[0] if found else source
