"""Small transformers, one a language, that read a claim together with the spans it may rest on.

They were trained on much text by others (training/README.md names them), and learnt from training/pairs.py to tell
claims that are true of a text from those that are true of its twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from steelyard.judges.embedded.meaning import HAN_RUN, simplified
from steelyard.judges.embedded.pieces import Pieces
from steelyard.judges.embedded.reader import Impression
from steelyard.judges.embedded.spans import Beside
from steelyard.judges.embedded.transformer import Transformer, bent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

Language = Literal["zh", "en"]
FOLDER = Path(__file__).with_name("weights")
WEIGHTS: dict[Language, Path] = {"zh": FOLDER / "chinese.npz", "en": FOLDER / "english.npz"}
# So much of the spans is read: a third more was no better on development rows, a third less was.
CLAIM_PIECES, SPAN_PIECES = 64, 96
# So many pieces are read in one go: more would not stay in the processor's cache.
TOGETHER = 640
NOWHERE = -1e4


class Pair(NamedTuple):
    """A claim and its spans as numbers: mark, claim, mark, spans, mark."""

    numbers: list[int]
    claim: int


def laid(
    claim: Sequence[int], spans: Sequence[tuple[int, Sequence[int]]], pieces: Pieces, room: int = SPAN_PIECES
) -> Pair:
    """A claim before its spans. They come best first; as many as fit are read, in the order of the passages."""
    taken = []
    for at, numbers in spans:
        if room <= 0:
            break
        taken.append((at, numbers[:room]))
        room -= len(numbers)
    own = list(claim[:CLAIM_PIECES])
    beside = [number for _, numbers in sorted(taken, key=lambda one: one[0]) for number in numbers]
    return Pair([pieces.begin, *own, pieces.end, *beside, pieces.end], len(own))


class Network:
    """The trained network."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self.pieces = Pieces(bytes(held["vocabulary"]).decode("utf-8").split("\n"))
        self.body = Transformer(held)

    def impressions(self, pairs: Sequence[Pair]) -> list[Impression]:
        """What it makes of each claim."""
        import numpy as np

        said = np.zeros((len(pairs), 3), dtype=np.float32)
        for chosen in _batches([len(pair.numbers) for pair in pairs]):
            said[chosen] = self._said([pairs[at] for at in chosen])
        against = np.logaddexp(said[:, 1], said[:, 2])
        shares = np.exp(said[:, 2] - np.logaddexp(said[:, 0], against))
        # The last digits depend on what is read in the same go; no label should.
        return [
            Impression(round(support, 3), round(share, 3))
            for support, share in zip((said[:, 0] - against).tolist(), shares.tolist(), strict=True)
        ]

    def _said(self, pairs: Sequence[Pair]) -> Floats:
        """Scores for supported, neither and contradicted."""
        import numpy as np

        seconds, wanted = [pair.claim + 2 for pair in pairs], [pair.claim + 1 for pair in pairs]
        states = self.body.states([pair.numbers for pair in pairs], seconds, wanted)
        whole = np.stack([_whole(state[0], state[1:]) for state in states])
        return self.body.line("say", bent(self.body.line("think", whole)))


def _whole(mark: Floats, claim: Floats) -> Floats:
    """What stands for a pair: the vector of its first mark, the mean and the most of those of the claim."""
    import numpy as np

    nothing = np.zeros_like(mark), np.full_like(mark, NOWHERE)
    return np.concatenate([mark, *((claim.mean(axis=0), claim.max(axis=0)) if len(claim) else nothing)])


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Which texts are read in one go."""
    batch: list[int] = []
    room = TOGETHER
    for at, size in enumerate(sizes):
        if batch and size > room:
            yield batch
            batch, room = [], TOGETHER
        batch.append(at)
        room -= size
    if batch:
        yield batch


def read_pairs(language: Language, pairs: Sequence[tuple[str, Sequence[Beside]]]) -> list[Impression]:
    """What the network of a language makes of claims, each with the spans beside it, best first."""
    reads = network(language)
    return reads.impressions([paired(*pair, reads.pieces) for pair in pairs])


def common_language(claim: str, spans: Sequence[Beside]) -> Language | None:
    """The language of claim and spans; none if they differ: no network ever learnt from a claim beside another."""
    chinese = sum(bool(HAN_RUN.search(span.text)) for span in spans)
    if HAN_RUN.search(claim):
        return "zh" if chinese else None
    # English text may name something in Chinese here and there.
    return "en" if 2 * chinese < len(spans) else None


def paired(claim: str, spans: Sequence[Beside], pieces: Pieces) -> Pair:
    """A claim and its spans, as the network reads them."""
    numbers = [(span.at, pieces.of(simplified(span.text))) for span in spans]
    return laid(pieces.of(simplified(claim)), numbers, pieces)


@lru_cache(maxsize=2)
def network(language: Language) -> Network:
    """The shipped network of a language, read at its first use."""
    import numpy as np

    with np.load(WEIGHTS[language], allow_pickle=False) as held:
        return Network({name: held[name] for name in held.files})
