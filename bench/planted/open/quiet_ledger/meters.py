"""Made-up electricity meters: a daily and a weekly rhythm, the weather, and some noise."""

from pathlib import Path

import numpy as np
import torch

HOURS = 24 * 7 * 20


def write(path: Path, meters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hours = np.arange(HOURS)
    weather = np.convolve(rng.standard_normal(HOURS + 47), np.ones(48) / 7, mode="valid")
    daily = np.sin(2 * np.pi * (hours[None] / 24 + rng.random((meters, 1))))
    weekly = np.sin(2 * np.pi * (hours[None] / 168 + rng.random((meters, 1))))
    load = 3 + daily + 0.5 * weekly + 0.3 * weather[None] * rng.random((meters, 1))
    np.save(path, (load + 0.1 * rng.standard_normal(load.shape)).astype(np.float32))


class Windows:
    """Random windows of one array in memory."""

    def __init__(self, path: Path, past: int, future: int, seed: int) -> None:
        load = torch.from_numpy(np.load(path))
        self.mean, self.spread = load.mean(dim=1, keepdim=True), load.std(dim=1, keepdim=True)
        self.views = ((load - self.mean) / self.spread).unfold(1, past + future, 1)
        self.past, self.border = past, int(self.views.shape[1] * 0.9)
        self.generator = torch.Generator().manual_seed(seed)

    def get_batch(self, size: int, split: str = "train") -> tuple[torch.Tensor, torch.Tensor]:
        low, high = (0, self.border) if split == "train" else (self.border, self.views.shape[1])
        meters = torch.randint(len(self.views), (size,), generator=self.generator)
        starts = torch.randint(low, high, (size,), generator=self.generator)
        windows = self.views[meters, starts]
        return windows[:, : self.past], windows[:, self.past :]
