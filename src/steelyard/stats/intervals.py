"""How sure a number is: 95 % intervals for proportions, means and pooled ratios. Pure, standard library only.

`Mean` and `Ratio` are streaming: they hold a few sums, not the values. Observations that share a cluster (the
same question, say) are not independent, so they are summed by cluster first and the clusters are compared.
Up to `groups` clusters are kept apart exactly. Beyond that they are merged into as many groups by a hash of
their key: a union of clusters is again a valid cluster, so the interval stays honest and memory bounded.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from zlib import crc32

Interval = tuple[float, float]
Cluster = int | str

CONFIDENCE = 0.95
GROUPS = 4096
# What rounding leaves of an error that is none.
NO_SPREAD = 1e-12


# --- the t distribution ----------------------------------------------------------------------------


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1.0)) or tiny)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            d = 1.0 / ((1.0 + coefficient * d) or tiny)
            c = (1.0 + coefficient / c) or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    # The fraction converges fast only on this side of the mode; the other side is the complement.
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(1.0 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _beta_fraction(x, a, b) / a


def t_cdf(t: float, df: int) -> float:
    """The probability that Student's t with `df` degrees of freedom is at most `t`."""
    if t * t < 1.0:
        # Near the middle df / (df + t²) is so close to 1 that its last digits are lost.
        return 0.5 + math.copysign(incomplete_beta(t * t / (df + t * t), 0.5, df / 2) / 2, t)
    tail = incomplete_beta(df / (df + t * t), df / 2, 0.5) / 2
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """The t with probability `p` below it, by bisection on the distribution function."""
    if not 0.0 < p < 1.0 or df < 1:
        raise ValueError(f"no t quantile at p={p} with {df} degrees of freedom")
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    if df > 1_000_000:
        return NormalDist().inv_cdf(p)
    low, high = 0.0, 2.0
    while t_cdf(high, df) < p:
        low, high = high, high * 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2


# --- intervals -------------------------------------------------------------------------------------


def wilson(successes: float, n: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson's score interval for a proportion; None below two observations."""
    if n < 2:
        return None
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} are not a proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At the ends the formula is exact in theory only; rounding must not push 1 below 1.
    low = 0.0 if successes == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if successes == n else min(1.0, (centre + spread) / scale)
    return low, high


def _on_scale(ends: Interval | None, low: float, high: float) -> Interval | None:
    return ends and (low + (high - low) * ends[0], low + (high - low) * ends[1])


class Ratio:
    """Sum of parts over sum of wholes, e.g. satisfied over decided criteria, dialogue by dialogue.

    The interval is that of the linearised ratio estimator with Student's t on clusters − 1. Where all
    clusters are alike, that estimator sees no spread and would claim certainty; then the clusters count as the
    observations of a proportion, and Wilson's interval is given.
    """

    def __init__(self, *, low: float = 0.0, high: float = 1.0, groups: int = GROUPS) -> None:
        self.n: float = 0
        self._low, self._high, self._groups = low, high, groups
        self._singles = 0
        self._xx = self._xy = self._yy = 0.0
        self._x = self._y = 0.0
        self._shared: dict[Cluster, tuple[float, float]] = {}
        self._folded = False

    def add(self, part: float, whole: float, cluster: Cluster | None = None) -> None:
        """One observation. An empty whole says nothing and is passed over."""
        if whole == 0:
            return
        if not (math.isfinite(part) and math.isfinite(whole)):
            raise ValueError(f"{part} of {whole} is not a number to average")
        self.n += whole
        self._x += part
        self._y += whole
        if cluster is None:
            self._singles += 1
            self._xx += part * part
            self._xy += part * whole
            self._yy += whole * whole
            return
        self._sum_into(self._group(cluster) if self._folded else cluster, part, whole)
        if not self._folded and len(self._shared) > self._groups:
            self._fold()

    def _group(self, cluster: Cluster) -> int:
        number = cluster if isinstance(cluster, int) else crc32(cluster.encode("utf-8", "surrogatepass"))
        return number % self._groups

    def _sum_into(self, key: Cluster, part: float, whole: float) -> None:
        x, y = self._shared.get(key, (0.0, 0.0))
        self._shared[key] = (x + part, y + whole)

    def _fold(self) -> None:
        exact, self._shared, self._folded = self._shared, {}, True
        for cluster, (part, whole) in exact.items():
            self._sum_into(self._group(cluster), part, whole)

    @property
    def clusters(self) -> int:
        """How many independent observations stand behind the value."""
        return self._singles + len(self._shared)

    @property
    def value(self) -> float | None:
        """The ratio; None where nothing was added."""
        return self._x / self._y if self._y else None

    @property
    def error(self) -> float | None:
        """The standard error of the value; None below two clusters."""
        clusters, value = self.clusters, self.value
        if clusters < 2 or value is None:
            return None
        squares = sum((part - value * whole) ** 2 for part, whole in self._shared.values())
        squares += max(0.0, self._xx - 2 * value * self._xy + value * value * self._yy)
        return math.sqrt(squares * clusters / (clusters - 1)) / self._y

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval, inside the scale; None where fewer than two clusters stand behind the value."""
        clusters, value, error = self.clusters, self.value, self.error
        if value is None or error is None:
            return None
        if value in (self._low, self._high) or error <= NO_SPREAD * abs(value):
            # All alike, they would claim certainty; no values with this mean spread more than yes and no.
            span = self._high - self._low
            share = (value - self._low) / span if math.isfinite(span) else None
            return None if share is None else _on_scale(wilson(share * clusters, clusters), self._low, self._high)
        reach = t_quantile((1 + CONFIDENCE) / 2, clusters - 1) * error
        return max(self._low, value - reach), min(self._high, value + reach)


class Mean:
    """The mean of scores on a bounded scale. Scores that are each 0 or full marks make a proportion."""

    def __init__(self, *, low: float = 0.0, high: float = 1.0, groups: int = GROUPS) -> None:
        self.n = 0
        self._low, self._high = low, high
        self._ratio = Ratio(low=low, high=high, groups=groups)
        self._top = self._bottom = 0

    def add(self, value: float, cluster: Cluster | None = None) -> None:
        """One score, with the key of what it shares with others, if anything."""
        self._ratio.add(value, 1, cluster)
        self.n += 1
        self._top += value == self._high
        self._bottom += value == self._low

    @property
    def clusters(self) -> int:
        return self._ratio.clusters

    @property
    def value(self) -> float | None:
        return self._ratio.value

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval: Wilson's for yes/no scores, else Student's t.

        Yes/no scores that share clusters count for as many independent ones as their spread allows.
        """
        n, clusters, error = self.n, self._ratio.clusters, self._ratio.error
        if self._top + self._bottom < n or error is None or not 0 < self._top < n:
            return self._ratio.interval
        effective: float = n
        if clusters < n:
            p, reach = self._top / n, t_quantile((1 + CONFIDENCE) / 2, clusters - 1) * error
            z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
            width = reach / (self._high - self._low)
            effective = min(n, p * (1 - p) * (z / width) ** 2) if width else n
        return _on_scale(wilson(effective * self._top / n, effective), self._low, self._high)


