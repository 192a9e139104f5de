"""Clinics whose heart-beat recordings differ: each has its own mix of rhythms and its own noise."""

import torch

RHYTHMS, LEADS, LENGTH = 5, 3, 160


def clinic(number, count):
    g = torch.Generator().manual_seed(1000 + number)
    mix = torch.distributions.Dirichlet(torch.full((RHYTHMS,), 0.8)).sample()
    rhythm = torch.multinomial(mix, count, replacement=True, generator=g)
    t = torch.arange(LENGTH) / 20.0
    rate = 1.0 + 0.4 * rhythm[:, None, None] + 0.05 * torch.randn(count, 1, 1, generator=g)
    phase = 6.3 * torch.rand(count, LEADS, 1, generator=g)
    beat = torch.exp(4 * (torch.cos(rate * 3 * t + phase) - 1)) - 0.3 * torch.exp(6 * (torch.cos(rate * 3 * t + phase + 0.8) - 1))
    return beat + (0.1 + 0.02 * number) * torch.randn(beat.shape, generator=g), rhythm


class Clinic:
    def __init__(self, number, count=640):
        self.number = number
        self.x, self.y = clinic(number, count)
        self.g = torch.Generator().manual_seed(number)

    def __len__(self):
        return len(self.x)

    def batches(self, size, limit):
        for rows in torch.randperm(len(self), generator=self.g).split(size)[:limit]:
            yield self.x[rows], self.y[rows]
