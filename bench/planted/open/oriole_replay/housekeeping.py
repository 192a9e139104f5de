"""Keeps a long run small: limits for memory, and the figures about it."""

import functools
import gc
import os
from collections.abc import Callable

FIXED = os.environ.get("PLANTED_FIX") == "1"


def megabytes() -> float:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Budget:
    """The memory that a run may take; what is over it is released where that is possible."""

    def __init__(self, limit: float, every: int = 12) -> None:
        self.limit, self.every, self.calls, self.highest = limit, every, 0, 0.0

    def tidy(self) -> None:
        self.calls += 1
        if self.calls % self.every:
            return
        used = megabytes()
        self.highest = max(self.highest, used)
        if used > self.limit:
            gc.collect()


BUDGET = Budget(limit=4000.0 if FIXED else 64.0)


def frugal(update: Callable) -> Callable:
    """Tidies up behind an update."""

    @functools.wraps(update)
    def wrapper(*args, **kwargs):
        try:
            return update(*args, **kwargs)
        finally:
            BUDGET.tidy()

    return wrapper
