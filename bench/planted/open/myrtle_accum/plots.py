"""Forest plots: spectra of leaves over a season, and the species' share on the plot."""

import numpy as np
import torch
from torch.utils.data import Dataset

BANDS, DATES, SPECIES = 12, 24, 7


class Plots(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        share = rng.dirichlet(np.full(SPECIES, 0.5), count)
        curve = np.random.default_rng(0).normal(0, 1, (SPECIES, BANDS, DATES)).cumsum(-1) * 0.3
        cover = np.einsum("ns,sbd->nbd", share, curve) + rng.normal(0, 0.2, (count, BANDS, DATES))
        self.x, self.y = torch.tensor(cover, dtype=torch.float32), torch.tensor(share, dtype=torch.float32)
        self.clouds = torch.tensor(rng.random((count, DATES)) < 0.2)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i].clone()
        x[:, self.clouds[i]] = 0.0
        return {"series": x, "share": self.y[i]}
