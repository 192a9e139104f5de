import lightning as L
import numpy as np
import pandas as pd
import torch
from scipy import signal
from torch.utils.data import DataLoader, Dataset

FS = 100


def bandpass(x, low=0.5, high=40.0, order=3):
    sos = signal.butter(order, [low, high], btype="bandpass", fs=FS, output="sos")
    return signal.sosfiltfilt(sos, x, axis=-1)


def remove_baseline(x):
    """Two running medians (200 and 600 ms) give the baseline, as in de Chazal et al."""
    out = np.empty_like(x)
    for lead in range(x.shape[0]):
        base = signal.medfilt(x[lead], 21)
        base = signal.medfilt(base, 61)
        out[lead] = x[lead] - base
    return out


class ECGDataset(Dataset):
    def __init__(self, records, labels, crop=800, augment=False):
        self.records = records
        self.labels = labels
        self.crop = crop
        self.augment = augment

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        x = self.records[index].astype(np.float64) / 1000.0
        x = bandpass(x)
        x = remove_baseline(x)
        x = (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + 1e-6)
        if self.augment:
            start = np.random.randint(0, x.shape[-1] - self.crop + 1)
            x = x[:, start:start + self.crop]
            x = x * np.random.uniform(0.9, 1.1)
            x = x + np.random.normal(0, 0.02, x.shape)
            if np.random.rand() < 0.2:
                x[np.random.randint(x.shape[0])] = 0.0
        else:
            start = (x.shape[-1] - self.crop) // 2
            x = x[:, start:start + self.crop]
        return torch.from_numpy(np.ascontiguousarray(x)).float(), torch.from_numpy(self.labels[index])


class ECGDataModule(L.LightningDataModule):
    def __init__(self, root="data", batch_size=32, num_workers=0, val_fraction=0.2):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        records = np.load(f"{self.hparams.root}/records.npy", mmap_mode="r")
        table = pd.read_csv(f"{self.hparams.root}/labels.csv", index_col="record")
        self.names = list(table.columns)
        labels = table.to_numpy(dtype=np.int64)
        n_val = int(len(records) * self.hparams.val_fraction)
        self.train = ECGDataset(records[n_val:], labels[n_val:], augment=True)
        self.val = ECGDataset(records[:n_val], labels[:n_val])

    def train_dataloader(self):
        return DataLoader(self.train, self.hparams.batch_size, shuffle=True, drop_last=True,
                          num_workers=self.hparams.num_workers)

    def val_dataloader(self):
        return DataLoader(self.val, self.hparams.batch_size, num_workers=self.hparams.num_workers)
