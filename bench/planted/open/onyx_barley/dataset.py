import numpy as np
import torch
from torch.utils.data import Dataset

from synth import season


class Spectra(Dataset):
    """Spectra with the usual light augmentation: offset, slope and a standard normal variate."""

    def __init__(self, seasons: int, samples: int) -> None:
        parts = [season(i, samples) for i in range(seasons)]
        self.x = np.concatenate([x for x, _ in parts])
        self.y = np.concatenate([y for _, y in parts])
        self.axis = np.linspace(-1, 1, self.x.shape[1], dtype=np.float32)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = np.random.default_rng(i)
        x = self.x[i] * rng.uniform(0.9, 1.1) + rng.normal(0, 0.05) + rng.normal(0, 0.05) * self.axis
        smooth = np.convolve(x, np.ones(5) / 5, mode="same")
        x = (smooth - smooth.mean()) / (smooth.std() + 1e-6)
        return torch.from_numpy(x.astype(np.float32)), torch.tensor(self.y[i])
