"""Reviews as records of fields, with their tokens; drawn from a seeded grammar."""

import numpy as np
from torch.utils.data import Dataset

VOCAB, FIELDS, LABELS = 800, 4, 5


class Reviews(Dataset):
    def __init__(self, count: int, seed: int, longest: int = 72):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(count):
            label = int(rng.integers(LABELS))
            length = int(rng.integers(longest - 14, longest + 1))
            tokens = rng.integers(10, VOCAB, length)
            hints = rng.random(length) < 0.25
            tokens[hints] = 10 + label * 20 + rng.integers(0, 20, int(hints.sum()))
            fields = np.sort(rng.integers(0, FIELDS, length))
            self.rows.append({"tokens": tokens.tolist(), "fields": fields.tolist(), "stars": label})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]
