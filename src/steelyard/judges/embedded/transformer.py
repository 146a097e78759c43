"""A small transformer in plain numpy: texts as numbers of pieces in, a vector of each piece out.

The weights are those of a BERT, packed in four bits each: two to a byte, with one scale for every few of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# So many weights in a row share a scale.
SHARED = 32
ZERO = 8
LEAST = 1e-12
NOWHERE = -1e4


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
    """The layers of a trained network; `held` has their weights under the names that training/reader.py gives them."""

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

    def states(self, ids: NDArray[np.int64], kinds: NDArray[np.int64], is_text: NDArray[np.bool_]) -> Floats:
        """The vector of each piece of some texts; `is_text` tells pieces from what fills up to the longest text."""
        import numpy as np

        count, length = ids.shape
        words = self._words.lines(ids.reshape(-1)).reshape(count, length, -1)
        here = words + self._held["place"][:length] + self._held["kind"][kinds]
        state = self._evened("bare", here.reshape(count * length, -1))
        hidden = np.where(is_text, np.float32(0), np.float32(NOWHERE))[:, None, None, :]
        for depth in range(self._depth):
            state = self._layer(f"{depth}", state, hidden)
        return state.reshape(count, length, -1)

    def line(self, name: str, values: Floats) -> Floats:
        found: Floats = values @ self._held[name]
        found += self._held[f"{name}_offset"]
        return found

    def _layer(self, name: str, state: Floats, hidden: Floats) -> Floats:
        import numpy as np

        count, length = hidden.shape[0], hidden.shape[3]
        width = state.shape[1] // self._heads
        apart = self.line(f"{name}_look", state).reshape(count, length, 3, self._heads, width).transpose(2, 0, 3, 1, 4)
        asks, offers, tells = apart[0], apart[1], apart[2]
        pull = asks @ offers.transpose(0, 1, 3, 2)
        pull *= np.float32(width**-0.5)
        pull += hidden
        pull -= pull.max(axis=3, keepdims=True)
        np.exp(pull, out=pull)
        pull /= pull.sum(axis=3, keepdims=True)
        seen = (pull @ tells).transpose(0, 2, 1, 3).reshape(count * length, -1)
        state = self._evened(f"{name}_seen", state + self.line(f"{name}_take", seen))
        wide = bent(self.line(f"{name}_widen", state))
        return self._evened(f"{name}_told", state + self.line(f"{name}_narrow", wide))

    def _evened(self, name: str, values: Floats) -> Floats:
        """Each line with mean and spread made even, in place."""
        import numpy as np

        values -= values.mean(axis=1, keepdims=True)
        values /= np.sqrt(np.einsum("ij,ij->i", values, values) / values.shape[1] + LEAST)[:, None]
        values *= self._held[f"{name}_scale"]
        values += self._held[f"{name}_shift"]
        return values


def bent(values: Floats) -> Floats:
    """GELU, in its usual approximation."""
    import numpy as np

    curve = values * values
    curve *= values
    curve *= np.float32(0.044715)
    curve += values
    curve *= np.float32(0.7978845608)
    np.tanh(curve, out=curve)
    curve += np.float32(1)
    curve *= values
    curve *= np.float32(0.5)
    return curve
