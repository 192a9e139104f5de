import torch
from batching import FEATS
from torch.utils.data import Dataset


class Molecules(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            atoms = int(torch.randint(8, 22, (1,), generator=g))
            x = torch.randn(atoms, FEATS, generator=g)
            chain = torch.stack([torch.arange(atoms - 1), torch.arange(1, atoms)], 1)
            ring = torch.randint(0, atoms, (atoms // 5, 2), generator=g)
            self.items.append({"atoms": x, "bonds": torch.cat([chain, ring]), "solubility": x[:, :3].sum() / atoms})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]
