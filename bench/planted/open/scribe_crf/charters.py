"""Made-up charter headings: runs of words of a class; each class has its own words, with some overlap."""

import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES, VOCABULARY, LENGTH = 8, 600, 22


class Charters(Dataset):
    def __init__(self, n=2400, seed=3):
        rng = np.random.default_rng(seed)
        follow = rng.dirichlet(np.full(CLASSES, 0.4), CLASSES)
        self.words = np.zeros((n, LENGTH), np.int64)
        self.tags = np.zeros((n, LENGTH), np.int64)
        tag = rng.integers(0, CLASSES, n)
        cumulated = follow.cumsum(1)
        for t in range(LENGTH):
            jump = rng.random(n) < 0.4
            tag = np.where(jump, np.minimum((rng.random(n)[:, None] > cumulated[tag]).sum(1), CLASSES - 1), tag)
            self.tags[:, t] = tag
            own = tag * (VOCABULARY // CLASSES) + rng.integers(0, VOCABULARY // CLASSES, n)
            self.words[:, t] = np.where(rng.random(n) < 0.35, rng.integers(0, VOCABULARY, n), own)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.words[i], self.tags[i]


def collate(rows):
    words, tags = zip(*rows)
    return {"words": torch.from_numpy(np.stack(words)), "labels": torch.from_numpy(np.stack(tags))}
