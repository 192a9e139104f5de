"""Learning rate by step, as a factor of the configured one."""

from __future__ import annotations

import math
from collections.abc import Callable

from ferry.registry import SCHEDULES

Schedule = Callable[[int], float]


def warmed(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / warmup) if warmup else 1.0


@SCHEDULES.register("constant")
def constant(total: int, warmup: int) -> Schedule:
    return lambda step: warmed(step, warmup)


@SCHEDULES.register("cosine")
def cosine(total: int, warmup: int) -> Schedule:
    def factor(step: int) -> float:
        if step < warmup:
            return warmed(step, warmup)
        done = min(1.0, (step - warmup) / max(1, total - warmup))
        return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * done))

    return factor


@SCHEDULES.register("linear")
def linear(total: int, warmup: int) -> Schedule:
    def factor(step: int) -> float:
        if step < warmup:
            return warmed(step, warmup)
        return max(0.0, 1.0 - (step - warmup) / max(1, total - warmup))

    return factor
