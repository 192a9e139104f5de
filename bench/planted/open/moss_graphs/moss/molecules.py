from dataclasses import dataclass

import numpy as np


@dataclass
class Molecule:
    atoms: np.ndarray
    bonds: np.ndarray
    lengths: np.ndarray
    energy: float


def grow(rng, kinds=8):
    n = int(rng.integers(30, 60))
    place = rng.standard_normal((n, 3)) * n ** (1 / 3)
    gap = np.linalg.norm(place[:, None] - place[None], axis=-1)
    np.fill_diagonal(gap, np.inf)
    near = np.argsort(gap, axis=1)[:, :10]
    source = np.repeat(np.arange(n), 10)
    bonds = np.stack([source, near.ravel()], axis=1)
    lengths = gap[bonds[:, 0], bonds[:, 1]].astype(np.float32)
    atoms = rng.integers(0, kinds, n)
    energy = float(((atoms[bonds[:, 0]] - atoms[bonds[:, 1]]) * np.exp(-lengths)).sum() / n + atoms.mean())
    return Molecule(atoms, bonds, lengths, energy)


def library(count, seed):
    rng = np.random.default_rng(seed)
    return [grow(rng) for _ in range(count)]
