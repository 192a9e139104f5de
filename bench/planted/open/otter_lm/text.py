import numpy as np
import torch


class Text:
    """A long stream of characters with phrases that come again."""

    def __init__(self, rank: int, world: int, seed: int, length: int = 200_000, vocab: int = 96):
        rng = np.random.default_rng(seed)
        phrases = rng.integers(0, vocab, (200, 9))
        whole = phrases[rng.integers(0, len(phrases), length // 9)].reshape(-1)
        part = len(whole) // world
        self.data = torch.from_numpy(whole[rank * part : (rank + 1) * part].copy())
        self.g = torch.Generator().manual_seed(seed + rank)

    def batch(self, size: int, block: int):
        starts = torch.randint(len(self.data) - block - 1, (size, 1), generator=self.g)
        pieces = self.data[starts + torch.arange(block + 1)]
        return pieces[:, :-1], pieces[:, 1:]
