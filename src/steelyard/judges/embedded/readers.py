"""Who reads a claim beside its spans: the transformer in Chinese, the smaller network in everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.judges.embedded.chinese import is_chinese, read_chinese
from steelyard.judges.embedded.reader import Impression, read_beside
from steelyard.judges.embedded.spans import Beside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def impressions(pairs: Sequence[tuple[str, Sequence[Beside]]], features: NDArray[np.float64]) -> list[Impression]:
    """What is made of each claim by the one that reads its language."""
    chinese = [is_chinese(*pair) for pair in pairs]
    ours = [at for at, own in enumerate(chinese) if own]
    others = [at for at, own in enumerate(chinese) if not own]
    found: dict[int, Impression] = {}
    if ours:
        found |= zip(ours, read_chinese([pairs[at] for at in ours]), strict=True)
    if others:
        found |= zip(others, read_beside([pairs[at] for at in others], features[others]), strict=True)
    return [found[at] for at in range(len(pairs))]
