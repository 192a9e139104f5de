"""Strikes of a carillon, recorded by two microphones: one in the tower, one in the square."""

import torch

PARTIALS = torch.tensor([0.5, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0])


class Carillon:
    def __init__(self, cfg):
        self.cfg = cfg
        self.dice = torch.Generator().manual_seed(cfg["seed"])
        self.pitch = 0.02 * 2 ** (torch.arange(cfg["bells"]) / 12)
        stretch = 1 + 0.01 * torch.randn(cfg["bells"], len(PARTIALS), generator=self.dice)
        self.cast = self.pitch[:, None] * PARTIALS * stretch
        time = torch.arange(cfg["samples"])
        ring = torch.sin(2 * torch.pi * (self.cast[:, :, None] * time % 1))
        decay = torch.exp(-time * (0.001 + 0.004 * self.cast[:, :, None]))
        self.rings = ring * decay

    def noise(self, *shape):
        return torch.randn(*shape, generator=self.dice)

    def pairs(self):
        n = self.cfg["pairs"]
        bell = torch.randint(self.cfg["bells"], (n,), generator=self.dice)
        clapper = torch.rand(n, 1, len(PARTIALS), generator=self.dice) + 0.2
        strike = torch.bmm(clapper, self.rings[bell]).squeeze(1)
        tower = strike + 0.3 * self.noise(n, self.cfg["samples"])
        echo = torch.roll(strike, 37, 1)
        square = 0.5 * strike + 0.3 * echo + 0.4 * self.noise(n, self.cfg["samples"])
        return tower, square
