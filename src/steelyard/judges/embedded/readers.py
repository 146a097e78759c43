"""Who reads a claim beside its spans: the transformer of their language; a smaller network where they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.judges.embedded.pairs import Language, common_language, read_pairs
from steelyard.judges.embedded.reader import Impression, read_beside
from steelyard.judges.embedded.spans import Beside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def impressions(pairs: Sequence[tuple[str, Sequence[Beside]]], features: NDArray[np.float64]) -> list[Impression]:
    """What is made of each claim by the one that reads its language."""
    readers: dict[Language | None, list[int]] = defaultdict(list)
    for at, pair in enumerate(pairs):
        readers[common_language(*pair)].append(at)
    found: dict[int, Impression] = {}
    for language, own in readers.items():
        some = [pairs[at] for at in own]
        found |= zip(own, read_pairs(language, some) if language else read_beside(some, features[own]), strict=True)
    return [found[at] for at in range(len(pairs))]
