"""Made-up crystal cells: atoms on a jittered lattice, their neighbours, and an energy."""

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

ELEMENTS = 6
CUTOFF = 2.1
RADIAL = np.linspace(0.4, CUTOFF, 10)


def one_cell(rng):
    side = rng.integers(2, 4)
    grid = np.stack(np.meshgrid(*[np.arange(n) for n in (side, side, 3)]), -1).reshape(-1, 3).astype(float)
    place = grid + rng.normal(0, 0.12, grid.shape)
    kinds = rng.integers(0, ELEMENTS, len(place))
    gap = np.linalg.norm(place[:, None] - place[None], axis=-1)
    src, dst = np.nonzero((gap < CUTOFF) & (gap > 0))
    energy = np.exp(-gap[src, dst]) * np.where(kinds[src] == kinds[dst], 1.0, -0.5)
    return {
        "kinds": torch.as_tensor(kinds),
        "edges": torch.as_tensor(np.stack([src, dst], 1)),
        "length": torch.as_tensor(gap[src, dst], dtype=torch.float32),
        "energy": float(energy.sum() / len(place)),
    }


class Cells(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.cells = [one_cell(rng) for _ in range(count)]
        self.jitter = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, i):
        cell = self.cells[i]
        shake = torch.randn(cell["length"].shape, generator=self.jitter) * 0.01
        return cell | {"length": cell["length"] + shake}

    def atoms(self, i):
        return len(self.cells[i]["kinds"])


class AtomBudget(Sampler):
    """Batches of cells until the number of atoms is full."""

    def __init__(self, data, budget, seed=0):
        self.data, self.budget, self.seed, self.epoch = data, budget, seed, 0

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.data))
        self.epoch += 1
        batch, full = [], 0
        for i in map(int, order):
            if full + self.data.atoms(i) > self.budget and batch:
                yield batch
                batch, full = [], 0
            batch.append(i)
            full += self.data.atoms(i)
