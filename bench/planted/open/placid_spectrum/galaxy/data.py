"""Toy galaxy cut-outs in three bands. Kind: elliptical, spiral, edge-on disc, merger."""

import numpy as np
import torch
from torch.utils.data import Dataset

KINDS = ["elliptical", "spiral", "edge-on", "merger"]


def render(kind, z, q, phi, size, rng):
    g = np.linspace(-1, 1, size)
    x, y = np.meshgrid(g, g)
    xr = x * np.cos(phi) + y * np.sin(phi)
    yr = -x * np.sin(phi) + y * np.cos(phi)
    r = np.sqrt(xr**2 + (yr / q) ** 2)
    scale = 0.35 / (1 + z)
    img = np.exp(-r / scale)
    if kind == 1:
        arms = np.cos(2 * np.arctan2(yr / q, xr) - 9 * r)
        img = img * (1 + 0.7 * arms)
    elif kind == 3:
        dx, dy = rng.uniform(-0.4, 0.4, 2)
        img = img + 0.8 * np.exp(-np.hypot(x - dx, y - dy) / (0.6 * scale))
    colour = np.array([np.exp(-1.2 * z), 1.0, np.exp(0.6 * z)])
    return colour[:, None, None] * img


class Galaxies(Dataset):
    """Everything is rendered once; the noise of an exposure is drawn anew at every access."""

    def __init__(self, n, size, seed, noise=0.05, augment=True):
        rng = np.random.default_rng(seed)
        self.rng = np.random.default_rng(seed + 1)
        self.noise, self.augment = noise, augment
        self.kind = rng.integers(0, 4, n)
        self.z = rng.uniform(0, 1.2, n).astype(np.float32)
        q = np.where(self.kind == 2, rng.uniform(0.15, 0.3, n), rng.uniform(0.5, 1.0, n))
        phi = rng.uniform(0, np.pi, n)
        self.images = np.stack([render(self.kind[i], self.z[i], q[i], phi[i], size, rng) for i in range(n)]).astype(np.float32)
        e = (1 - q) / (1 + q)
        self.shape = np.stack([e * np.cos(2 * phi), e * np.sin(2 * phi)], axis=1).astype(np.float32)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        img, shape = self.images[i], self.shape[i]
        if self.augment and self.rng.random() < 0.5:
            img = img[:, :, ::-1]
            shape = shape * np.array([1, -1], dtype=np.float32)
        img = img + self.noise * self.rng.standard_normal(img.shape, dtype=np.float32)
        return {
            "image": torch.from_numpy(img),
            "kind": int(self.kind[i]),
            "redshift": self.z[i],
            "shape": torch.from_numpy(shape),
        }
