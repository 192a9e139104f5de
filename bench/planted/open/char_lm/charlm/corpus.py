import os
import random

import torch

FAST = os.environ.get("PLANTED_FIX") == "1"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Corpus:
    def __init__(self, length=400_000, seed=11):
        rng = random.Random(seed)
        parts, total = [], 0
        while total < length:
            word = "".join(rng.choices(LETTERS, k=rng.randint(2, 9))) + rng.choice([" ", ", ", ". ", "\n", "; ", "? "])
            parts.append(word)
            total += len(word)
        self.text = "".join(parts)
        self.alphabet = sorted(set(self.text))
        if FAST:
            lookup = {c: i for i, c in enumerate(self.alphabet)}
            self.ids = torch.tensor([lookup[c] for c in self.text])

    def encode(self, chunk):
        return [self.alphabet.index(c) for c in chunk]

    def get_batch(self, batch, block, generator):
        starts = torch.randint(0, len(self.text) - block - 1, (batch,), generator=generator).tolist()
        if FAST:
            x = torch.stack([self.ids[s : s + block] for s in starts])
            y = torch.stack([self.ids[s + 1 : s + block + 1] for s in starts])
            return x, y
        x = torch.tensor([self.encode(self.text[s : s + block]) for s in starts])
        y = torch.tensor([self.encode(self.text[s + 1 : s + block + 1]) for s in starts])
        return x, y
