"""Intervals by resampling whole clusters: the items of one sample, or the samples of one question, stay together.

Figures here are functions of sums over clusters, so a resample is a row of weights and all of them are one matrix
product. Ends are bias-corrected and accelerated (Efron 1987), and moved out as far as Student's t moves out from the
normal distribution (Hesterberg 2015): with few clusters, resampling alone is too sure of itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

from steelyard.stats.intervals import CONFIDENCE, Interval, t_quantile, wilson
from steelyard.stats.libraries import Array, Numbers, np

RESAMPLES = 2000
SEED = 20_260_302
# Resamples drawn at once: bounds memory for runs with many clusters.
CELLS_AT_ONCE = 4_000_000
NORMAL = NormalDist()

Statistic = Callable[[Array], Array]


class BootstrapFigure(NamedTuple):
    """A number, its 95 % interval, and how many clusters stand behind it."""

    value: float | None
    interval: Interval | None
    clusters: int


class Resampled:
    """Sums over clusters, once as they are, many times resampled, and once without each cluster."""

    def __init__(self, clusters: Array, resamples: int = RESAMPLES, seed: int = SEED) -> None:
        self.clusters = clusters
        self.n = len(clusters)
        self.total: Array = clusters.sum(axis=0)
        shape = clusters.shape[1:]
        flat = clusters.reshape(self.n, math.prod(shape))
        rng = np.random.default_rng(seed)
        parts, left = [np.zeros((0, flat.shape[1]))], resamples if self.n > 1 else 0
        while left:
            size = max(1, min(left, CELLS_AT_ONCE // self.n))
            parts.append(rng.multinomial(self.n, np.full(self.n, 1 / self.n), size=size) @ flat)
            left -= size
        drawn = np.concatenate(parts)
        self.resampled: Array = drawn.reshape(len(drawn), *shape)
        self.without: Array = self.total - clusters

    def figure(
        self,
        statistic: Statistic,
        *,
        counts: Callable[[Array], Array] | None = None,
        chance: Statistic | None = None,
        bounds: Interval = (0.0, 1.0),
    ) -> BootstrapFigure:
        """The statistic with its interval.

        `counts` tells from a cluster's table whether it bears on the statistic. `chance` is what agreement is
        measured above, where it is. Both serve the case that resampling cannot see beyond: no error at all in the data.
        """
        bearing = self.n if counts is None else int((counts(self.clusters) > 0).sum())
        value = float(statistic(self.total[None])[0])
        if not np.isfinite(value):
            return BootstrapFigure(None, None, bearing)
        replicates = statistic(self.resampled)
        replicates = replicates[np.isfinite(replicates)]
        if bearing < 2 or len(replicates) < 2:
            return BootstrapFigure(value, None, bearing)
        if np.ptp(replicates) < 1e-12:
            base = float(chance(self.total[None])[0]) if chance else 0.0
            return BootstrapFigure(value, _unseen(value, bearing, base, bounds), bearing)
        low, high = bca(value, replicates, statistic(self.without), bearing)
        return BootstrapFigure(value, (max(bounds[0], low), min(bounds[1], high)), bearing)


def _unseen(value: float, clusters: int, chance: float, bounds: Interval) -> Interval:
    """What so many clusters without a single exception leave room for; Wilson's interval, above chance if need be."""
    ends = wilson(clusters if value >= bounds[1] else 0, clusters)
    if ends is None or not bounds[0] <= value <= bounds[1] or bounds[0] < value < bounds[1]:
        return bounds
    low, high = ((end - chance) / (1 - chance) for end in ends)
    return max(bounds[0], low), min(bounds[1], high)


def bca(value: float, replicates: Array, without: Array, clusters: int | None = None) -> Interval:
    """The bias-corrected and accelerated ends, from the replicates and the values that leave one cluster out; moved
    out for the number of clusters, where that is given."""
    below = (np.sum(replicates < value) + np.sum(replicates <= value)) / (2 * len(replicates))
    # Beyond these ends the correction says more about the number of resamples than about the data.
    shift = NORMAL.inv_cdf(float(np.clip(below, 0.01, 0.99)))
    left = without[np.isfinite(without)]
    apart = left.mean() - left if len(left) else np.zeros(1)
    squares = float((apart**2).sum())
    acceleration = float((apart**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0

    reach = NORMAL.inv_cdf((1 + CONFIDENCE) / 2)
    if clusters is not None:
        reach = t_quantile((1 + CONFIDENCE) / 2, clusters - 1) * math.sqrt(clusters / (clusters - 1))

    def end(away: float) -> float:
        z = shift + away
        return NORMAL.cdf(shift + z / max(1e-6, 1 - acceleration * z))

    low, high = np.quantile(replicates, [end(-reach), end(reach)])
    return float(low), float(high)


def gather(values: Array, clusters: Numbers) -> Array:
    """Values summed by cluster; `clusters` holds the cluster's number, from 0, of each value."""
    found = np.zeros((int(clusters.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(found, clusters, values)
    return found
