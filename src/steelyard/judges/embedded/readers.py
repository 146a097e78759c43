"""Who reads a claim beside its spans: a small network, and the transformer of their language beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.pairs import Language, common_language, read_pairs
from steelyard.judges.embedded.reader import Impression, read_beside
from steelyard.judges.embedded.spans import Beside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Readings(NamedTuple):
    """What the small network and the transformer make of a claim. They err in different places."""

    small: Impression
    large: Impression

    @property
    def support(self) -> tuple[float, float]:
        return self.small.support, self.large.support

    @property
    def contradicted(self) -> float:
        return (self.small.contradicted + self.large.contradicted) / 2


def readings(pairs: Sequence[tuple[str, Sequence[Beside]]], features: NDArray[np.float64]) -> list[Readings]:
    """What is made of each claim. Where its language is not that of the spans, the small network speaks for both."""
    small = read_beside(pairs, features)
    large = dict(enumerate(small))
    by_language: dict[Language, list[int]] = defaultdict(list)
    for at, pair in enumerate(pairs):
        if language := common_language(*pair):
            by_language[language].append(at)
    for language, own in by_language.items():
        large |= zip(own, read_pairs(language, [pairs[at] for at in own]), strict=True)
    return [Readings(one, large[at]) for at, one in enumerate(small)]
