"""A small transformer that reads a Chinese claim together with the spans it may rest on.

It has four layers, was trained on much Chinese text by others (training/README.md names it), and learnt from
training/chinese.py to tell claims that are true of a text from those that are true of its twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.judges.embedded.meaning import HAN_RUN, simplified
from steelyard.judges.embedded.pieces import Pieces
from steelyard.judges.embedded.reader import Impression
from steelyard.judges.embedded.spans import Beside
from steelyard.judges.embedded.transformer import NOWHERE, Transformer, bent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

WEIGHTS = Path(__file__).with_name("weights") / "chinese.npz"
CLAIM_PIECES, SPAN_PIECES = 64, 128
# So many pieces are read in one go: more would not stay in the processor's cache.
TOGETHER = 640


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


class Block(NamedTuple):
    """Some pairs of like length, filled up with zeros to the longest."""

    ids: NDArray[np.int64]
    kinds: NDArray[np.int64]
    is_text: NDArray[np.bool_]
    is_claim: NDArray[np.bool_]


def block(pairs: Sequence[Pair]) -> Block:
    import numpy as np

    shape = len(pairs), max(len(pair.numbers) for pair in pairs)
    found = Block(
        np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    )  # fmt: skip
    for line, (numbers, claim) in enumerate(pairs):
        found.ids[line, : len(numbers)] = numbers
        found.kinds[line, claim + 2 : len(numbers)] = 1
        found.is_text[line, : len(numbers)] = True
        found.is_claim[line, 1 : claim + 1] = True
    return found


class Network:
    """The trained network."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self.pieces = Pieces(bytes(held["vocabulary"]).decode("utf-8").split("\n"))
        self._body = Transformer(held)

    def impressions(self, pairs: Sequence[Pair]) -> list[Impression]:
        """What it makes of each claim."""
        import numpy as np

        said = np.zeros((len(pairs), 3), dtype=np.float32)
        for chosen in _batches([len(pair.numbers) for pair in pairs]):
            said[chosen] = self._said(block([pairs[at] for at in chosen]))
        against = np.logaddexp(said[:, 1], said[:, 2])
        shares = np.exp(said[:, 2] - np.logaddexp(said[:, 0], against))
        # The last digits depend on what is read in the same go; no label should.
        return [
            Impression(round(support, 3), round(share, 3))
            for support, share in zip((said[:, 0] - against).tolist(), shares.tolist(), strict=True)
        ]

    def _said(self, read: Block) -> Floats:
        """Scores for supported, neither and contradicted."""
        import numpy as np

        states = self._body.states(read.ids, read.kinds, read.is_text)
        claim = read.is_claim[:, :, None]
        whole = [
            states[:, 0],
            (states * claim).sum(axis=1) / np.maximum(claim.sum(axis=1), 1),
            np.where(claim, states, np.float32(NOWHERE)).max(axis=1),
        ]
        return self._body.line("say", bent(self._body.line("think", np.concatenate(whole, axis=1))))


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Which texts are read in one go: those of like size, since all are filled up to the longest."""
    batch: list[int] = []
    for at in sorted(range(len(sizes)), key=lambda one: sizes[one]):
        if batch and sizes[at] * (len(batch) + 1) > TOGETHER:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def read_chinese(pairs: Sequence[tuple[str, Sequence[Beside]]]) -> list[Impression]:
    """What the shipped network makes of claims, each with the spans beside it, best first."""
    reads = network()
    return reads.impressions([paired(*pair, reads.pieces) for pair in pairs])


def is_chinese(claim: str, spans: Sequence[Beside]) -> bool:
    """Whether claim and spans are both Chinese: it never learnt from a claim beside another language."""
    return bool(HAN_RUN.search(claim)) and any(HAN_RUN.search(span.text) for span in spans)


def paired(claim: str, spans: Sequence[Beside], pieces: Pieces) -> Pair:
    """A claim and its spans, as the network reads them."""
    numbers = [(span.at, pieces.of(simplified(span.text))) for span in spans]
    return laid(pieces.of(simplified(claim)), numbers, pieces)


@lru_cache(maxsize=1)
def network(weights: Path = WEIGHTS) -> Network:
    """The shipped network, read at its first use."""
    import numpy as np

    with np.load(weights, allow_pickle=False) as held:
        return Network({name: held[name] for name in held.files})
