"""Gestures as a neuromorphic sensor sees them: a list of events (time, x, y, polarity)."""

import numpy as np
from torch.utils.data import Dataset

SIDE = 32


class GestureEvents(Dataset):
    def __init__(self, recordings, classes, seed):
        rng = np.random.default_rng(seed)
        self.events, self.labels = [], []
        for _ in range(recordings):
            label = int(rng.integers(classes))
            n = int(rng.integers(70, 130))
            t = np.sort(rng.random(n))
            turn = 2 * np.pi * (label + 1) / classes * t * (1 if label % 2 else -1) + label
            x = np.clip(SIDE / 2 + 10 * np.cos(turn) + rng.normal(0, 2, n), 0, SIDE - 1)
            y = np.clip(SIDE / 2 + 10 * np.sin(turn) + rng.normal(0, 2, n), 0, SIDE - 1)
            p = rng.random(n) < 0.5 + 0.3 * np.sin(turn)
            self.events.append(np.stack([t, x, y, p], axis=1).astype(np.float32))
            self.labels.append(label)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.events[i], self.labels[i]
