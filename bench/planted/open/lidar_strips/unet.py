import torch
from torch import nn


def pair(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.d1, self.d2, self.d3 = pair(1, c), pair(c, 2 * c), pair(2 * c, 4 * c)
        self.u2, self.u1 = pair(6 * c, 2 * c), pair(3 * c, c)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(nn.functional.max_pool2d(a, 2))
        c = self.d3(nn.functional.max_pool2d(b, 2))
        b = self.u2(torch.cat([nn.functional.interpolate(c, scale_factor=2), b], 1))
        a = self.u1(torch.cat([nn.functional.interpolate(b, scale_factor=2), a], 1))
        return self.out(a)
