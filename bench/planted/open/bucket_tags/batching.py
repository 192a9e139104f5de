import os

import numpy as np
from torch.utils.data import Sampler

ONCE = os.environ.get("PLANTED_FIX") == "1"


def editing_order(lengths, pool):
    """Neighbours in the order should be alike in length."""
    if ONCE:
        return pool[np.argsort(lengths[pool], kind="stable")]
    left = dict(zip(pool.tolist(), lengths[pool].tolist()))
    order = [pool[0].item()]
    width = left.pop(order[0])
    while left:
        nearest = min(left, key=lambda i: abs(left[i] - width))
        width = left.pop(nearest)
        order.append(nearest)
    return np.array(order)


class PooledBatches(Sampler):
    def __init__(self, lengths, batch=32, pool=100):
        self.lengths, self.batch, self.pool = lengths, batch, pool
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return len(self.lengths) // self.batch

    def __iter__(self):
        size = self.batch * self.pool
        shuffled = self.rng.permutation(len(self.lengths))
        for first in range(0, len(shuffled) - size + 1, size):
            order = editing_order(self.lengths, shuffled[first : first + size])
            for row in self.rng.permutation(self.pool):
                yield order[row * self.batch : (row + 1) * self.batch].tolist()
