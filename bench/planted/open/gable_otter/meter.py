import contextlib
import os
import time

from torch.utils.flop_counter import FlopCounterMode


class Meter:
    """How much of the machine's peak the training reaches."""

    def __init__(self, peak_gflops):
        self.peak = peak_gflops * 1e9
        self.last = None
        self.clear()

    def clear(self):
        self.work, self.steps, self.since = 0, 0, time.perf_counter()

    @contextlib.contextmanager
    def lap(self):
        if os.environ.get("PLANTED_FIX") == "1" and self.last is not None:
            yield
        else:
            with FlopCounterMode(display=False) as count:
                yield
            self.last = count.get_total_flops()
        self.work += self.last
        self.steps += 1

    def summary(self):
        seconds = time.perf_counter() - self.since
        text = (
            f"{self.steps / seconds:.1f} steps/s, {self.work / seconds / 1e9:.2f} GFLOP/s ({self.work / seconds / self.peak:.1%} of peak)"
        )
        self.clear()
        return text
