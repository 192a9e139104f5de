"""Wrist-sensor gestures: windows of 128 samples with 6 channels (accelerometer, gyroscope), 12 classes."""
import os

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

N_CLASSES, LENGTH, CHANNELS = 12, 128, 6


def synthesize(n=4000, seed=3):
    rng = np.random.default_rng(seed)
    freq = rng.uniform(0.5, 6, (N_CLASSES, CHANNELS, 3))
    amp = rng.normal(0, 1, (N_CLASSES, CHANNELS, 3))
    phase = rng.uniform(0, 2 * np.pi, (N_CLASSES, CHANNELS, 3))
    y = rng.integers(0, N_CLASSES, n)
    t = np.linspace(0, 1, LENGTH)
    x = np.empty((n, LENGTH, CHANNELS), dtype=np.float32)
    for i, c in enumerate(y):
        speed, shift = rng.uniform(0.8, 1.25), rng.uniform(0, 0.15)
        wave = np.sin(2 * np.pi * freq[c][..., None] * (speed * t + shift) + phase[c][..., None])
        x[i] = (amp[c][..., None] * rng.normal(1, 0.25, (CHANNELS, 3, 1)) * wave).sum(1).T
    x += rng.normal(0, 2.4, x.shape)
    return x, y


def load(path="data/gestures.npz"):
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        x, y = synthesize()
        np.savez_compressed(path, x=x.astype(np.float16), y=y)
    archive = np.load(path)
    x = torch.from_numpy(archive["x"].astype(np.float32))
    y = torch.from_numpy(archive["y"])
    n_train = int(0.8 * len(x))
    mean, std = x[:n_train].mean((0, 1)), x[:n_train].std((0, 1))
    x = (x - mean) / std
    return TensorDataset(x[:n_train], y[:n_train]), TensorDataset(x[n_train:], y[n_train:])


def loaders(batch_size):
    train, test = load()
    return (DataLoader(train, batch_size=batch_size, shuffle=True, drop_last=True),
            DataLoader(test, batch_size=256))
