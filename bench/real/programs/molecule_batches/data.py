import numpy as np
import torch
from torch.utils.data import Dataset

ELEMENTS = ["C", "N", "O", "F", "S", "Cl"]
WEIGHT = np.array([0.1, -0.7, -1.1, 0.5, 0.3, 0.6])


def random_molecule(rng):
    """A random tree with a few rings, and a solubility-like property of atoms and bonds."""
    n = int(rng.integers(8, 29))
    atoms = rng.choice(len(ELEMENTS), n, p=[0.62, 0.12, 0.13, 0.05, 0.05, 0.03])
    bonds = [(i, int(rng.integers(max(0, i - 4), i)), int(rng.choice(3, p=[0.75, 0.2, 0.05]))) for i in range(1, n)]
    for _ in range(int(rng.integers(0, 4))):
        a, b = rng.choice(n, 2, replace=False)
        bonds.append((int(a), int(b), 0))
    degree = np.zeros(n)
    value = WEIGHT[atoms].sum()
    for a, b, kind in bonds:
        degree[a] += 1
        degree[b] += 1
        value += 0.3 * (kind + 1) * WEIGHT[atoms[a]] * WEIGHT[atoms[b]]
    return atoms, bonds, float(value - 0.1 * (degree > 2).sum() + 0.1 * rng.normal())


class MoleculeDataset(Dataset):
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.molecules = [random_molecule(rng) for _ in range(size)]

    def __len__(self):
        return len(self.molecules)

    def __getitem__(self, index):
        atoms, bonds, value = self.molecules[index]
        n = len(atoms)
        adjacency = torch.zeros(3, n, n)
        degree = torch.zeros(n)
        for a, b, kind in bonds:
            adjacency[kind, a, b] = 1.0
            adjacency[kind, b, a] = 1.0
            degree[a] += 1
            degree[b] += 1
        features = torch.zeros(n, len(ELEMENTS) + 1)
        for i, element in enumerate(atoms):
            features[i, element] = 1.0
        features[:, -1] = degree / 4
        return features, adjacency, torch.tensor(value, dtype=torch.float32)


def collate(samples):
    longest = max(len(f) for f, _, _ in samples)
    width = samples[0][0].shape[1]
    features = torch.zeros(len(samples), longest, width)
    adjacency = torch.zeros(len(samples), 3, longest, longest)
    mask = torch.zeros(len(samples), longest)
    for i, (f, a, _) in enumerate(samples):
        n = len(f)
        features[i, :n] = f
        adjacency[i, :, :n, :n] = a
        mask[i, :n] = 1.0
    return features, adjacency, mask, torch.stack([y for _, _, y in samples])
