"""Synthetic three-axis vibration records of pumps, each with any of five faults."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split

FAULTS = ["imbalance", "misalignment", "bearing", "cavitation", "looseness"]


def synthesize(records, length, channels, snr, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(length) / 512.0
    labels = (rng.random((records, len(FAULTS))) < [0.3, 0.25, 0.2, 0.15, 0.2]).astype(np.float32)
    signals = rng.normal(0, 1, (records, channels, length))
    for i, y in enumerate(labels):
        f = rng.uniform(22, 30)
        gain = rng.uniform(0.5, 1.5, (channels, 1))
        wave = 0.3 * np.sin(2 * np.pi * f * t + rng.uniform(0, 6))
        if y[0]:
            wave = wave + np.sin(2 * np.pi * f * t)
        if y[1]:
            wave = wave + 0.8 * np.sin(4 * np.pi * f * t + 1)
        if y[2]:
            hits = (np.floor(t * f * 3.6) != np.floor((t - 1 / 512) * f * 3.6)).astype(float)
            wave = wave + 3 * np.convolve(hits, np.exp(-np.arange(20) / 5) * np.cos(np.arange(20)))[:length]
        if y[3]:
            wave = wave + rng.normal(0, 1, length) * (np.sin(2 * np.pi * 4 * t) > 0.5)
        if y[4]:
            wave = wave + 0.6 * np.sign(np.sin(np.pi * f * t))
        signals[i] += wave * gain * snr
    return signals.astype(np.float32), labels


class VibrationDataset(Dataset):
    def __init__(self, signals, labels):
        self.signals = torch.from_numpy(signals)
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        x = self.signals[index]
        x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
        return x, self.labels[index]


class TrainView(Dataset):
    """Random shift in time and gain, only for training."""

    def __init__(self, subset, max_shift=32):
        self.subset, self.max_shift = subset, max_shift

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, index):
        x, y = self.subset[index]
        shift = int(torch.randint(-self.max_shift, self.max_shift + 1, (1,)))
        x = torch.roll(x, shift, dims=-1) * (0.9 + 0.2 * torch.rand(1))
        return x, y


def build_loaders(cfg, seed):
    signals, labels = synthesize(cfg["records"], cfg["length"], cfg["channels"], cfg["snr"], seed)
    dataset = VibrationDataset(signals, labels)
    n_val = int(len(dataset) * cfg["val_fraction"])
    train, val = random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(seed))
    train_loader = DataLoader(TrainView(train), cfg["batch_size"], shuffle=True, num_workers=cfg["num_workers"], drop_last=True)
    val_loader = DataLoader(val, 4 * cfg["batch_size"], num_workers=cfg["num_workers"])
    pos = labels[train.indices].mean(0)
    return train_loader, val_loader, torch.from_numpy((1 - pos) / pos)
