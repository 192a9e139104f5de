"""From measurements to scores: pure functions, nothing is run here.

Score = time saved ÷ time that the expert saved, clipped to [0, 1]; a failed gate is 0 and named; a plain mean over tasks with a bootstrap
interval over tasks. A healthy program scores 1 for changing nothing and claiming nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

NO_GAIN = 1.05  # below this a claimed speed-up of a healthy program counts as none: the noise of whole runs on a shared machine
TOO_EASY = 0.9  # mean score of the arm without our tools, from which on a task is dropped
RESAMPLES = 10_000
LEAST_EXPERT_GAIN = 1.10  # a task is kept when the expert's interval lies above it and that of no change holds 1.0


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of paired time ratios before ÷ after, and its 95 % interval (Student's t on the logarithms)."""

    mean: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class Score:
    """One attempt. `failed_gates` names what went wrong; `claim_error` is the logarithm of claimed ÷ measured speed-up."""

    task: str
    arm: str
    value: float
    failed_gates: tuple[str, ...]
    measured: Ratio | None
    claimed: float | None
    claim_error: float | None
    minutes: float
    tokens: int | None


_T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}  # Student's t, two-sided 95 %


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio | None:
    """Speed-up from (before, after) seconds of paired runs; None for fewer than two pairs."""
    logs = [math.log(before / after) for before, after in pairs]
    n = len(logs)
    if n < 2:
        return None
    mean = sum(logs) / n
    spread = math.sqrt(sum((log - mean) ** 2 for log in logs) / (n - 1))
    reach = _T_975.get(n - 1, 1.96 + 2.5 / (n - 1)) * spread / math.sqrt(n)
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), n)


def calibrated(unchanged: Ratio | None, expert: Ratio | None, healthy: bool) -> str:
    """Why a task cannot be scored on this machine; "" when it can."""
    if unchanged is None or not unchanged.low <= 1.0 <= unchanged.high:
        return "equal programs did not measure equal"
    if healthy:
        return ""
    if expert is None or expert.low <= LEAST_EXPERT_GAIN:
        return f"the expert's gain is not clear of {LEAST_EXPERT_GAIN:g}"
    return ""


def share_of_expert(before_s: float, after_s: float, expert_s: float) -> float:
    """Time saved ÷ time that the expert saved, in [0, 1]."""
    possible = before_s - expert_s
    return 0.0 if possible <= 0 else min(1.0, max(0.0, (before_s - after_s) / possible))


def healthy_share(claimed: float | None, measured: Ratio | None) -> float:
    """1 for leaving a healthy program alone and saying so, or for a gain that is there; else 0."""
    if measured is not None:
        return 1.0 if measured.low > NO_GAIN else 0.0
    return 1.0 if claimed is None or claimed <= NO_GAIN else 0.0


def claim_error(claimed: float | None, measured: Ratio | None) -> float | None:
    """|log(claimed ÷ measured)|: 0 is true, 0.69 is off by a factor of two; None without a claim or a measurement."""
    if claimed is None or claimed <= 0 or measured is None:
        return None
    return abs(math.log(claimed / measured.mean))


def over_tasks(scores: Sequence[Score], arm: str) -> dict[str, float]:
    """Mean score of each task in one arm."""
    values: dict[str, list[float]] = {}
    for score in scores:
        if score.arm == arm:
            values.setdefault(score.task, []).append(score.value)
    return {task: sum(each) / len(each) for task, each in sorted(values.items())}


def too_easy(scores: Sequence[Score]) -> dict[str, str]:
    """Tasks that the assistant solves without our tools, and that can therefore show nothing; each with the reason."""
    bare = over_tasks(scores, "nothing")
    return {task: f"solved to {value:.0%} with nothing of ours" for task, value in bare.items() if value >= TOO_EASY}


def bootstrap(values: Sequence[float], seed: int = 1) -> tuple[float, float] | None:
    """95 % interval of the mean by resampling tasks; None for fewer than two."""
    if len(values) < 2:
        return None
    generator = random.Random(seed)
    means = sorted(sum(generator.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def difference(scores: Sequence[Score], arm: str, against: str) -> tuple[float, tuple[float, float] | None] | None:
    """How much better one arm is than another, paired by task, with its interval; None without a common task."""
    ours, theirs = over_tasks(scores, arm), over_tasks(scores, against)
    gains = [ours[task] - theirs[task] for task in ours if task in theirs]
    return (sum(gains) / len(gains), bootstrap(gains)) if gains else None
