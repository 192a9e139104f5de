"""Collar accelerometers of wild dogs: gaits as sums of harmonics, with the animal's own habits."""

import torch

GAITS = 6
LENGTH = 96


def collars(count, seed):
    g = torch.Generator().manual_seed(seed)
    gait = torch.randint(GAITS, (count,), generator=g)
    t = torch.arange(LENGTH) / 16.0
    pace = 0.8 + 0.5 * gait[:, None, None] + 0.1 * torch.randn(count, 1, 1, generator=g)
    phase = 6.3 * torch.rand(count, 3, 1, generator=g)
    wave = torch.sin(pace * t + phase) + 0.4 * torch.sin(2 * pace * t + phase * gait[:, None, None])
    return wave + 0.3 * torch.randn(wave.shape, generator=g), gait


class TwoViews:
    """Random scaling, rotation of axes, masking: twice."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def view(self, x):
        n = len(x)
        scale = 0.8 + 0.4 * torch.rand(n, 3, 1, generator=self.g)
        turn = torch.matrix_exp(0.3 * self.skew(torch.randn(n, 3, generator=self.g)))
        start = torch.randint(LENGTH - 20, (n, 1, 1), generator=self.g)
        at = torch.arange(LENGTH)
        return turn @ (x * scale) * ~((at >= start) & (at < start + 20))

    @staticmethod
    def skew(v):
        zero = torch.zeros(len(v))
        a, b, c = v.unbind(1)
        return torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], 1).view(-1, 3, 3)

    def __call__(self, x):
        return torch.cat([self.view(x), self.view(x)])
