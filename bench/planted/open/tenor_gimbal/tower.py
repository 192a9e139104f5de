"""Rings a tower of bells and returns what a microphone in the street would hear, as band energies."""

import numpy as np
import torch

PARTIALS = np.array([0.5, 1.0, 1.2, 1.5, 2.0, 2.67])
WEIGHT = np.array([0.6, 1.0, 0.8, 0.4, 0.9, 0.3])


class Tower:
    def __init__(self, bells, bands, frames, batch, noise, seed):
        self.rng = np.random.default_rng(seed)
        base = 100 * 2 ** (np.arange(bells) / 12)
        place = (np.log2(np.outer(base, PARTIALS)) - 5.5) / 5 * bands
        shape = np.exp(-0.5 * (place[:, :, None] - np.arange(bands)) ** 2)
        self.colour = (shape * WEIGHT[None, :, None]).sum(1).astype(np.float32)
        self.decay = (0.86 + 0.12 * self.rng.random(bells)).astype(np.float32)
        self.bells, self.frames, self.batch, self.noise = bells, frames, batch, noise

    def ring(self):
        struck = (self.rng.random((self.batch, self.frames, self.bells)) < 0.015).astype(np.float32)
        loud = np.zeros_like(struck)
        level = np.zeros((self.batch, self.bells), np.float32)
        for t in range(self.frames):
            level = level * self.decay + struck[:, t]
            loud[:, t] = level
        heard = loud @ self.colour
        heard += self.noise * self.rng.standard_normal(heard.shape, dtype=np.float32)
        return torch.from_numpy(heard), torch.from_numpy(struck)
