"""numpy and scipy, or one line that says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from steelyard.errors import MissingExtra

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise MissingExtra("numpy", "stats", "calibrating, comparing and correcting") from None

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]

__all__ = ["Array", "Numbers", "Truths", "np", "scipy_stats"]


def scipy_stats() -> Any:
    """`scipy.stats`, loaded only when a test is made: it takes longer to load than most of what we do."""
    try:
        return import_module("scipy.stats")
    except ImportError:
        raise MissingExtra("scipy", "stats", "testing a difference") from None
