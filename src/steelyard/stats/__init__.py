"""Statistics: intervals, tests and agreement. Pure functions.

`intervals` needs the standard library only and is what every report uses; `agreement`, `bootstrap`, `correction`
and `paired` need numpy and are imported where they are used.
"""

from __future__ import annotations

from steelyard.stats.intervals import (
    CONFIDENCE,
    GROUPS,
    Cluster,
    Interval,
    Mean,
    Ratio,
    samples_to_exclude,
    t_cdf,
    t_quantile,
    wilson,
)

__all__ = [
    "CONFIDENCE",
    "GROUPS",
    "Cluster",
    "Interval",
    "Mean",
    "Ratio",
    "samples_to_exclude",
    "t_cdf",
    "t_quantile",
    "wilson",
]
