"""Made-up views of a river delta: water, silt, reed and sand."""

import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES = ("water", "silt", "reed", "sand")
CHANNELS = 5


def _smooth(rng: np.random.Generator, size: int, coarse: int) -> np.ndarray:
    """Noise on a coarse grid, blown up with straight lines in between."""
    grid = rng.standard_normal((coarse, coarse))
    at = np.linspace(0, coarse - 1.001, size)
    low, part = at.astype(int), at % 1
    rows = grid[low] * (1 - part)[:, None] + grid[low + 1] * part[:, None]
    return rows[:, low] * (1 - part) + rows[:, low + 1] * part


class Scenes(Dataset):
    def __init__(self, count: int, size: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        spectra = rng.normal(0.0, 1.0, (len(CLASSES), CHANNELS)).astype(np.float32)
        self.views, self.masks = [], []
        for _ in range(count):
            height = _smooth(rng, size, 7) + 0.4 * _smooth(rng, size, 17)
            mask = np.digitize(height, np.quantile(height, (0.35, 0.6, 0.85)))
            view = spectra[mask] + rng.normal(0.0, 0.7, (size, size, CHANNELS)).astype(np.float32)
            self.views.append(torch.from_numpy(view.transpose(2, 0, 1).astype(np.float32)))
            self.masks.append(torch.from_numpy(mask))

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.views[index], "labels": self.masks[index]}
