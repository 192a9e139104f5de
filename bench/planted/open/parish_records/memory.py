"""Keeps the process small: the registers fill half of the old laptop's memory."""

import gc
import os
import resource


class Housekeeper:
    def __init__(self):
        self.every = 500 if os.environ.get("PLANTED_FIX") == "1" else 12
        self.peak = 0

    def tidy(self, step):
        if step % self.every == 0:
            gc.collect()
            self.peak = max(self.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
