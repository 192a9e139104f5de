"""Pairs of a watermark in transmitted light and the rubbing of the mould that made it."""

import torch


class Archive:
    def __init__(self, count, wires, generator):
        motif = torch.randn(count, 40, generator=generator)
        light, rub = torch.randn(2, 40, wires, generator=generator) * 40**-0.5
        self.light = torch.tanh(motif @ light) + 0.6 * torch.randn(count, wires, generator=generator)
        self.rub = torch.sin(2 * motif @ rub) + 0.6 * torch.randn(count, wires, generator=generator)

    def __len__(self):
        return len(self.light)

    def draw(self, n, generator):
        at = torch.randint(len(self), (n,), generator=generator)
        return self.light[at], self.rub[at]
