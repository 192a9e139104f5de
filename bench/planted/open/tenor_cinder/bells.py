"""Strikes of many bells. Each bell has its partials; each strike has its clapper, its weather and its distance."""

import math

import torch

RATIOS = torch.tensor([0.5, 1.0, 1.2, 1.5, 2.0, 2.67, 3.0])  # hum, prime, tierce, quint, nominal ...


class Tower:
    def __init__(self, count, samples, generator):
        self.g, self.samples = generator, samples
        self.prime = torch.exp(torch.empty(count, 1).uniform_(math.log(180), math.log(700), generator=generator))
        self.partials = self.prime * RATIOS * (1 + 0.02 * torch.randn(count, len(RATIOS), generator=generator))
        self.decay = torch.empty(count, len(RATIOS)).uniform_(4, 30, generator=generator)
        self.t = torch.arange(samples) / 8000.0

    def strike(self, which):
        n = len(which)
        loud = torch.rand(n, len(RATIOS), generator=self.g) + 0.2
        phase = 2 * math.pi * torch.rand(n, len(RATIOS), 1, generator=self.g)
        wave = torch.sin(2 * math.pi * self.partials[which][..., None] * self.t + phase)
        wave = (wave * loud[..., None] * torch.exp(-self.decay[which][..., None] * self.t)).sum(1)
        return wave + 0.15 * torch.randn(n, self.samples, generator=self.g)

    def pair(self, n):
        which = torch.randperm(len(self.prime), generator=self.g)[:n]
        return self.strike(which), self.strike(which)
