"""Reflectance of ripening cheese rinds: bands in, mould and moisture traits out."""

import numpy as np
import torch


def age(wheels, bands, traits, seed):
    rng = np.random.default_rng(seed)
    axis = np.linspace(0, 1, bands)
    centres, widths = rng.uniform(0, 1, 20), rng.uniform(0.02, 0.12, 20)
    pigments = np.exp(-0.5 * ((axis[None] - centres[:, None]) / widths[:, None]) ** 2)
    amount = rng.gamma(1.5, 0.4, (wheels, 20))
    spectra = np.exp(-amount @ pigments) + rng.normal(0, 0.01, (wheels, bands))
    mix = rng.normal(0, 0.5, (20, traits))
    answer = np.tanh(amount @ mix) + rng.normal(0, 0.05, (wheels, traits))
    spectra = (spectra - spectra.mean(0)) / spectra.std(0)
    return torch.tensor(spectra, dtype=torch.float32), torch.tensor(answer, dtype=torch.float32)


class Shelf:
    """Wheels in a new order each round, a fixed number at a time."""

    def __init__(self, spectra, answer, rows, seed):
        self.spectra, self.answer, self.rows = spectra, answer, rows
        self.dice = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            order = torch.randperm(len(self.spectra), generator=self.dice)
            for pick in order.split(self.rows):
                if len(pick) == self.rows:
                    yield self.spectra[pick], self.answer[pick]
