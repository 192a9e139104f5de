"""Photographs of lichen on gravestones, one quadrat each; the camera was never held quite straight."""

import numpy as np
from torch.utils.data import Dataset

from lens import Wobble

SIDE, SPECIES = 72, 7


def thalli(rng, species):
    """A quadrat: a few round thalli of one main species on granite."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    picture = 0.4 + 0.12 * rng.normal(size=(3, SIDE, SIDE))
    tint = np.random.default_rng(species).uniform(0, 1, 3)
    lobes = 3 + species
    for _ in range(rng.integers(2, 6)):
        cy, cx, r = rng.uniform(8, SIDE - 8, 2).tolist() + [rng.uniform(6, 16)]
        angle = np.arctan2(y - cy, x - cx)
        inside = np.hypot(y - cy, x - cx) < r * (1 + 0.2 * np.sin(lobes * angle + rng.uniform(0, 6)))
        picture = np.where(inside, 0.5 * picture + 0.5 * tint[:, None, None], picture)
    return picture.astype(np.float32)


class Quadrats(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.species = rng.integers(0, SPECIES, count)
        self.pictures = np.stack([thalli(rng, s) for s in self.species])
        self.wobble, self.seed, self.turn = Wobble(SIDE), seed, 0

    def __len__(self):
        return len(self.species)

    def __getitem__(self, visit):
        at, turn = visit
        rng = np.random.default_rng((self.seed, at, turn))
        return self.wobble(self.pictures[at], rng), self.species[at]


class Visits:
    """Batches of (quadrat, visit), for as many visits as are asked for."""

    def __init__(self, count, batch, steps, seed):
        self.count, self.batch, self.steps = count, batch, steps
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.steps

    def __iter__(self):
        for turn in range(self.steps):
            yield [(int(at), turn) for at in self.rng.integers(0, self.count, self.batch)]
