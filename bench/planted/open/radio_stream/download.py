import os
import queue
import threading
import time

import numpy as np

MEGABYTES_PER_SECOND = 400.0 if os.environ.get("PLANTED_FIX") == "1" else 0.45


class Downloader(threading.Thread):
    """Keeps a few recordings ready; the line gives what it gives."""

    def __init__(self, seed, samples, ahead=4):
        super().__init__(daemon=True)
        self.rng, self.samples = np.random.default_rng(seed), samples
        self.ready = queue.Queue(maxsize=ahead)

    def run(self):
        while True:
            block = self.rng.standard_normal(self.samples, dtype=np.float32)
            self.transfer(block.nbytes)
            self.ready.put(block)

    def transfer(self, count):
        chunk = 16384
        for _ in range(0, count, chunk):
            time.sleep(chunk / MEGABYTES_PER_SECOND / 1e6)

    def next_block(self):
        return self.ready.get()
