"""Synthetic click log: who saw which ad where and when."""
import numpy as np
import torch
from torch.utils.data import TensorDataset

FIELDS = ("users", "ads", "publishers", "hours")


def zipf_ids(rng, n, size, a=1.15):
    ids = rng.zipf(a, size=n) - 1
    return np.where(ids < size, ids, rng.integers(0, size, n))


def make_log(cfg, rows, seed):
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99)
    cols, score = [], np.full(rows, -1.2)
    for f in FIELDS:
        size = cfg[f]
        ids = zipf_ids(rng, rows, size) if f != "hours" else rng.integers(0, size, rows)
        effect = truth.normal(0, 0.7, size)
        score += effect[ids]
        cols.append(ids)
    numeric = rng.normal(0, 1, (rows, 8)).astype(np.float32)
    score += numeric @ truth.normal(0, 0.3, 8)
    click = rng.random(rows) < 1 / (1 + np.exp(-score))
    return TensorDataset(torch.from_numpy(np.stack(cols, 1).astype(np.int64)),
                         torch.from_numpy(numeric),
                         torch.from_numpy(click.astype(np.float32)))
