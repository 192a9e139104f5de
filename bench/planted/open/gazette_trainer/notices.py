"""Official notices as token ids. Most are a line or two; a few are whole decrees."""

import numpy as np
from torch.utils.data import Dataset

WORDS, TOPICS, PAD, START = 3000, 9, 0, 1


class Notices(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        taste = np.random.default_rng(99).integers(2, WORDS, (TOPICS, 60))
        self.rows = []
        for _ in range(count):
            topic = int(rng.integers(TOPICS))
            length = int(rng.integers(150, 250)) if rng.random() < 0.01 else int(rng.integers(14, 48))
            words = np.where(rng.random(length) < 0.4, rng.choice(taste[topic], length), rng.integers(2, WORDS, length))
            self.rows.append({"input_ids": [START, *words.tolist()], "labels": topic})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]
