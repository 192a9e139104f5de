"""Synthetic lake: air, wind and sun drive the water with inertia; 20 days, hour by hour."""

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

HOURS = 480


class LakeData(L.LightningDataModule):
    inputs = 6

    def __init__(self, batch_size, lakes=160, seed=4):
        super().__init__()
        self.batch_size = batch_size
        rng = np.random.default_rng(seed)
        hour = np.arange(HOURS + 1)
        sun = np.clip(np.sin(2 * np.pi * (hour - 6) / 24), 0, None) * rng.uniform(0.3, 1, (lakes, 1))
        weather = np.cumsum(rng.normal(0, 0.12, (lakes, HOURS + 1)), 1)
        air = weather + 0.8 * sun
        wind = np.abs(rng.normal(0, 1, (lakes, HOURS + 1)))
        depth = rng.uniform(0.02, 0.2, lakes)
        water = np.zeros((lakes, HOURS + 1))
        for t in range(1, HOURS + 1):
            water[:, t] = water[:, t - 1] + depth * (air[:, t - 1] - water[:, t - 1]) * (1 + 0.3 * wind[:, t - 1])
        water = water + rng.normal(0, 0.03, water.shape)
        day = 2 * np.pi * hour / 24
        clock = np.broadcast_to(np.stack([np.sin(day), np.cos(day)], -1), (lakes, HOURS + 1, 2))
        x = np.concatenate([np.stack([air, wind, sun, water], -1), clock], -1)
        self.x = torch.from_numpy(x[:, :-1].astype(np.float32))
        self.y = torch.from_numpy(water[:, 1:].astype(np.float32))

    def train_dataloader(self):
        generator = torch.Generator().manual_seed(6)
        return DataLoader(TensorDataset(self.x, self.y), batch_size=self.batch_size, shuffle=True, drop_last=True, generator=generator)
