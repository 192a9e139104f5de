"""A stream of offers: popular products come often, a hidden taste decides."""

import numpy as np
import torch

from .ranker import SIZES


def zipf(rng, rows, n):
    return np.minimum(rows * rng.random(n) ** 2.5, rows - 1).astype(np.int64)


def offers(batch, steps, seed=17):
    rng = np.random.default_rng(seed)
    taste = {name: rng.normal(0, 1, (rows, 2)).astype(np.float32) for name, rows in SIZES.items()}
    weight = rng.normal(0, 0.5, 12).astype(np.float32)
    for _ in range(steps):
        ids = {name: zipf(rng, rows, batch) for name, rows in SIZES.items()}
        dense = rng.normal(0, 1, (batch, 12)).astype(np.float32)
        score = (
            (taste["shopper"][ids["shopper"]] * taste["product"][ids["product"]]).sum(1) + taste["store"][ids["store"], 0] + dense @ weight
        )
        taken = rng.random(batch) < 1 / (1 + np.exp(-score))
        yield {k: torch.from_numpy(v) for k, v in ids.items()}, torch.from_numpy(dense), torch.from_numpy(taken.astype(np.float32))
