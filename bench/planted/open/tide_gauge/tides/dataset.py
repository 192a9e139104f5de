import numpy as np
import torch
from torch.utils.data import Dataset

from .clean import despike, standardise


class TideWindows(Dataset):
    """Windows of `past` hours with the next `future` hours as target."""

    def __init__(self, series: list[np.ndarray], past: int = 336, future: int = 24, stride: int = 7):
        self.series, self.past, self.future = series, past, future
        self.starts = [(h, s) for h, one in enumerate(series) for s in range(0, len(one) - past - future, stride)]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int):
        harbour, start = self.starts[index]
        piece = self.series[harbour][start : start + self.past + self.future]
        piece = standardise(despike(piece))
        x = torch.as_tensor(piece[: self.past], dtype=torch.float32)
        y = torch.as_tensor(piece[self.past :], dtype=torch.float32)
        return x, y
