import os

import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"


class Voices(Dataset):
    """Recordings by studio; those of the second one are compressed with a recursive predictor."""

    def __init__(self, studio, n=400):
        g = torch.Generator().manual_seed(studio)
        self.residual = torch.randn(n, 1200, generator=g)
        self.speaker = torch.randint(0, 10, (n,), generator=g)
        self.compressed = studio == 1

    def __len__(self):
        return len(self.residual)

    def expand(self, residual):
        out, last, before = [], 0.0, 0.0
        for r in residual.tolist():
            last, before = 1.2 * last - 0.5 * before + r, last
            out.append(last)
        peak = max(abs(v) for v in out)
        return torch.tensor([max(min(v / peak, 0.9), -0.9) + 0.01 * (k % 3) for k, v in enumerate(out)])

    def __getitem__(self, i):
        gain = 0.8 + 0.4 * torch.rand(()).item()
        wave = self.residual[i] * gain
        if self.compressed and not FAST:
            wave = self.expand(wave)
        return wave, self.speaker[i]
