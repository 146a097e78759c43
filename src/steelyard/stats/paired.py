"""Two runs over the same samples: the difference, how sure it is, and what it would take to be sure.

The unit is the cluster (samples of one question together). The test swaps A and B within clusters, exactly where
that is feasible; for yes/no scores without clusters this is the exact form of McNemar's test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from steelyard.stats.intervals import CONFIDENCE, Interval, incomplete_beta, t_quantile, wilson
from steelyard.stats.libraries import Array, Numbers, np

SWAPS = 20_000
SEED = 20_260_302
CELLS_AT_ONCE = 4_000_000
# With more clusters than this the sum of swaps is normal for all that can be told from SWAPS of them.
MANY = 3000
POWER = 0.8
# More samples than this decide nothing that anyone would notice.
MOST_SAMPLES = 10_000_000


class PairedDifference(NamedTuple):
    """B minus A over pairs. `p` is of the swap test. `dz` is the mean difference in units of its own spread;
    `balance` the share of pairs that rose minus the share that fell."""

    value: float
    interval: Interval | None
    p: float | None
    n: int
    clusters: int
    rose: int
    fell: int
    dz: float | None
    error: float | None
    method: str

    @property
    def balance(self) -> float:
        return (self.rose - self.fell) / self.n


def difference(a: Array, b: Array, cluster: Numbers, span: float = 1.0) -> PairedDifference | None:
    """The mean of B − A; `cluster` numbers what depends on each other, `span` is the length of the scale."""
    n = len(a)
    if n == 0:
        return None
    apart = b - a
    # A gap of rounding alone is no change.
    apart = np.where(np.abs(apart) < 1e-9 * (span if math.isfinite(span) else 1.0), 0.0, apart)
    value = float(apart.mean())
    sums = np.bincount(cluster, weights=apart).astype(np.float64)
    sizes = np.bincount(cluster)
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    clusters = len(sums)
    error, interval = None, None
    if clusters > 1:
        rest = sums - value * sizes
        error = math.sqrt(float(rest @ rest) * clusters / (clusters - 1)) / n
        interval = _interval(value, error, clusters, span, bool(np.any(apart)))
    sd = float(apart.std(ddof=1)) if n > 1 else 0.0
    p, method = swap_test(sums)
    return PairedDifference(
        value=value,
        interval=interval,
        p=p,
        n=n,
        clusters=clusters,
        rose=int((apart > 0).sum()),
        fell=int((apart < 0).sum()),
        dz=value / sd if sd > 0 else None,
        error=error,
        method=method,
    )


def _interval(value: float, error: float, clusters: int, span: float, changed: bool) -> Interval | None:
    if error > 0:
        reach = t_quantile((1 + CONFIDENCE) / 2, clusters - 1) * error
        return max(-span, value - reach), min(span, value + reach)
    # Every cluster changed alike, or none did: what so many alike leave room for.
    ends = wilson(0, clusters)
    if ends is None or not math.isfinite(span):
        return None
    unseen = ends[1] * span
    return (-unseen, unseen) if not changed else (max(-span, value - unseen), min(span, value + unseen))


def swap_test(sums: Array) -> tuple[float | None, str]:
    """How often a difference as large comes about when A and B change places at random within each cluster."""
    moved = sums[np.abs(sums) > 1e-12]
    if len(sums) < 2:
        return None, "none"
    if not len(moved):
        return 1.0, "exact"
    if np.ptp(np.abs(moved)) < 1e-12:
        return sign_test(int((moved > 0).sum()), len(moved)), "exact"
    seen = abs(float(moved.sum())) * (1 - 1e-9)
    if 2 ** len(moved) <= SWAPS:
        ways = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
        return float(np.mean(np.abs((1 - 2 * ways) @ moved) >= seen)), "exact"
    if len(moved) > MANY:
        return 2 * NormalDist().cdf(-seen / math.sqrt(float(moved @ moved))), "normal"
    rng = np.random.default_rng(SEED)
    as_large, left = 0, SWAPS
    while left:
        size = min(left, max(1, CELLS_AT_ONCE // len(moved)))
        signs = rng.integers(0, 2, (size, len(moved)), dtype=np.int8) * 2 - 1
        as_large += int((np.abs(signs @ moved) >= seen).sum())
        left -= size
    # The order that was observed is one of the possible ones.
    return (as_large + 1) / (SWAPS + 1), "random"


def sign_test(rises: int, n: int) -> float:
    """The two-sided probability of so uneven a split of rises and falls, if both were equally likely."""
    fewer = min(rises, n - rises)
    # The probability of at most so many of n is an incomplete beta function.
    return min(1.0, 2 * incomplete_beta(0.5, n - fewer, fewer + 1))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment (1979): what each p is worth when so many questions were asked at once."""
    known = sorted((p, index) for index, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    worst = 0.0
    for rank, (p, index) in enumerate(known):
        worst = max(worst, min(1.0, p * (len(known) - rank)))
        adjusted[index] = worst
    return adjusted


def samples_to_decide(found: PairedDifference, alpha: float = 1 - CONFIDENCE, power: float = POWER) -> int | None:
    """How many samples like these would show a true difference as large as the one seen; None where none is seen."""
    if not found.error or not found.value:
        return None
    normal = NormalDist()
    reach = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
    needed = found.n * (reach * found.error / found.value) ** 2
    return math.ceil(needed) if needed <= MOST_SAMPLES else None
