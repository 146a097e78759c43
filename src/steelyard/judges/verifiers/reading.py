"""An encoder as the reader of the embedded judge, in place of the network in the box."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.judges.embedded.network import Odds, ReaderPair, in_time
from steelyard.judges.verifiers.encoder import Encoder, EncoderPair


class VerifierReader:
    """Its own odds stand; figures that differ weigh against them (`embedded/support.py`)."""

    is_weighed = False

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def identity(self) -> str:
        """Changes with the weights, the tokenizer and the settings."""
        return f"{self._encoder.name}-{self._encoder.identity[:12]}"

    @property
    def windows(self) -> tuple[int, ...]:
        return (self._encoder.room,)

    def sizes(self, texts: Sequence[str]) -> list[int]:
        return self._encoder.sizes(texts)

    def read(self, pairs: Sequence[ReaderPair]) -> list[Odds]:
        in_time()
        return self._encoder.read([self._laid_out(pair) for pair in pairs])

    def _laid_out(self, pair: ReaderPair) -> EncoderPair:
        """What a claim leans on stands before it; a token classifier labels the claim alone, so there it stands with
        the passages."""
        premise = "\n".join(pair.premise)
        if not pair.context:
            return EncoderPair(premise, pair.claim)
        if self._encoder.reads_tokens:
            return EncoderPair(f"{pair.context}\n{premise}", pair.claim)
        return EncoderPair(premise, f"{pair.context} {pair.claim}")
