"""The learned part: boosted trees and a line over the features, and what the networks read, as one probability."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.judges.embedded.features import NAMES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WEIGHTS = Path(__file__).with_name("weights") / "support.npz"


class Trees(NamedTuple):
    """Boosted trees as tables: one line per tree, one column per node; a leaf is its own child."""

    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: NDArray[np.float32]
    start: float
    depth: int

    def score(self, features: Floats) -> Floats:
        """The log-odds of each line of features."""
        import numpy as np

        trees = np.arange(len(self.feature))
        node = np.zeros((len(features), len(self.feature)), dtype=np.int16)
        for _ in range(self.depth):
            seen = np.take_along_axis(features, self.feature[trees, node].astype(np.int64), axis=1)
            low = seen <= self.threshold[trees, node]
            node = np.where(low, self.left[trees, node], self.right[trees, node])
        total: Floats = self.value[trees, node].astype(np.float64).sum(axis=1) + self.start
        return total


class Leaning(NamedTuple):
    """What a claim's own embedding suggests, in one regime; nothing (0) in any other.

    In a short phrase it tells a detail (a name, a day) from a commonplace; beside a list of facts about someone,
    whether the speaker speaks of herself.
    """

    weights: Floats
    offset: float

    def of(self, vectors: Floats, applies: NDArray[np.bool_]) -> Floats:
        import numpy as np

        return np.where(applies, vectors @ self.weights + self.offset, 0.0)


class Line(NamedTuple):
    """A straight line through the features, each counting only in the direction it can count."""

    weights: Floats
    offset: float

    def score(self, features: Floats) -> Floats:
        total: Floats = features @ self.weights + self.offset
        return total


FRAGMENT_WORDS = 11
# How much the line counts beside the trees. The trees know phrases and lists of facts from many examples; on other
# text than they were grown on they wander, and the line does not (left-out sets, training/README.md).
AT_HOME, ELSEWHERE = 0.25, 1.0
REGIMES = ("fragment", "listed")


def regimes(features: Floats) -> dict[str, NDArray[np.bool_]]:
    """Which lines of features are about short phrases, and which about lists of facts."""
    listed = features[:, NAMES.index("listed")] > 0
    short = features[:, NAMES.index("claim_words")] <= FRAGMENT_WORDS
    return {"fragment": short & ~listed & (features[:, NAMES.index("chinese")] > 0), "listed": listed}


KINDS = (*REGIMES, "zh", "en")


def kinds(features: Floats) -> NDArray[np.int64]:
    """Of which kind each line is, as its place in KINDS: a phrase, beside a list of facts, or a statement."""
    import numpy as np

    found = np.where(features[:, NAMES.index("chinese")] > 0, KINDS.index("zh"), KINDS.index("en"))
    for regime, here in regimes(features).items():
        found[here] = KINDS.index(regime)
    return found


class Model(NamedTuple):
    """Trees, line and networks, how they are weighed, and where each language draws its lines.

    `weighed` has a line for each of KINDS: what trees and line count, what each network does, an offset.
    """

    trees: Trees
    line: Line
    leanings: dict[str, Leaning]
    weighed: Floats
    supported: dict[str, float]
    contradicted: dict[str, float]
    denied: float

    def probabilities(self, features: Floats, vectors: Floats, read: Floats) -> Floats:
        """The calibrated probability that each claim is supported; `read` has a column for each network."""
        import numpy as np

        applies = regimes(features)
        leant = [self.leanings[regime].of(vectors, applies[regime]) for regime in REGIMES]
        scores = together(self.trees, self.line, features, np.column_stack([features, *leant]))
        return weighed_up(self.weighed[kinds(features)], scores, read)


def weighed_up(weighed: Floats, scores: Floats, read: Floats) -> Floats:
    """The probabilities that scores and readings come to, each line by its own weights."""
    import numpy as np

    log_odds = weighed[:, 0] * scores + (weighed[:, 1:-1] * read).sum(axis=1) + weighed[:, -1]
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -30.0, 30.0)))
    return found


def together(trees: Trees, line: Line, features: Floats, columns: Floats) -> Floats:
    """What trees and line say together; both are scaled to the same spread on the training rows."""
    import numpy as np

    share = np.where(np.any(list(regimes(features).values()), axis=0), AT_HOME, ELSEWHERE)
    scores: Floats = (trees.score(columns) + share * line.score(features)) / (1 + share)
    return scores


@lru_cache(maxsize=1)
def model(weights: Path = WEIGHTS) -> Model:
    """The shipped model; it refuses weights that were trained on other features."""
    import numpy as np

    with np.load(weights, allow_pickle=False) as held:
        if tuple(held["names"]) != NAMES:
            raise ValueError(f"{weights.name} was trained on other features: run python -m training.train")
        trees = Trees(
            held["feature"], held["threshold"], held["left"], held["right"], held["value"],
            float(held["start"]), int(held["depth"]),
        )  # fmt: skip
        lines = dict(zip(held["languages"].tolist(), held["lines"].tolist(), strict=True))
        return Model(
            trees,
            Line(held["line"][1:], float(held["line"][0])),
            {
                regime: Leaning(held["leanings"][at, 1:], float(held["leanings"][at, 0]))
                for at, regime in enumerate(REGIMES)
            },
            held["weighed"],
            {language: line[0] for language, line in lines.items()},
            {language: line[1] for language, line in lines.items()},
            float(held["denied"]),
        )
