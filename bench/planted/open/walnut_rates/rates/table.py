"""A motor insurance book: numeric features of policies, and the claims rate."""

import numpy as np
import torch
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import QuantileTransformer
from torch import Tensor


def make_book(policies: int, features: int, seed: int) -> tuple[Tensor, Tensor]:
    x, y = make_friedman1(policies, n_features=features, noise=0.5, random_state=seed)
    x = QuantileTransformer(n_quantiles=200, random_state=seed).fit_transform(x) * 2 - 1
    y = (y - y.mean()) / y.std()
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.float32))


def batches(x: Tensor, y: Tensor, size: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(x), generator=generator)
        for start in range(0, len(x) - size + 1, size):
            pick = order[start : start + size]
            yield x[pick], y[pick]
