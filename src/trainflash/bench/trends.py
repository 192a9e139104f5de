"""Do steps get slower or faster while they are timed? Early steps alone never speak for a run."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainflash import stats

PARTS = 6  # of the timed steps, each with its median
LEAST_STEPS = 8 * PARTS
CONFIDENCE = 0.995  # one-sided; of the mean slope over starts
CHANGED = 0.1  # own: of a step, over all that were timed; less is what a machine's own drift makes
COVERED = 0.9  # own: of the run's steps that were timed, for these to speak for it


@dataclass(frozen=True)
class Trend:
    """How one side's steps change: milliseconds more with each step, what the step in the middle takes, and the steps that say so."""

    slope_ms: float
    middle_ms: float
    middle: float
    first: int
    last: int
    sure: bool  # beyond what the starts differ by, and a tenth of a step

    def at(self, step: float) -> float:
        """Milliseconds of that step, as far as a straight line tells; never less than nothing."""
        return max(0.0, self.middle_ms + self.slope_ms * (step - self.middle))

    def mean_ms(self, steps: int) -> float:
        """Milliseconds of a step in the mean of so many, from the first timed one on."""
        return (self.at(self.first) + self.at(self.first + steps)) / 2


def grows_more(trends: Mapping[str, Trend] | None) -> bool:
    """Whether the candidate's steps get slower, and the baseline's less so."""
    if trends is None or not trends["candidate"].sure or trends["candidate"].slope_ms <= 0:
        return False
    ours, theirs = trends["baseline"], trends["candidate"]
    return theirs.slope_ms > (2 * ours.slope_ms if ours.sure else 0.0)


def said(trends: Mapping[str, Trend], steps: int | None) -> str:
    """What the steps that were timed show of the run."""
    known = trends["baseline"]
    timed = f"steps {known.first:,} to {known.last:,}" + (f" of {known.first + steps:,}" if steps is not None else "")
    changing = [f"the {side}'s {_change(trend)}" for side, trend in trends.items() if trend.sure]
    return f"from {timed}; " + (" and ".join(changing) if changing else "no trend seen")


def _change(trend: Trend) -> str:
    word = "slower" if trend.slope_ms > 0 else "faster"
    return f"get {word}, {trend.at(trend.first):.3g} to {trend.at(trend.last):.3g} ms"


def of_sides(profiles: Sequence[Mapping[str, Any]]) -> dict[str, Trend] | None:
    """The trends of baseline and candidate from the steps of each start that counts; None for too few starts or steps."""
    found = {}
    for side in ("baseline", "candidate"):
        trend = _of([(int(line[side][0]), line[side][1]) for line in profiles])
        if trend is None:
            return None
        found[side] = trend
    return found


def _of(starts: Sequence[tuple[int, Sequence[float]]]) -> Trend | None:
    lines = [_line(first, times) for first, times in starts if len(times) >= LEAST_STEPS]
    if len(lines) < stats.LEAST_STARTS:
        return None
    slopes = [slope for slope, _, _ in lines]
    slope, middle_ms = statistics.fmean(slopes), statistics.fmean(level for _, level, _ in lines)
    first, last = min(first for first, _ in starts), max(first + len(times) for first, times in starts)
    error = statistics.stdev(slopes) / math.sqrt(len(slopes))
    span = statistics.fmean(len(times) for _, times in starts)
    sure = abs(slope) > stats.t_quantile(CONFIDENCE, len(slopes) - 1) * error and abs(slope) * span > CHANGED * middle_ms
    return Trend(slope, middle_ms, statistics.fmean(middle for _, _, middle in lines), first, last, sure)


def _line(first: int, times: Sequence[float]) -> tuple[float, float, float]:
    """(slope of the medians of equal parts, by Theil and Sen; the line's height in the middle; the middle's step)."""
    edges = [round(part * len(times) / PARTS) for part in range(PARTS + 1)]
    points = [(first + (a + b) / 2, statistics.median(times[a:b])) for a, b in itertools.pairwise(edges)]
    slope = statistics.median((y - x) / (b - a) for (a, x), (b, y) in itertools.combinations(points, 2))
    middle = first + len(times) / 2
    return slope, statistics.median(y - slope * (at - middle) for at, y in points), middle
