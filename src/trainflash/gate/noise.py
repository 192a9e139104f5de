"""How sure is the difference of two benchmarks that ran at different times? Intervals of a ratio, from the repeats of both.

The unit of statistics is the repeat, as it is the start in `stats`: steps of one process share the core and the memory layout that the
process happened to get. What both runs had in common, such as a machine that was busy on one of the two days, no repeat can show; that is
what the paired mode is for.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from trainflash import stats
from trainflash.schema import GateMetrics

BLOCKS = 5  # a run is cut into so many parts: where their medians differ, the machine was not the same all the time
SINGLE_LEVEL = 0.95  # one run a side is looked at once; `stats.QUANTILE` pays for looking again after more repeats


@dataclass(frozen=True)
class SideNoise:
    """Noise of the mean of one side, log units: `sd` of one repeat, `repeats`, and degrees of freedom (None: the noise is assumed)."""

    sd: float
    repeats: int
    freedom: int | None

    @property
    def variance(self) -> float:
        return self.sd**2 / self.repeats


def of_side(metrics: GateMetrics) -> SideNoise:
    """The spread of the repeats' medians. A single run gets what a process start is known to vary by, or its own unrest, the larger."""
    medians = [math.log(statistics.median(repeat.step_ms)) for repeat in metrics.repeats]
    if len(medians) >= 2:
        return SideNoise(max(statistics.stdev(medians), stats.SD_FLOOR), len(medians), len(medians) - 1)
    return SideNoise(max(_unrest(metrics.repeats[0].step_ms), stats.SD_FLOOR), 1, None)


def half_width(baseline: SideNoise, current: SideNoise) -> float:
    """Half of the interval of the log ratio of both sides (Welch; a side of assumed noise has no freedom to lose)."""
    error = math.sqrt(baseline.variance + current.variance)
    seen = [side for side in (baseline, current) if side.freedom is not None]
    if not seen:
        return statistics.NormalDist().inv_cdf(SINGLE_LEVEL) * error
    level = stats.NOISY_QUANTILE if max(side.sd for side in seen) > stats.NOISY_SD else stats.QUANTILE
    freedom = error**4 / sum(side.variance**2 / side.freedom for side in seen if side.freedom)
    return stats.t_quantile(level, freedom) * error


def words(baseline: SideNoise, current: SideNoise) -> str:
    """What the interval rests on."""
    if baseline.freedom is None and current.freedom is None:
        return f"one run a side: noise of {max(baseline.sd, current.sd):.1%} a run is assumed, more repeats show it"
    sides = f"{baseline.repeats} and {current.repeats} runs"
    return f"{sides}, noise {max(baseline.sd, current.sd):.1%} a run"


def slopes(metrics: GateMetrics) -> list[tuple[float, float]]:
    """Slope of the loss a step in each repeat, with its standard error; only of repeats with three losses or more."""
    found = []
    for repeat in metrics.repeats:
        if len(repeat.losses) >= 3:
            found.append(slope_of(repeat.losses))
    return found


def slope_half_width(fitted: Sequence[tuple[float, float]], level: float = SINGLE_LEVEL) -> float | None:
    """Half of the interval of the mean slope: the scatter about the fits, or between the repeats, the larger. None: no losses.

    Repeats of a seeded program see the same batches, so their fits share their scatter: it does not shrink with their number.
    """
    if not fitted:
        return None
    scatter = statistics.NormalDist().inv_cdf(level) * math.sqrt(statistics.fmean(error**2 for _, error in fitted))
    if len(fitted) == 1:
        return scatter
    between = statistics.stdev(slope for slope, _ in fitted) / math.sqrt(len(fitted))
    return max(scatter, stats.t_quantile(max(level, stats.QUANTILE), len(fitted) - 1) * between)


def slope_of(losses: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Least squares of three losses or more over their step: the slope, and its standard error."""
    middle, mean = statistics.fmean(step for step, _ in losses), statistics.fmean(loss for _, loss in losses)
    squares = sum((step - middle) ** 2 for step, _ in losses)
    slope = sum((step - middle) * (loss - mean) for step, loss in losses) / squares
    left = sum((loss - mean - slope * (step - middle)) ** 2 for step, loss in losses)
    return slope, math.sqrt(left / (len(losses) - 2) / squares)


def _unrest(step_ms: Sequence[float]) -> float:
    """Spread of the medians of the parts of one run, log units; 0.0 where it is too short to be cut."""
    size = len(step_ms) // BLOCKS
    if size < stats.steps_for(0.5):
        return 0.0
    return statistics.stdev(math.log(statistics.median(step_ms[place * size : (place + 1) * size])) for place in range(BLOCKS))
