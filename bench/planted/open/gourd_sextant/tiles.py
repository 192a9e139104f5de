"""Reflectance of glazed test tiles: each oxide adds bands, the firing shifts them."""

import numpy as np
import torch


def fire(tiles, bands, oxides, seed):
    rng = np.random.default_rng(seed)
    place, breadth = rng.uniform(0, 1, oxides), rng.uniform(0.02, 0.12, oxides)
    wave = np.linspace(0, 1, bands)
    share = rng.dirichlet(np.ones(oxides) * 0.5, tiles)
    heat = rng.normal(0, 0.02, (tiles, 1))
    spectra = np.zeros((tiles, bands))
    for oxide in range(oxides):
        spectra += share[:, oxide : oxide + 1] * np.exp(-(((wave - place[oxide] - heat) / breadth[oxide]) ** 2))
    spectra += rng.normal(0, 0.01, spectra.shape)
    spectra = (spectra - spectra.mean(0)) / (spectra.std(0) + 1e-6)
    return torch.from_numpy(spectra.astype(np.float32))


def epochs(spectra, batch, generator):
    """Endless: the batches of one epoch after the other."""
    while True:
        order = torch.randperm(len(spectra), generator=generator)
        yield [spectra[rows] for rows in order.split(batch) if len(rows) == batch]
