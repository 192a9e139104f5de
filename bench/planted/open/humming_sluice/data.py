"""Hourly load of a district heating network: daily and weekly cycles, weather, holidays, noise."""

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_series(n_stations, hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    hour, week = 2 * np.pi * t / 24, 2 * np.pi * t / 168
    weather = np.zeros((n_stations, hours))
    noise = rng.normal(size=(n_stations, hours))
    for i in range(1, hours):
        weather[:, i] = 0.98 * weather[:, i - 1] + 0.2 * noise[:, i]
    phase = rng.uniform(0, 1, (n_stations, 1))
    load = np.sin(hour + phase) + 0.4 * np.sin(2 * hour) + 0.5 * np.cos(week) - 0.6 * weather
    load += 0.15 * rng.normal(size=load.shape)
    calendar = np.stack([np.sin(hour), np.cos(hour), np.sin(week), np.cos(week)])
    calendar = np.broadcast_to(calendar, (n_stations, 4, hours))
    return np.concatenate([load[:, None], weather[:, None], calendar], axis=1).astype(np.float32)


class HeatData(L.LightningDataModule):
    def __init__(self, past=96, horizon=12, batch_size=128, seed=1):
        super().__init__()
        self.save_hyperparameters()

    def windows(self, series, stride):
        w = torch.from_numpy(series).unfold(2, self.hparams.past + self.hparams.horizon, stride)
        w = w.permute(0, 2, 3, 1).reshape(-1, self.hparams.past + self.hparams.horizon, series.shape[1]).contiguous()
        return TensorDataset(w[:, : self.hparams.past], w[:, self.hparams.past :])

    def setup(self, stage=None):
        series = make_series(12, 3000, self.hparams.seed)
        self.train_set = self.windows(series[:, :, :2500], stride=2)
        self.valid_set = self.windows(series[:, :, 2500:], stride=12)

    def train_dataloader(self):
        return DataLoader(self.train_set, self.hparams.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.valid_set, 128)
