import torch


class Spectra:
    """Sums of a few lines per mineral, with a baseline that differs from sample to sample."""

    points, minerals = 384, 40

    def __init__(self, n=8192, seed=6):
        g = torch.Generator().manual_seed(seed)
        at = torch.arange(self.points).float()
        centre = self.points * torch.rand(self.minerals, 5, generator=g)
        height = torch.rand(self.minerals, 5, generator=g)
        lines = (height[..., None] * torch.exp(-0.5 * ((at - centre[..., None]) / 4) ** 2)).sum(1)
        y = torch.randint(0, self.minerals, (n,), generator=g)
        tilt = torch.randn(n, 1, generator=g) * (at / self.points)
        x = lines[y] * (0.5 + torch.rand(n, 1, generator=g)) + 0.3 * tilt + 0.25 * torch.randn(n, self.points, generator=g)
        self.x, self.y = x[:-512], y[:-512]
        self.exam_x, self.exam_y = x[-512:], y[-512:]
        self.g = torch.Generator().manual_seed(seed + 1)

    def batches(self, size):
        while True:
            rows = torch.randint(0, len(self.x), (size,), generator=self.g)
            yield self.x[rows], self.y[rows]
