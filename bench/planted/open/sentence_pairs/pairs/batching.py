import os
import random

import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"


class SentencePairs(Dataset):
    def __init__(self, n=1000, vocab=800):
        rng = random.Random(1)
        self.rows = []
        for _ in range(n):
            a = [rng.randrange(1, vocab) for _ in range(rng.randint(20, 40))]
            b = a[: len(a) // 2] if rng.random() < 0.5 else [rng.randrange(1, vocab) for _ in range(20)]
            self.rows.append((a, b, float(b == a[: len(a) // 2])))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def stack_pairs(rows):
    """Overlap matrix of each pair, padded to 40 x 40, and the tokens."""
    tokens, overlaps = [], []
    for a, b, _ in rows:
        if FAST:
            ta = torch.tensor(a + [0] * (40 - len(a)))
            tb = torch.tensor(b + [-1] * (40 - len(b)))
            overlaps.append((ta[:, None] == tb).float())
            tokens.append(ta)
            continue
        a, b = a + [0] * (40 - len(a)), b + [-1] * (40 - len(b))
        grid = []
        for x in a:
            line = []
            for y in b:
                line.append(1.0 if x == y else 0.0)
            grid.append(line)
        overlaps.append(torch.tensor(grid))
        tokens.append(torch.tensor(a))
    return torch.stack(tokens), torch.stack(overlaps), torch.tensor([y for _, _, y in rows])