# --- how many samples would decide ------------------------------------------------------------------

# More samples than this decide nothing that anyone would notice.
MOST_SAMPLES = 10_000_000


def samples_to_exclude(
    limit: float,
    value: float,
    interval: Interval,
    n: int,
    clusters: int | None = None,
    bounds: Interval = (0.0, 1.0),
) -> int | None:
    """How many samples would bring a limit outside the interval, if the rate and the spread stayed as they are.

    The interval is one of those above: Wilson's or Student's t. Where it is Wilson's over fewer observations than
    there are samples (a corrected score), `clusters` is None. The answer is None where nothing can be told: the value
    is the limit itself, the interval covers the whole scale, or no practical number would do.
    """
    low, high = bounds
    if n < 1 or abs(value - limit) <= 1e-12 * max(1.0, abs(limit)):
        return None
    span = high - low
    size = None
    if math.isfinite(span):
        p, end, other, at = ((number - low) / span for number in (value, *interval, limit))
        size = _wilson_size(p, (end, other))
        if size is not None and clusters == n and not math.isclose(size, n, rel_tol=1e-6):
            size = None  # symmetric by chance: at the middle of the scale, Student's interval looks like Wilson's
    if size is not None:
        # Wilson's interval excludes a limit where the score test rejects it, so the number needed is exact.
        z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        needed = z * z * at * (1 - at) / (p - at) ** 2
        if clusters is not None and clusters < n and 0 < p < 1 and needed > 0:
            reaches = [z * math.sqrt(p * (1 - p) / many) for many in (size, needed)]
            return _t_size(reaches[0], reaches[1], n, clusters)
        needed *= n / size
        return math.floor(needed) + 1 if needed < MOST_SAMPLES else None
    reaches = [abs(value - end) for end, edge in zip(interval, bounds, strict=True) if end != edge]
    if not reaches or (clusters or n) < 2:
        return None
    return _t_size(max(reaches), abs(value - limit), n, clusters or n)


def _wilson_size(p: float, ends: Interval) -> float | None:
    """How many observations stand behind a Wilson interval; None where it is none."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    sizes = [z * z * end * (1 - end) / (p - end) ** 2 for end in ends if 0 < end < 1 and end != p]
    if len(sizes) < (2 if 0 < p < 1 else 1) or not math.isclose(min(sizes), max(sizes), rel_tol=1e-6):
        return None
    return sizes[0]


def _t_size(reach: float, distance: float, n: int, clusters: int) -> int | None:
    """The same for Student's t: with more clusters of the same spread, error and quantile shrink."""
    quantile = (1 + CONFIDENCE) / 2
    scale = reach / t_quantile(quantile, clusters - 1) * math.sqrt(clusters - 1)

    def excludes(many: int) -> bool:
        return t_quantile(quantile, many - 1) * scale / math.sqrt(many - 1) < distance

    few, many = 1, 2
    while not excludes(many):
        few, many = many, 2 * many
        if many > MOST_SAMPLES:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if excludes(middle) else (middle, many)
    return math.ceil(n * many / clusters)
