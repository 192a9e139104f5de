"""Weaving drafts: a drawdown follows from threading, tie-up and treadling; old pattern books have smudges."""

import numpy as np
import torch


def drawdowns(cloth, seed):
    rng = np.random.default_rng(seed)
    n, ends, picks, shafts = (int(cloth[k]) for k in ("drafts", "ends", "picks", "shafts"))
    walk = rng.choice([1, 1, 1, -1, 2], (n, ends)).cumsum(1) % shafts
    tread = rng.choice([1, 1, -1], (n, picks)).cumsum(1) % shafts
    tie = rng.random((n, shafts, shafts)) < 0.5
    rows = np.arange(n)[:, None, None]
    return torch.from_numpy(tie[rows, walk[:, None, :], tread[:, :, None]].reshape(n, -1)).float()


def smudged(clean, share, dice):
    lost = torch.rand(clean.shape, generator=dice) < share
    return torch.where(lost, 0.0, 2 * clean - 1)
