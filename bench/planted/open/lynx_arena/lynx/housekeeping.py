import gc
import os
import resource


class Housekeeping:
    """Small duties between updates."""

    def __init__(self, every=1):
        self.every = 500 if os.environ.get("PLANTED_FIX") == "1" else every
        self.peak = 0

    def after_update(self, number):
        self.peak = max(self.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        if number % self.every == 0:
            gc.collect()
