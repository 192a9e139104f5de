"""Random molecule-like graphs (trees with a few ring closures) and a size-extensive target."""

import os

import numpy as np
import torch

FIX = os.environ.get("PLANTED_FIX") == "1"


def grow_molecule(rng, n, cfg):
    elements = rng.choice(cfg["n_elements"], size=n, p=ELEMENT_P[: cfg["n_elements"]] / ELEMENT_P[: cfg["n_elements"]].sum())
    bonds = np.zeros((n, n), dtype=np.int64)
    degree = np.zeros(n, dtype=np.int64)
    for i in range(1, n):
        free = np.flatnonzero(degree[:i] < 3)
        j = rng.choice(free[-6:]) if len(free) else i - 1
        bonds[i, j] = bonds[j, i] = rng.integers(1, 3) if rng.random() < 0.3 else 1
        degree[i] += 1
        degree[j] += 1
    for _ in range(rng.integers(0, 3)):
        if n > 6:
            i = rng.integers(0, n - 5)
            j = i + 5
            if bonds[i, j] == 0:
                bonds[i, j] = bonds[j, i] = 3
    return elements, bonds


ELEMENT_P = np.array([50, 15, 14, 6, 4, 3, 3, 3, 2], dtype=np.float64)


def target(elements, bonds):
    en = np.array([2.55, 3.04, 3.44, 2.58, 3.16, 3.98, 2.96, 2.19, 1.9])[elements]
    i, j = np.nonzero(np.triu(bonds))
    polar = np.abs(en[i] - en[j]).sum()
    rings = (bonds == 3).sum() / 2
    return 0.4 * polar - 0.5 * rings + 0.05 * len(elements) + 0.3 * (bonds == 2).sum() / 2


def make_set(n_mol, cfg, rng):
    mols = []
    for _ in range(n_mol):
        n = int(np.clip(rng.lognormal(np.log(cfg["mean_atoms"]), 0.25), 4, 30))
        if rng.random() < 0.002:
            n = int(rng.integers(60, 91))
        e, b = grow_molecule(rng, n, cfg)
        mols.append((torch.from_numpy(e), torch.from_numpy(b), float(target(e, b))))
    return mols


class Collator:
    def __init__(self, max_atoms):
        self.max_atoms = max_atoms

    def __call__(self, mols):
        size = max(len(e) for e, _, _ in mols) if FIX else self.max_atoms
        atoms = torch.zeros(len(mols), size, dtype=torch.long)
        bonds = torch.zeros(len(mols), size, size, dtype=torch.long)
        mask = torch.zeros(len(mols), size)
        for k, (e, b, _) in enumerate(mols):
            n = len(e)
            atoms[k, :n] = e
            bonds[k, :n, :n] = b
            mask[k, :n] = 1.0
        y = torch.tensor([t for _, _, t in mols], dtype=torch.float32)
        return atoms, bonds, mask, y
