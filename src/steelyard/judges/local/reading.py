"""Passages read twice: by the embedded rules first, and by the model where those leave a claim open."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from steelyard.judges.embedded.support import Read, Reading, Support
from steelyard.judges.local.blend import Language, blends
from steelyard.judges.local.server import FirstToken, Message, label_shares
from steelyard.judges.local.template import template
from steelyard.judges.local.window import window
from steelyard.text import language_of

# Claims that are shown the same part of the passages: the model reads it once for all of them.
TOGETHER = 3
# A sentence of this many characters says more than a small model can hold against a passage.
LONGEST_CLAIM = 600
# A name and what it is: 所在地：福建 厦门
FIELD = re.compile(r"\s*[^\s：:，,。.；;][^：:，,。.；;]{0,20}[：:]\s*\S")
BETWEEN_FIELDS = re.compile(r"[；;\n]+")


class Model(Protocol):
    """Who is asked: a `ModelServer`, or one with its earlier answers before it (`Readings`)."""

    def turn(self) -> AbstractContextManager[None]: ...

    def first_token(self, messages: Sequence[Message]) -> FirstToken | None: ...


class LocalReading:
    """One set of passages. `support` and `supports` are what the embedded judge's tasks ask for."""

    def __init__(self, passages: Sequence[str], rules: Reading, model: Model) -> None:
        self._passages, self._rules, self._model = passages, rules, model

    def support(self, claim: str) -> Support:
        return self.supports([claim])[0]

    def supports(self, claims: Sequence[str]) -> list[Support]:
        found = self._rules.supports(claims)
        if is_record(self._passages):
            return found
        open_ = {place for place, claim in enumerate(claims) if _is_open(claim, found[place])}
        for place, share in shares(self._passages, claims, open_, self._model):
            found[place] = blended(claims[place], found[place], share)
        return found


def reader(rules: Read, model: Model) -> Read:
    """How the local judge reads: what the embedded judge is given in the place of its own."""

    def read(passages: Sequence[str], question: str = "", answer: str = "") -> LocalReading:
        return LocalReading(passages, rules(passages, question, answer), model)

    return read


def shares(
    passages: Sequence[str], claims: Sequence[str], wanted: Collection[int], model: Model
) -> Iterator[tuple[int, float | None]]:
    """The wanted places with the model's share for yes.

    What is shown depends on the claims alone, not on which of them are wanted: so the rules may change, and what the
    model said before still answers the same question.
    """
    for start in range(0, len(claims), TOGETHER):
        places = range(start, min(start + TOGETHER, len(claims)))
        if asked := [place for place in places if place in wanted]:
            shown = window(passages, [claims[place] for place in places])
            with model.turn():
                found = [share_for(model, shown, claims[place]) for place in asked]
            yield from zip(asked, found, strict=True)


def is_record(passages: Sequence[str]) -> bool:
    """Whether there are only fields with their values, a profile say: there the rules see more than a small model."""
    parts = [part for passage in passages for part in BETWEEN_FIELDS.split(passage) if part.strip()]
    return len(parts) > 1 and all(FIELD.match(part) for part in parts)


def share_for(model: Model, shown: str, claim: str) -> float | None:
    """The model's share for yes; None where it could not be asked or does not answer the question."""
    asked = template("support", language(claim))
    first = model.first_token(asked.messages({"passages": shown, "claim": claim}))
    shares = label_shares(first, asked.labels) if first else None
    return shares[0] if shares else None


def blended(claim: str, found: Support, share: float | None) -> Support:
    """What comes of both opinions. A model that did not answer leaves the rules' as it is, and the reason says so."""
    if share is None:
        silence = "（模型没有回答）" if language(claim) == "zh" else " (the model gave no answer)"
        return found._replace(reason=found.reason + silence)
    blend = blends()[language(claim)]
    label = blend.label(found, share)
    said = found._replace(
        label=label, probability=blend.probability(found, share), reason=_reason(claim, found, label, share)
    )
    return said if label == "contradicted" else said._replace(clash=None, claimed=None, stated=None)


def language(text: str) -> Language:
    return "en" if language_of(text) == "en" else "zh"


def _is_open(claim: str, found: Support) -> bool:
    return len(claim) <= LONGEST_CLAIM and blends()[language(claim)].is_open(found)


def _reason(claim: str, found: Support, label: str, share: float) -> str:
    """What was concluded, and how probable either of the two finds it that the passages support the claim."""
    zh = language(claim) == "zh"
    if label == "contradicted":
        text = found.reason
    elif found.clash:
        objection = "但规则与模型合起来，仍认为资料支持" if zh else "but rules and model together find it supported"
        text = f"{found.reason}{'；' if zh else '; '}{objection}"
    elif label == "supported":
        text = "规则与模型合起来，认为资料支持" if zh else "rules and model together find it supported"
    else:
        text = "规则与模型合起来，认为资料不足以支持" if zh else "rules and model together do not find it supported"
    rules, model = round(100 * found.probability), round(100 * share)
    return f"{text}（规则{rules}%，模型{model}%）" if zh else f"{text} (rules {rules} %, model {model} %)"
