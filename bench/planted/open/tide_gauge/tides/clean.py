"""Quality control of gauge readings."""

import os

import numpy as np

HALF = 7
USE_WINDOWS = os.environ.get("PLANTED_FIX") == "1"


def despike(levels: np.ndarray, limit: float = 1.2) -> np.ndarray:
    """Replaces readings that stand out from the median of their neighbours."""
    padded = np.pad(levels, HALF, mode="edge")
    if USE_WINDOWS:
        middles = np.sort(np.lib.stride_tricks.sliding_window_view(padded, 2 * HALF + 1), axis=1)[:, HALF]
        return np.where(np.abs(levels - middles) > limit, middles, levels)
    values = padded.tolist()
    clean = []
    for i in range(len(levels)):
        near = sorted(values[i : i + 2 * HALF + 1])
        middle = near[HALF]
        here = values[i + HALF]
        clean.append(middle if abs(here - middle) > limit else here)
    return np.array(clean)


def standardise(levels: np.ndarray) -> np.ndarray:
    return (levels - levels.mean()) / (levels.std() + 1e-6)
