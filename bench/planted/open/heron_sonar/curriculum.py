"""Which pings an epoch sees: hard ones come up more often."""

import numpy as np
from torch.utils.data import Sampler


class Curriculum(Sampler):
    def __init__(self, count: int, subset: int, seed: int):
        self.difficulty = np.ones(count)
        self.subset = subset
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int):
        self.epoch = epoch

    def __len__(self):
        return self.subset

    def __iter__(self):
        rng = np.random.default_rng((self.seed, self.epoch))
        chance = self.difficulty / self.difficulty.sum()
        picked = rng.choice(len(chance), size=self.subset, replace=False, p=chance)
        yield from picked.tolist()

    def harden(self, factor: float):
        rng = np.random.default_rng((self.seed, self.epoch, 1))
        self.difficulty[rng.integers(0, len(self.difficulty), size=200)] *= factor
