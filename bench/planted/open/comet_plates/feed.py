import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch


class CutoutFeed:
    def __init__(self, share, size, batch, streams, seed):
        self.share, self.size, self.batch = share, size, batch
        self.names = share.listing()
        self.order = torch.Generator().manual_seed(seed)
        self.pool = ThreadPoolExecutor(streams)

    def cutout(self, name):
        pixels = np.frombuffer(self.share.read(name), dtype=np.float32)
        return pixels.reshape(1, self.size, self.size), float(name.endswith("_1.f32"))

    def load(self, names):
        found = list(self.pool.map(self.cutout, names) if os.environ.get("PLANTED_FIX") == "1" else map(self.cutout, names))
        images, comet = zip(*found)
        return torch.from_numpy(np.stack(images)), torch.tensor(comet)

    def __iter__(self):
        while True:
            shuffled = torch.randperm(len(self.names), generator=self.order).tolist()
            for first in range(0, len(shuffled) - self.batch + 1, self.batch):
                yield self.load([self.names[i] for i in shuffled[first : first + self.batch]])
