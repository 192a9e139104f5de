"""Writes bobbin lace as the lacemaker's strokes: cross, twist, pin, with the pair that is worked. A pattern repeats with small changes."""

import torch

STROKES, PAIRS = 4, 24
WORDS = STROKES * PAIRS


class Pillow:
    def __init__(self, length, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.length = length
        self.motifs = torch.randint(STROKES, (40, 37), generator=self.g)
        self.walks = torch.randint(-1, 2, (40, 37), generator=self.g)

    def strip(self):
        motif = int(torch.randint(40, (), generator=self.g))
        n = self.length + 1
        at = torch.arange(n) % 37
        stroke, pair = self.motifs[motif][at], self.walks[motif][at].cumsum(0)
        slips = torch.rand(n, generator=self.g) < 0.03
        stroke = torch.where(slips, torch.randint(STROKES, (n,), generator=self.g), stroke)
        return (pair % PAIRS) * STROKES + stroke

    def batch(self, n):
        words = torch.stack([self.strip() for _ in range(n)])
        return words[:, :-1], words[:, 1:]
