from collections import namedtuple

import numpy as np
import torch

Column = namedtuple("Column", "name size width")

COLUMNS = [
    Column("advertiser", 40_000, 16),
    Column("page", 120_000, 16),
    Column("device", 1_000, 8),
    Column("query", 150_000, 16),
]


def impressions(count, seed):
    rng = np.random.default_rng(seed)
    ids = np.stack([(rng.random(count) ** 2.5 * c.size).astype(np.int64) for c in COLUMNS], axis=1)
    taste = [rng.standard_normal(c.size) for c in COLUMNS]
    logit = sum(t[ids[:, k]] for k, t in enumerate(taste)) - 1.0
    clicked = rng.random(count) < 1 / (1 + np.exp(-logit))
    return torch.from_numpy(ids), torch.from_numpy(clicked.astype(np.float32))
