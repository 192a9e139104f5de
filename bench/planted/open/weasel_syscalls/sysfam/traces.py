"""Traces of system calls: what a process asked of the kernel, and the malware family it belongs to."""

import os

import numpy as np
import torch

PAD = 0


def simulate(traces, calls, families, typical, seed):
    rng = np.random.default_rng(seed)
    habits = rng.dirichlet(np.full(calls, 0.08), size=families)
    book = []
    for _ in range(traces):
        family = int(rng.integers(families))
        length = int(np.clip(rng.lognormal(np.log(typical), 0.4), 8, 80))
        if rng.random() < 0.002:
            length = int(rng.integers(215, 230))
        book.append((rng.choice(calls, size=length, p=habits[family]) + 1, family))
    return book


class TraceSet(torch.utils.data.Dataset):
    def __init__(self, book):
        self.book = book
        self.longest = max(len(trace) for trace, _ in book)

    def __len__(self):
        return len(self.book)

    def __getitem__(self, index):
        return self.book[index]

    def collate(self, rows):
        if os.environ.get("PLANTED_FIX") == "1":
            size = max(len(trace) for trace, _ in rows)
        else:
            size = self.longest
        tokens = np.full((len(rows), size), PAD, dtype=np.int64)
        for i, (trace, _) in enumerate(rows):
            tokens[i, : len(trace)] = trace
        return torch.from_numpy(tokens), torch.tensor([family for _, family in rows])
