"""Made-up fruit on made-up scales: round blobs of a colour; weak views are shifted, strong ones also noisy and dimmed."""

import torch


class Scales:
    def __init__(self, pictures=1500, fruits=12, side=24, seed=3):
        g = torch.Generator().manual_seed(seed)
        self.fruits, self.g = fruits, torch.Generator().manual_seed(seed + 1)
        self.labels = torch.randint(0, fruits, (pictures,), generator=g)
        colour = torch.rand(fruits, 3, generator=g)[self.labels]
        size = (3 + 7 * torch.rand(fruits, generator=g))[self.labels]
        at = torch.arange(side).float()
        centre = 8 + 8 * torch.rand(pictures, 2, generator=g)
        far = (at[None, :, None] - centre[:, 0, None, None]) ** 2 + (at[None, None] - centre[:, 1, None, None]) ** 2
        blob = torch.sigmoid(size[:, None, None] - far.sqrt())
        self.x = colour[:, :, None, None] * blob[:, None] + 0.25 * torch.randn(pictures, 3, side, side, generator=g)
        self.known = pictures // 5

    def shifted(self, x):
        dy, dx = torch.randint(-2, 3, (2,), generator=self.g).tolist()
        return torch.roll(x, (dy, dx), (2, 3))

    def batches(self, labelled=8, free=14):
        while True:
            rows = torch.randint(0, self.known, (labelled,), generator=self.g)
            others = torch.randint(self.known, len(self.x), (free,), generator=self.g)
            weak = self.shifted(self.x[others])
            dim = 0.6 + 0.8 * torch.rand(free, 1, 1, 1, generator=self.g)
            strong = self.shifted(self.x[others]) * dim + 0.15 * torch.randn(weak.shape, generator=self.g)
            yield self.shifted(self.x[rows]), self.labels[rows], weak, strong
