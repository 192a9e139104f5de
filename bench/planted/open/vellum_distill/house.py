"""Housekeeping between steps."""

import gc
import os
import resource


class Housekeeper:
    def __init__(self, every=15):
        self.every, self.peak = every, 0
        self.sweeps = os.environ.get("PLANTED_FIX") != "2"

    def tidy(self, step):
        if step % self.every == 0:
            self.peak = max(self.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            if self.sweeps:
                gc.collect()
