"""A stand-in for the network: it says what a test tells it, so that decisions are tested without weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from steelyard.judges.embedded import network
from steelyard.judges.embedded.network import Odds, ReaderPair
from steelyard.judges.embedded.support import DecisionLine, PassageReading

YES, NO, SILENT = Odds(0.98, 0.01, 0.01), Odds(0.02, 0.95, 0.03), Odds(0.03, 0.03, 0.94)
ANSWERS, HELPS, BESIDE = (0.9, 0.06, 0.04), (0.1, 0.8, 0.1), (0.02, 0.08, 0.9)
# Another value in its place outweighs whatever was read.
LINE = DecisionLine(weights=(1.0, -0.5, 1.0, 1.0, -1.0, -0.5, -9.0), bias=-1.0, supported=0.5, contradicted=0.6)
PIECE = re.compile(r"[A-Za-z]+|\S")


class FixedReader:
    """Of claims and sentences that it was told nothing about it says `otherwise`, and the level of `serves`."""

    identity = "told"
    windows: tuple[int, ...] = (64, 160)
    is_weighed = True

    def __init__(
        self,
        odds: Mapping[str, Odds] | None = None,
        levels: Mapping[str, tuple[float, float, float]] | None = None,
        *,
        otherwise: Odds = SILENT,
        serves: tuple[float, float, float] = ANSWERS,
    ) -> None:
        self._odds, self._levels = odds or {}, levels or {}
        self._otherwise, self._serves = otherwise, serves
        self.pairs: list[ReaderPair] = []

    def sizes(self, texts: Sequence[str]) -> list[int]:
        return [len(PIECE.findall(text)) for text in texts]

    def read(self, pairs: Sequence[ReaderPair]) -> list[Odds]:
        self.pairs += pairs
        return [self._odds.get(pair.claim.rstrip("。."), self._otherwise) for pair in pairs]

    def levels(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        return [self._levels.get(text.rstrip("。."), self._serves) for _, text in pairs]


def instead_of_the_network(told: FixedReader, monkeypatch: pytest.MonkeyPatch) -> FixedReader:
    """Nothing is read but by `told`, and nothing weighed but by `LINE`."""
    monkeypatch.setattr(network, "_network", lambda: told)
    monkeypatch.setattr(PassageReading, "_line", lambda self, claim: LINE)
    return told
