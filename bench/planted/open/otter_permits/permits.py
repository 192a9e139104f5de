"""Building permits as bags of codes in order; the label is the office that handles them."""

import numpy as np
import torch
from torch.utils.data import Dataset


class Permits(Dataset):
    def __init__(self, count: int, vocabulary: int, offices: int, seed: int):
        rng = np.random.default_rng(seed)
        favour = np.random.default_rng(7).dirichlet(np.full(vocabulary, 0.05), size=offices)
        self.offices = rng.integers(0, offices, size=count)
        self.rows = [rng.choice(vocabulary, size=int(rng.integers(20, 33)), p=favour[o]) for o in self.offices]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"codes": torch.from_numpy(row), "labels": int(self.offices[index])}


class JoinPermits:
    """Pads to the longest of the batch; the mask is kept."""

    def __call__(self, items):
        width = max(len(item["codes"]) for item in items)
        codes = torch.zeros(len(items), width, dtype=torch.long)
        mask = torch.zeros(len(items), width)
        for i, item in enumerate(items):
            codes[i, : len(item["codes"])] = item["codes"]
            mask[i, : len(item["codes"])] = 1
        return {"codes": codes, "mask": mask, "labels": torch.tensor([item["labels"] for item in items])}
