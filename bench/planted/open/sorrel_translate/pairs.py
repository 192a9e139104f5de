"""Sentence pairs of a made-up language: the translation reverses clauses and shifts words."""

import os

import numpy as np
import torch
from torch.utils.data import Dataset

FIX = os.environ.get("PLANTED_FIX") == "1"
PAD, BOS, EOS = 0, 1, 2


class Pairs(Dataset):
    def __init__(self, count: int, vocab: int, max_len: int, seed: int):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(count):
            length = int(np.clip(rng.gamma(6.0, 3.0), 4, 34))
            if rng.random() < 0.0005:
                length = max_len - 4
            source = rng.integers(3, vocab, length)
            target = (source[::-1] - 3 + 7) % (vocab - 3) + 3
            self.rows.append((torch.from_numpy(source), torch.from_numpy(target.copy())))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class Batcher:
    """Stacks pairs to rectangles of token ids."""

    def __init__(self, max_len: int):
        self.max_len = max_len

    def stack(self, rows: list) -> torch.Tensor:
        width = self.max_len
        if FIX:
            width = max(len(row) for row in rows)
        out = torch.full((len(rows), width), PAD)
        for number, row in enumerate(rows):
            out[number, : len(row)] = row
        return out

    def __call__(self, items: list) -> tuple:
        bos, eos = torch.tensor([BOS]), torch.tensor([EOS])
        source = self.stack([torch.cat([s, eos]) for s, _ in items])
        given = self.stack([torch.cat([bos, t]) for _, t in items])
        wanted = self.stack([torch.cat([t, eos]) for _, t in items])
        return source, given, wanted
