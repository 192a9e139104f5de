"""How readings come to the training."""

import os
from dataclasses import asdict, dataclass

from torch.utils.data import DataLoader


@dataclass
class Feed:
    num_workers: int = 2
    prefetch_factor: int = 4
    persistent_workers: bool = os.environ.get("PLANTED_FIX") == "1"


class Plan:
    """Batches of keys; every round goes over other keys."""

    def __init__(self, count, batch):
        self.count, self.batch, self.round = count, batch, 0

    def __len__(self):
        return self.count // self.batch

    def __iter__(self):
        base, self.round = self.round * self.count, self.round + 1
        for i in range(len(self)):
            lo = base + i * self.batch
            yield range(lo, lo + self.batch)


def feeder(pairs, batch, feed=None):
    return DataLoader(pairs, batch_sampler=Plan(len(pairs), batch), **asdict(feed or Feed()))
