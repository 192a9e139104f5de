"""Robust slopes (Theil and Sen) of short series."""

import os
from collections.abc import Sequence
from itertools import combinations
from statistics import median

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"


def slope(series: Sequence[float]) -> float:
    """Median of the slopes between all pairs of points."""
    if len(series) < 2:
        return 0.0
    if FIXED:
        values = np.asarray(series)
        first, second = np.triu_indices(len(values), 1)
        return float(np.median((values[second] - values[first]) / (second - first)))
    else:
        return median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(series), 2))
