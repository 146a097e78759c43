"""numpy, and short names for its arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]

__all__ = ["Array", "Numbers", "Truths", "np"]
