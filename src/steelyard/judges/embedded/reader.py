"""A small network that reads a claim beside the spans it may rest on, word by word; plain numpy at run time.

The larger ones beside it (pairs.py) read only claims in the language of their passages; this one reads them all.

Each word of the claim looks for its counterparts in the spans, twice over (`heads`); what it finds is compared with it,
the comparisons are seen among their neighbours and taken together with the measured features. Trained by
training/reader.py on claims that are true of one text and not of its twin, so that it has to compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.encoder import Read
from steelyard.judges.embedded.features import NAMES
from steelyard.judges.embedded.meaning import SENTENCES
from steelyard.judges.embedded.spans import Beside
from steelyard.judges.embedded.transformer import bent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

WEIGHTS = Path(__file__).with_name("weights") / "reader.npz"
HEADS = 2
CLAIM_WORDS, SPAN_WORDS = 64, 168
# Features beyond this many spreads from their mean say no more than that.
FARTHEST = 4.0
NOWHERE = -1e4
BEST = 1


class Shown(NamedTuple):
    """A span beside a claim: how it ranked among the spans, and what the encoder read."""

    rank: int
    read: Read


class Impression(NamedTuple):
    """The log-odds that a claim is supported, and the probability that it is contradicted."""

    support: float
    contradicted: float


class Laid(NamedTuple):
    """Claims and their spans as blocks of numbers, filled up with zeros to the longest."""

    claim: Floats
    claim_ids: NDArray[np.int64]
    spans: Floats
    span_ids: NDArray[np.int64]
    ranks: NDArray[np.int64]


def laid(claims: Sequence[Read], shown: Sequence[Sequence[Shown]]) -> Laid:
    """Claims and spans side by side; of very long ones the beginning."""
    import numpy as np

    width = claims[0].words.shape[1]
    longest = max(1, *(min(CLAIM_WORDS, len(claim.pieces)) for claim in claims))
    widest = max(1, *(min(SPAN_WORDS, sum(len(one.read.pieces) for one in spans)) for spans in shown))
    block = Laid(
        np.zeros((len(claims), longest, width), np.float32), np.zeros((len(claims), longest), np.int64),
        np.zeros((len(claims), widest, width), np.float32), np.zeros((len(claims), widest), np.int64),
        np.zeros((len(claims), widest), np.int64),
    )  # fmt: skip
    for at, (claim, spans) in enumerate(zip(claims, shown, strict=True)):
        size = min(longest, len(claim.pieces))
        block.claim[at, :size], block.claim_ids[at, :size] = claim.words[:size], claim.pieces[:size]
        start = 0
        for one in spans:
            end = min(widest, start + len(one.read.pieces))
            block.spans[at, start:end] = one.read.words[: end - start]
            block.span_ids[at, start:end] = one.read.pieces[: end - start]
            block.ranks[at, start:end] = one.rank
            start = end
    return block


class Seen(NamedTuple):
    """What can be seen of claims and spans without having learnt anything."""

    is_word: NDArray[np.bool_]
    empty: NDArray[np.bool_]
    near: Floats
    same: Floats
    in_best: Floats
    nearest: Floats
    there: Floats


def seen(block: Laid) -> Seen:
    """How near each word of a claim comes to each of the spans, and which are the same."""
    import numpy as np

    empty = (block.span_ids == 0)[:, None, :]
    near = _unit(block.claim) @ _unit(block.spans).transpose(0, 2, 1)
    same = (block.claim_ids[:, :, None] == block.span_ids[:, None, :]).astype(np.float32)
    return Seen(
        is_word=(block.claim_ids > 0)[:, :, None],
        empty=empty,
        near=near,
        same=same,
        in_best=((block.ranks == BEST) & (block.span_ids > 0)).astype(np.float32),
        nearest=np.where(empty, np.float32(-1), near).max(axis=2, keepdims=True),
        there=np.where(empty, np.float32(0), same).max(axis=2, keepdims=True),
    )


class Network:
    """The trained network."""

    def __init__(self, weights: Mapping[str, Floats], mean: NDArray[np.float64], spread: NDArray[np.float64]) -> None:
        self._weights, self._mean, self._spread = weights, mean, spread

    def impressions(
        self, claims: Sequence[Read], shown: Sequence[Sequence[Shown]], features: NDArray[np.float64]
    ) -> list[Impression]:
        """What it makes of each claim."""
        import numpy as np

        if not claims:
            return []
        scaled = np.clip((features - self._mean) / self._spread, -FARTHEST, FARTHEST).astype(np.float32)
        said = self._said(laid(claims, shown), scaled)
        against = np.logaddexp(said[:, 1], said[:, 2])
        shares = np.exp(said - np.logaddexp(said[:, 0], against)[:, None])
        return [
            Impression(float(support), float(share))
            for support, share in zip(said[:, 0] - against, shares[:, 2], strict=True)
        ]

    def _said(self, block: Laid, features: Floats) -> Floats:
        """Scores for supported, neither and contradicted."""
        import numpy as np

        held, found = self._weights, seen(block)
        is_word, empty, near = found.is_word, found.empty, found.near
        claim = self._even("inward", self._line("inward", block.claim)) * is_word
        spans = self._even("inward", self._line("inward", block.spans)) * ~empty.transpose(0, 2, 1)
        asking, offering = self._line("ask", claim), self._line("offer", spans)
        size = claim.shape[2]
        parts, nearness, on_best = [claim], [], []
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            pull = asking[:, :, own] @ offering[:, :, own].transpose(0, 2, 1) / np.sqrt(np.float32(size))
            pull += held["near"][head] * near + held["same"][head] * found.same
            pull += held["rank"][block.ranks, head][:, None, :]
            look = _shares(np.where(empty, np.float32(NOWHERE), pull))
            taken = look @ spans
            parts += [taken, np.abs(claim - taken), claim * taken]
            nearness.append((look * near).sum(axis=2, keepdims=True))
            on_best.append(look @ found.in_best[:, :, None])
        beside = np.concatenate([*parts, found.nearest, found.there, *nearness, *on_best], axis=2)
        compared = bent(self._line("compare", beside)) * is_word
        apart = np.pad(compared, ((0, 0), (1, 1), (0, 0)))
        around = np.concatenate([apart[:, :-2], apart[:, 1:-1], apart[:, 2:]], axis=2)
        among = self._even("around", compared + bent(self._line("around", around))) * is_word
        weight = _shares(np.where(is_word, self._line("weigh", among), np.float32(NOWHERE)), axis=1)
        whole = [
            among.sum(axis=1) / np.maximum(is_word.sum(axis=1), 1),
            np.where(is_word, among, np.float32(NOWHERE)).max(axis=1),
            (weight[:, :, :1] * among).sum(axis=1),
            (weight[:, :, 1:] * among).sum(axis=1),
            bent(self._line("measured", features)),
        ]
        return self._line("say", bent(self._line("think", np.concatenate(whole, axis=1))))

    def _line(self, name: str, values: Floats) -> Floats:
        found: Floats = values @ self._weights[name] + self._weights[f"{name}_offset"]
        return found

    def _even(self, name: str, values: Floats) -> Floats:
        import numpy as np

        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
        found: Floats = centred / spread * self._weights[f"{name}_scale"] + self._weights[f"{name}_shift"]
        return found


def read_beside(pairs: Sequence[tuple[str, Sequence[Beside]]], features: NDArray[np.float64]) -> list[Impression]:
    """What the shipped network makes of claims, each with the spans beside it and their ranks."""
    claims = SENTENCES.read([claim for claim, _ in pairs])
    texts = iter(SENTENCES.read([span.text for _, spans in pairs for span in spans]))
    shown = [[Shown(span.rank, next(texts)) for span in spans] for _, spans in pairs]
    return network().impressions(claims, shown, features)


@lru_cache(maxsize=1)
def network(weights: Path = WEIGHTS) -> Network:
    """The shipped network; it refuses features that it was not trained on."""
    import numpy as np

    with np.load(weights, allow_pickle=False) as held:
        if tuple(held["names"]) != NAMES:
            raise ValueError(f"{weights.name} was trained on other features: run python -m training.reader")
        own = (name for name in held.files if name not in ("names", "mean", "spread"))
        return Network({name: held[name].astype(np.float32) for name in own}, held["mean"], held["spread"])


def _unit(values: Floats) -> Floats:
    import numpy as np

    found: Floats = values / np.maximum(np.sqrt((values * values).sum(axis=-1, keepdims=True)), np.float32(1e-12))
    return found


def _shares(values: Floats, axis: int = -1) -> Floats:
    import numpy as np

    raised = np.exp(values - values.max(axis=axis, keepdims=True))
    found: Floats = raised / raised.sum(axis=axis, keepdims=True)
    return found
