import os

import torch

WHICH = os.environ.get("PLANTED_FIX")


class Ears(torch.utils.data.Dataset):
    """Density of ears around marked points, drawn for each crop."""

    def __init__(self, n=300, side=40):
        g = torch.Generator().manual_seed(31)
        self.side = side
        self.marks = [torch.rand(k, 2, generator=g) * side for k in torch.randint(4, 8, (n,), generator=g).tolist()]
        self.photos = torch.rand(n, 3, side, side, generator=g)

    def __len__(self):
        return len(self.marks)

    def __getitem__(self, i):
        shift = torch.rand(2)
        return self.photos[i], self.density(self.marks[i] + shift)

    def density(self, marks):
        grid = torch.arange(self.side, dtype=torch.float32)
        if WHICH == "2":
            bumps = torch.exp(-0.5 * (grid[None] - marks.T[..., None]) ** 2)
            return (bumps[0].T @ bumps[1])[None]
        total = torch.zeros(self.side, self.side)
        for y, x in marks:
            total += torch.exp(-0.5 * ((grid[:, None] - y) ** 2 + (grid - x) ** 2))
        return total[None]
