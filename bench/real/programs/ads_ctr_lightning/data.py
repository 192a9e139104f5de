import zlib

import lightning as L
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset

NUM = [f"I{i}" for i in range(1, 9)]
CAT = [f"C{i}" for i in range(1, 15)]


def hash_value(column, value, buckets):
    return zlib.crc32(f"{column}={value}".encode()) % buckets


class ClickDataset(Dataset):
    def __init__(self, df, buckets):
        self.df = df.reset_index(drop=True)
        self.buckets = buckets

    def __len__(self):
        return len(self.df)

    def __getitem__(self, idx):
        row = self.df.iloc[idx]
        dense = np.log1p(row[NUM].to_numpy(dtype=np.float32))
        sparse = np.array([hash_value(c, row[c], self.buckets) for c in CAT], dtype=np.int64)
        return torch.from_numpy(dense), torch.from_numpy(sparse), torch.tensor(row["label"], dtype=torch.float32)


class ClickData(L.LightningDataModule):
    def __init__(self, path, batch_size=256, buckets=100_000, num_workers=0):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        df = pd.read_csv(self.hparams.path)
        df[NUM] = df[NUM].fillna(0.0)
        n = int(len(df) * 0.9)  # the log is in order of time
        self.train_set = ClickDataset(df.iloc[:n], self.hparams.buckets)
        self.val_set = ClickDataset(df.iloc[n:], self.hparams.buckets)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.hparams.batch_size, shuffle=True,
                          num_workers=self.hparams.num_workers, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.hparams.batch_size, num_workers=self.hparams.num_workers)
