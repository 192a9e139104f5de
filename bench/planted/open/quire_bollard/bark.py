"""Photographs of birch bark, as brightness along rings around the trunk. Two rings of the same tree belong together."""

import torch


class Grove:
    def __init__(self, trees=3000, rings=192, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.marks = torch.rand(trees, 16, generator=g)
        self.depth = 0.3 + torch.rand(trees, 16, generator=g)
        self.at = torch.linspace(0, 1, rings)

    def look(self, trees, g):
        """Turned, lit and blurred differently each time."""
        n = len(trees)
        turn = 0.1 * torch.rand(n, 1, generator=g)
        broad = 0.004 + 0.004 * torch.rand(n, 1, 1, generator=g)
        gap = self.at[None, None] - (self.marks[trees] + turn).remainder(1)[:, :, None]
        lines = (self.depth[trees][:, :, None] * torch.exp(-((gap / broad) ** 2))).sum(1)
        light = torch.rand(n, 1, generator=g) * torch.sin(6.28 * (self.at + torch.rand(n, 1, generator=g)))
        return 1 + 0.3 * light - lines + 0.05 * torch.randn(n, len(self.at), generator=g)
