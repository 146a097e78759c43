"""Pairs are read by the network in the box, and put to a language model where that is in doubt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from steelyard.judges.embedded.excerpts import Passages, words
from steelyard.judges.embedded.network import Odds, ReaderPair, in_time, network
from steelyard.judges.local.server import FirstToken, Message, label_shares
from steelyard.judges.local.template import template
from steelyard.text import language_of

# The network is in doubt where support is neither this probable nor this improbable.
SURE = 0.8
# In characters. A claim that is longer says more than a small model can hold against a passage.
LONGEST_CLAIM = 600
# Weights of the two log-odds. A small model is somewhat too sure of itself.
NETWORK, LANGUAGE_MODEL = 1.0, 0.8
# More certainty than this means nothing.
SUREST = 1e-3
# In pieces of the network's vocabulary. Reading is what takes a model its time: two cores read some seventy a second.
SHOWN = 80
GAP = " … "


class Model(Protocol):
    """Who is asked: a `ModelServer`, or one with its earlier answers before it (`Readings`)."""

    def turn(self) -> AbstractContextManager[None]: ...

    def first_token(self, messages: Sequence[Message]) -> FirstToken | None: ...


class LocalReader:
    """The `Reader` of the local judge. `identity` names the model and the questions it is asked."""

    is_weighed = True

    def __init__(self, model: Model, identity: str) -> None:
        self._model, self.identity = model, identity

    @property
    def windows(self) -> tuple[int, ...]:
        """The longest look only: with a second one, the model would be asked twice about a claim."""
        return network().windows[-1:]

    def sizes(self, texts: Sequence[str]) -> list[int]:
        return network().sizes(texts)

    def read(self, pairs: Sequence[ReaderPair]) -> list[Odds]:
        """How each claim stands to its passages. Where the model gives no answer, the network's stands."""
        found = network().read(pairs)
        doubtful = [at for at, pair in enumerate(pairs) if is_doubtful(found[at]) and len(pair.claim) <= LONGEST_CLAIM]
        if doubtful:
            with self._model.turn():
                for at in doubtful:
                    in_time()
                    if (share := share_for(self._model, pairs[at])) is not None:
                        found[at] = blended(found[at], share)
        return found


def is_doubtful(odds: Odds) -> bool:
    """Whether the model may decide. It is asked about support only, so other doubts are no reason to ask it."""
    return 1 - SURE < odds.supported < SURE


def share_for(model: Model, pair: ReaderPair) -> float | None:
    """The model's share for yes; None where it could not be asked or does not answer the question."""
    shown = Passages(pair.premise, network().sizes).excerpt(words(f"{pair.claim} {pair.context}"), SHOWN).parts()
    values = {"passages": GAP.join(shown), "context": pair.context, "claim": pair.claim}
    return share_of_yes(model, "support", language(pair.claim), values)


def share_of_yes(model: Model, task: str, spoken: Literal["zh", "en"], values: dict[str, str]) -> float | None:
    asked = template(task, spoken)
    first = model.first_token(asked.messages(values))
    shares = label_shares(first, asked.labels) if first else None
    return shares[0] if shares else None


def blended(odds: Odds, share: float) -> Odds:
    """The log-odds of support, the network's and the model's, added up with their weights.

    What is left to the other two is divided between them as the network does.
    """
    total = NETWORK * log_odds(odds.supported) + LANGUAGE_MODEL * log_odds(share)
    supported = 1 / (1 + math.exp(-total))
    against, nothing = max(odds.contradicted, SUREST), max(odds.neutral, SUREST)
    rest = (1 - supported) / (against + nothing)
    return Odds(supported, rest * against, rest * nothing)


def log_odds(share: float) -> float:
    kept = min(max(share, SUREST), 1 - SUREST)
    return math.log(kept / (1 - kept))


def language(text: str) -> Literal["zh", "en"]:
    return "en" if language_of(text) == "en" else "zh"
