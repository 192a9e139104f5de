"""Logged glider flights, sampled once a second: climb, speed, bank, heading rate, pressure, sun."""

import numpy as np
import torch


class FlightBank:
    def __init__(self, flights: int, seconds: int, channels: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        drift = rng.standard_normal((flights, seconds, channels), dtype=np.float32).cumsum(axis=1)
        self.signals = drift / (1 + np.abs(drift).max(axis=1, keepdims=True))
        self.rng = np.random.default_rng(seed + 1)

    def draw(self, batch: int, past: int, ahead: int) -> tuple[torch.Tensor, torch.Tensor]:
        flights = self.rng.integers(len(self.signals), size=batch)
        starts = self.rng.integers(self.signals.shape[1] - past - ahead, size=batch)
        cut = self.signals[flights[:, None], starts[:, None] + np.arange(past + ahead)]
        cut = torch.from_numpy(cut)
        return cut[:, :past], cut[:, past:].mean(1) - cut[:, past - 1]
