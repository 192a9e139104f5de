"""How figures are rounded, once: microseconds keep their nanoseconds, ratios six digits, so that equal traces give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainflash.schema.profile_times import DurationStats

NS_PER_US = 1000


def us(nanoseconds: float) -> float:
    """Microseconds with three decimals."""
    return round(float(nanoseconds) / NS_PER_US, 3)


def ratio(part: float, whole: float) -> float | None:
    """`part` ÷ `whole` with six decimals; None where there is no whole."""
    return round(float(part) / float(whole), 6) if whole else None


def share(part: float, whole: float) -> float:
    """The same where nothing of nothing is 0."""
    return ratio(part, whole) or 0.0


def stats(durations_ns: Sequence[int] | np.ndarray) -> DurationStats:
    """Statistics in microseconds; quantiles by linear interpolation."""
    values = np.sort(np.asarray(durations_ns, np.int64))
    if not len(values):
        return DurationStats(0, None, None, None, None, None)
    return DurationStats(
        count=len(values),
        mean=us(int(values.sum()) / len(values)),
        median=us(_quantile(values, 0.5)),
        p90=us(_quantile(values, 0.9)),
        min=us(values[0]),
        max=us(values[-1]),
    )


def _quantile(values: np.ndarray, q: float) -> float:
    place = (len(values) - 1) * q
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return float(values[low]) + (place - low) * float(values[high] - values[low])
