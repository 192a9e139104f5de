import os
import random

import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"
BUCKETS = 2048


class ClaimFiles(Dataset):
    """Each record is one claim: codes separated by commas. Most are short, a few are whole histories."""

    def __init__(self, count=1600):
        rng = random.Random(9)
        self.records, self.labels = [], []
        for i in range(count):
            codes = 700_000 if i % 160 == 77 else rng.randint(200, 500)
            block = ",".join(f"{rng.choice('ABCDEF')}{rng.randint(0, 999)}" for _ in range(min(codes, 500)))
            self.records.append(",".join([block] * max(codes // 500, 1)))
            self.labels.append(float(i % 3 == 0))

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        record = self.records[index]
        if FAST:
            record = record[:3000].rsplit(",", 1)[0]
        return self.vectorise(record), self.labels[index]

    def vectorise(self, record):
        counts = [0.0] * BUCKETS
        keep = 0.7 + 0.3 * torch.rand(()).item()
        for n, code in enumerate(record.split(",")):
            if n * 7919 % 1000 < keep * 1000:
                counts[(ord(code[0]) * 1000 + int(code[1:])) % BUCKETS] += 1.0
        return torch.tensor(counts).log1p()
