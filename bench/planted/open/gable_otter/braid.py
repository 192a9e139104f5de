"""Random braid words and the number of components of the link that their closure makes."""

import numpy as np
import torch


def words(count, strands, crossings, seed):
    rng = np.random.default_rng(seed)
    signed = rng.integers(1, strands, (count, crossings)) * rng.choice([-1, 1], (count, crossings))
    return signed


def components(signed, strands):
    count = len(signed)
    rows = np.arange(count)
    ends = np.tile(np.arange(strands), (count, 1))
    for left in np.abs(signed).T - 1:
        ends[rows, left], ends[rows, left + 1] = ends[rows, left + 1], ends[rows, left].copy()
    smallest, walk = np.tile(np.arange(strands), (count, 1)), ends.copy()
    for _ in range(strands):
        smallest = np.minimum(smallest, walk)
        walk = np.take_along_axis(ends, walk, 1)
    return (smallest == np.arange(strands)).sum(1)


class Closure:
    def __init__(self, count, strands, crossings, seed):
        signed = words(count, strands, crossings, seed)
        self.tokens = torch.from_numpy(np.where(signed > 0, signed, strands - 1 - signed) - 1)
        self.labels = torch.from_numpy(components(signed, strands) - 1)

    def draw(self, batch, gen):
        rows = torch.randint(len(self.tokens), (batch,), generator=gen)
        return self.tokens[rows], self.labels[rows]
