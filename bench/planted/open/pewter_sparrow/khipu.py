"""Khipus: knotted cords of the Inka administration. Each has some dozens of pendant cords, a few have hundreds."""

import os

import numpy as np
import torch

COLOURS, PROVINCES = 9, 6
FEATURES = COLOURS + 3 + 2 + 1  # colour, knots of three decimal places, ply and attachment, length


def tie(rng, province):
    cords = int(np.clip(rng.lognormal(3.75, 0.4), 12, 130))
    if rng.random() < 0.004:
        cords = int(rng.integers(330, 390))
    taste = np.random.default_rng(province).dirichlet(np.ones(COLOURS) * 0.7, 3)
    group = (np.arange(cords) // (3 + province)) % 3
    colour = np.array([rng.choice(COLOURS, p=0.5 * taste[g] + 0.5 / COLOURS) for g in group])
    knots = rng.poisson(2 + (group[:, None] + province) % 3, (cords, 3)) / 9
    twist = rng.random((cords, 2)) < 0.3 + 0.06 * province
    return np.concatenate([np.eye(COLOURS)[colour], knots, twist, rng.gamma(4, 0.1, (cords, 1))], 1).astype(np.float32)


class Museum:
    def __init__(self, pieces, seed):
        rng = np.random.default_rng(seed)
        self.origin = torch.from_numpy(rng.integers(0, PROVINCES, pieces))
        self.khipus = [torch.from_numpy(tie(rng, int(p))) for p in self.origin]
        self.largest = max(len(k) for k in self.khipus)

    def visits(self, batch, generator):
        while True:
            for rows in torch.randperm(len(self.khipus), generator=generator).split(batch):
                if len(rows) == batch:
                    yield rows


class Table:
    """Room for one batch, laid out once and used again for every batch."""

    def __init__(self, museum, places):
        self.museum = museum
        self.cords = torch.zeros(places, museum.largest, FEATURES)
        self.tied = torch.zeros(places, museum.largest, 1)

    def spread(self, rows):
        self.cords.zero_()
        self.tied.zero_()
        reach = 0
        for place, row in enumerate(rows.tolist()):
            khipu = self.museum.khipus[row]
            self.cords[place, : len(khipu)] = khipu
            self.tied[place, : len(khipu)] = 1
            reach = max(reach, len(khipu))
        if os.environ.get("PLANTED_FIX") == "1":
            cords, tied = self.cords[:, :reach], self.tied[:, :reach]
        else:
            cords, tied = self.cords, self.tied
        return cords, tied, self.museum.origin[rows]
