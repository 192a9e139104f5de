import subprocess
import sys

import numpy as np
import torch

from wire import Line


class Drawings:
    """Batches of sherd profiles from the store, in a new order each round."""

    def __init__(self, store, batch):
        words = [store["sherds"], store["points"], store["seed"]]
        self.keeper = subprocess.Popen([sys.executable, "store.py", *words], stdout=subprocess.PIPE, text=True)
        self.line = Line.to(int(self.keeper.stdout.readline()))
        self.count, self.points = np.frombuffer(self.line.ask(b"size"), np.int64)
        self.batch, self.rng = batch, np.random.default_rng(5)

    def __iter__(self):
        while True:
            order = self.rng.permutation(self.count)
            for at in range(0, len(order) - self.batch + 1, self.batch):
                body = self.line.ask(b"draw", order[at : at + self.batch].tobytes())
                yield torch.frombuffer(bytearray(body), dtype=torch.float32).view(self.batch, self.points)

    def close(self):
        self.line.close()
        self.keeper.wait(5)
