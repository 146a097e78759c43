"""How passages stand to a claim by an encoder's three probabilities, and by the figures in which the two differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from steelyard.judges.embedded.features import Alignment, measure_all
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.support import (
    LONGEST_CLAIM,
    MEANING,
    Odds,
    Read,
    Reading,
    Support,
    agreement,
    lack,
    nothing,
    quote_of,
)
from steelyard.judges.local.window import window
from steelyard.judges.verifiers.encoder import Encoder, ReadPair
from steelyard.text import language_of

# What is compared exactly, by code: encoders read over a wrong number in words that all agree.
FIGURES = frozenset(("quantity", "date", "ordinal", "name"))
# By how much such a difference counts against a claim, in log-odds: twenty to one. An encoder that is sure beyond that
# stands, since the figure may be of something else.
AGAINST = 3.0
SUPPORTED = 0.5
# More certainty than this means nothing.
SUREST = 1e-6


def reader(encoder: Encoder) -> Read:
    """How the judge reads with this encoder: what the embedded judge is given in the place of its own networks."""

    def read(passages: Sequence[str], question: str = "", answer: str = "") -> Reading:
        return _Passages(Source(passages, question, answer), encoder)

    return read


class _Passages:
    def __init__(self, source: Source, encoder: Encoder) -> None:
        self._source, self._encoder = source, encoder
        # The same sentences are weighed for every claim.
        self._size = cache(lambda text: encoder.sizes([text])[0])

    def support(self, claim: str) -> Support:
        return self.supports([claim])[0]

    def supports(self, claims: Sequence[str]) -> list[Support]:
        cut = [claim[:LONGEST_CLAIM] for claim in claims]
        found = measure_all(cut, self._source)
        odds = iter(self._encoder.read([self._pair(claim) for claim, one in zip(cut, found, strict=True) if one]))
        return [
            decided(claim, one, next(odds), self._source) if one else nothing(claim, self._source)
            for claim, one in zip(cut, found, strict=True)
        ]

    def _pair(self, claim: str) -> ReadPair:
        return ReadPair(window(self._source.passages, [claim], self._encoder.room, self._size), claim)


def decided(claim: str, found: Alignment, odds: Odds, source: Source) -> Support:
    """The label: supported from even odds on, else the likelier one of contradicted and not said."""
    chinese = language_of(claim) != "en"
    clash = next((one for one in found.clashes if one.kind in FIGURES), None)
    if clash:
        odds = _weighed_against(odds)
    proof = found.span.passage, quote_of(found, source)
    if odds.supported >= SUPPORTED:
        reason = agreement(claim, found, chinese)
        return Support("supported", odds.supported, *proof, None, reason, odds=odds)
    if clash:
        said = (
            f"资料写的是“{clash.stated}”，不是“{clash.claimed}”"
            if chinese
            else f'the passage has "{clash.stated}", not "{clash.claimed}"'
        )
        return Support("contradicted", odds.supported, *proof, clash.kind, said, clash.claimed, clash.stated, odds=odds)
    if odds.contradicted > odds.unknown:
        said = "资料的说法与此不符" if chinese else "the passages say otherwise"
        return Support("contradicted", odds.supported, *proof, MEANING, said, odds=odds)
    return Support("unknown", odds.supported, *proof, None, lack(claim, found, source, chinese), odds=odds)


def _weighed_against(odds: Odds) -> Odds:
    """The odds after a figure was seen to differ; what support loses goes to contradicted."""
    kept = min(max(odds.supported, SUREST), 1 - SUREST)
    supported = 1 / (1 + math.exp(AGAINST - math.log(kept / (1 - kept))))
    unknown = odds.unknown * math.exp(-AGAINST)
    return Odds(supported, 1 - supported - unknown, unknown)
