"""Lines of a manuscript as strips of pixels columns; each strip has a script (hand) to be named."""

import torch

COLUMNS, PIXELS, HANDS = 320, 16, 8


class Strips:
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.hand = torch.randint(HANDS, (count,), generator=g)
        t = torch.arange(COLUMNS) / 10.0
        row = torch.arange(PIXELS)
        rate = 1 + 0.25 * self.hand[:, None, None]
        slant = 0.2 * torch.randn(count, 1, 1, generator=g)
        ink = torch.sin(rate * t[None, :, None] + slant * row) * torch.cos(0.4 * row + rate)
        self.ink = ink + 0.5 * torch.randn(ink.shape, generator=g)
        self.g = g
        self.catalogue = [
            {"shelf": f"Vell. {i}", "folio": [i % 90, "rv"[i % 2]], "hand": {"name": int(h)}} for i, h in enumerate(self.hand)
        ]

    def __len__(self):
        return len(self.hand)

    def shuffled(self, size):
        while True:
            for rows in torch.randperm(len(self), generator=self.g).split(size):
                if len(rows) == size:
                    yield self.ink[rows], self.hand[rows], [self.catalogue[i] for i in rows.tolist()]
