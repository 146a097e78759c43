"""A small transformer in plain numpy: texts as numbers of pieces in, a vector of each piece out.

The weights are those of a BERT, packed in four bits each: two to a byte, with one scale for every few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# So many weights in a row share a scale.
SHARED = 32
ZERO = 8
LEAST = 1e-12
BEND = 0.7978845608


class Packed(NamedTuple):
    """A matrix of which each weight has four bits; lines can be unpacked by themselves."""

    halves: NDArray[np.uint8]
    scales: NDArray[np.float16]

    def lines(self, chosen: NDArray[np.int64] | slice = slice(None)) -> Floats:
        import numpy as np

        halves, scales = self.halves[chosen], self.scales[chosen]
        values = np.empty((len(halves), halves.shape[1] * 2), dtype=np.float32)
        values[:, 0::2], values[:, 1::2] = halves & 15, halves >> 4
        values -= ZERO
        grouped = values.reshape(len(halves), scales.shape[1], -1) * scales[:, :, None].astype(np.float32)
        found: Floats = grouped.reshape(len(halves), -1)
        return found


def packed(matrix: Floats) -> Packed:
    """A matrix in four bits a weight."""
    import numpy as np

    lines, columns = matrix.shape
    size = next(size for size in range(min(SHARED, columns), 0, -1) if columns % size == 0)
    grouped = matrix.reshape(lines, columns // size, size)
    scales = (np.abs(grouped).max(axis=2) / (ZERO - 1)).astype(np.float16)
    safe = np.where(scales == 0, np.float16(1), scales).astype(np.float32)[:, :, None]
    whole = np.clip(np.rint(grouped / safe), 1 - ZERO, ZERO - 1).astype(np.int16).reshape(lines, columns) + ZERO
    return Packed((whole[:, 0::2] | whole[:, 1::2] << 4).astype(np.uint8), scales)


class Transformer:
    """The layers of a trained network; `held` has their weights under the names that training/pairs.py gives them."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        import numpy as np

        self._words = Packed(held["word_halves"], held["word_scales"])
        self._held: dict[str, Floats] = {}
        for name in held:
            if name.endswith("_halves") and name != "word_halves":
                own = name.removesuffix("_halves")
                self._held[own] = Packed(held[name], held[f"{own}_scales"]).lines().T.copy()
            elif np.asarray(held[name]).dtype == np.float16 and not name.endswith("_scales"):
                self._held[name] = held[name].astype(np.float32)
        self._heads = int(held["heads"])
        self._depth = int(held["depth"])
        for depth in range(self._depth):
            # How strongly a piece looks is scaled here once, not with every look.
            size = self._held[f"{depth}_take"].shape[0]
            scale = np.float32((size // self._heads) ** -0.5)
            self._held[f"{depth}_look"][:, :size] *= scale
            self._held[f"{depth}_look_offset"][:size] *= scale

    def states(self, texts: Sequence[Sequence[int]], seconds: Sequence[int], wanted: Sequence[int]) -> list[Floats]:
        """Of each text the vectors of its first pieces, so many as are `wanted`; second parts begin at `seconds`."""
        import numpy as np

        sizes = [len(text) for text in texts]
        words = self._words.lines(np.array([number for text in texts for number in text], dtype=np.int64))
        places = np.concatenate([np.arange(size) for size in sizes])
        kinds = (places >= np.repeat(seconds, sizes)).astype(np.int64)
        state = self._evened("bare", words + self._held["place"][places] + self._held["kind"][kinds])
        for depth in range(self._depth - 1):
            state = self._layer(f"{depth}", state, sizes, sizes)
        # Nothing looks at the last layer's vectors but who asked for them.
        state = self._layer(f"{self._depth - 1}", state, sizes, wanted)
        return np.split(state, np.cumsum(wanted)[:-1])

    def line(self, name: str, values: Floats) -> Floats:
        found: Floats = values @ self._held[name]
        found += self._held[f"{name}_offset"]
        return found

    def _layer(self, name: str, state: Floats, sizes: Sequence[int], wanted: Sequence[int]) -> Floats:
        """The next vectors of the first pieces of each text, which look at all pieces of their own text."""
        import numpy as np

        looks = self.line(f"{name}_look", state)
        seen, kept, start = [], [], 0
        for size, first in zip(sizes, wanted, strict=True):
            seen.append(self._seen(looks[start : start + size], first))
            kept.append(state[start : start + first])
            start += size
        state = np.concatenate(kept)
        state += self.line(f"{name}_take", np.concatenate(seen))
        state = self._evened(f"{name}_seen", state)
        wide = bent(self.line(f"{name}_widen", state))
        state += self.line(f"{name}_narrow", wide)
        return self._evened(f"{name}_told", state)

    def _seen(self, looks: Floats, first: int) -> Floats:
        """What the first pieces of one text take from all of it."""
        import numpy as np

        apart = looks.reshape(len(looks), 3, self._heads, -1).transpose(1, 2, 0, 3)
        asks, offers, tells = apart[0, :, :first], apart[1], apart[2]
        pull = asks @ offers.transpose(0, 2, 1)
        pull -= pull.max(axis=2, keepdims=True)
        np.exp(pull, out=pull)
        taken = pull @ tells
        taken /= pull.sum(axis=2, keepdims=True)
        found: Floats = taken.transpose(1, 0, 2).reshape(first, -1)
        return found

    def _evened(self, name: str, values: Floats) -> Floats:
        """Each line with mean and spread made even, in place."""
        import numpy as np

        values -= values.mean(axis=1, keepdims=True)
        values /= np.sqrt(np.einsum("ij,ij->i", values, values) / values.shape[1] + LEAST)[:, None]
        values *= self._held[f"{name}_scale"]
        values += self._held[f"{name}_shift"]
        return values


def bent(values: Floats) -> Floats:
    """GELU, in its usual approximation and in place, since this is much of the time."""
    import numpy as np

    curve = values * values
    curve *= np.float32(-2 * BEND * 0.044715)
    curve += np.float32(-2 * BEND)
    curve *= values
    # What is far below zero becomes zero, by way of something too large for a number.
    with np.errstate(over="ignore"):
        np.exp(curve, out=curve)
    curve += np.float32(1)
    values /= curve
    return values
