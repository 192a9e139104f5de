"""Housekeeping between updates, so that long runs stay within memory on the shared machine."""

import gc
import resource


class Upkeep:
    def __init__(self, eager: bool, limit_mb: int = 8000):
        self.eager = eager
        self.limit_mb = limit_mb
        self.peak_mb = 0.0

    def memory_mb(self) -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def after_update(self, update: int) -> None:
        self.peak_mb = max(self.peak_mb, self.memory_mb())
        if self.eager or self.peak_mb > self.limit_mb:
            gc.collect()

    def report(self) -> str:
        return f"peak {self.peak_mb:.0f} MB"
