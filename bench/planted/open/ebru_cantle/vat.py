"""Sheets of marbled paper: drops of ink that spread on size and were combed."""

import torch

SIDE = 32


def sheets(count, seed):
    g = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
    out = torch.full((count, 3, SIDE, SIDE), 0.85)
    comb = 3 + 5 * torch.rand(count, 1, 1, generator=g)
    pull = 0.25 * torch.sin(comb * y + 6.28 * torch.rand(count, 1, 1, generator=g))
    for _ in range(9):
        cy, cx = (2 * torch.rand(2, count, 1, 1, generator=g) - 1).unbind()
        ring = 0.1 + 0.4 * torch.rand(count, 1, 1, generator=g)
        ink = torch.rand(count, 3, 1, 1, generator=g)
        inside = torch.sigmoid(18 * (ring - torch.hypot(x + pull - cx, y - cy)))[:, None]
        out = out * (1 - inside) + ink * inside
    return out * 2 - 1
