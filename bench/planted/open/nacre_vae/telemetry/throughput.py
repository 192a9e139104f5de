"""Outlines per second and the share of the machine's peak (model FLOPs utilisation)."""

import contextlib
import os
import time

from torch.utils.flop_counter import FlopCounterMode

PEAK = 60e9


class Throughput:
    def __init__(self):
        self.items = self.steps = 0
        self.began = None
        self.flops_per_step = None
        self.counter = FlopCounterMode(display=False)
        self.stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def running(self, model):
        """Counts the work of all that happens inside."""
        self.model = model
        self.began = time.time()
        with self.stack:
            self.stack.enter_context(self.counter)
            yield self

    def tick(self, items):
        self.items += items
        self.steps += 1
        self.flops_per_step = self.counter.get_total_flops() / self.steps if self.counter else self.flops_per_step
        if self.steps == 1 and os.environ.get("PLANTED_FIX") == "1":
            self.stack.close()
            self.counter = None

    @property
    def seconds(self):
        return time.time() - self.began

    def __str__(self):
        return f"{self.items / self.seconds:.0f}/s, {100 * self.flops_per_step * self.steps / self.seconds / PEAK:.1f}% of peak"
