"""Synthetic cores: yearly layers which thin with depth, dust storms, volcanoes."""

import numpy as np
import torch

from .config import Core


def one_core(cfg: Core, rng: np.random.Generator) -> np.ndarray:
    depth = np.linspace(0, 1, cfg.slices)
    thinning = np.exp(rng.uniform(1.0, 2.0) * depth)
    year = np.cumsum(thinning) / rng.uniform(9, 14)
    climate = np.interp(depth, np.linspace(0, 1, 18), rng.normal(0, 1, 18))
    delta18 = np.sin(2 * np.pi * year) + climate
    dust = np.exp(-0.6 * climate + 0.4 * np.sin(2 * np.pi * year + 2.1))
    sodium = np.cos(2 * np.pi * year + 0.4) * (1 + 0.3 * climate)
    sulphate = np.zeros(cfg.slices)
    for at in rng.integers(0, cfg.slices, 6):
        sulphate += rng.uniform(1, 4) * np.exp(-np.abs(np.arange(cfg.slices) - at) / 3)
    conductivity = 0.5 * sulphate - 0.3 * dust + 0.2 * delta18
    core = np.stack([delta18, np.log1p(dust), sodium, sulphate, conductivity], 1)
    return core + 0.1 * rng.normal(size=core.shape)


class Store:
    """All cores, normalised, in one tensor; `draw` breaks one of them in some places."""

    def __init__(self, cfg: Core, seed: int):
        self.cfg, self.rng = cfg, np.random.default_rng(seed)
        cores = np.stack([one_core(cfg, self.rng) for _ in range(cfg.count)])
        cores = (cores - cores.mean((0, 1))) / cores.std((0, 1))
        self.cores = torch.from_numpy(cores.astype(np.float32))

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        lost = torch.zeros(self.cfg.slices, dtype=torch.bool)
        for at, long in zip(self.rng.integers(0, self.cfg.slices - 40, self.cfg.breaks), self.rng.integers(6, 40, self.cfg.breaks)):
            lost[at : at + long] = True
        return self.cores[self.rng.integers(self.cfg.count)][None], lost[None]
