import os

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

DTYPE = np.float32 if os.environ.get("PLANTED_FIX") == "1" else np.float64


def loaders(spectra: np.ndarray, carbon: np.ndarray, batch: int, held: int = 200):
    x, y = torch.from_numpy(spectra.astype(DTYPE)), torch.from_numpy(carbon.astype(DTYPE))
    order = torch.Generator().manual_seed(1)
    train = DataLoader(TensorDataset(x[held:], y[held:]), batch, shuffle=True, generator=order, drop_last=True)
    return train, (x[:held], y[:held])
