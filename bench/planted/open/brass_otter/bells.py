"""Spectra of struck bells: a few partials in bell ratios, detuned by the casting."""

import math

import torch

RATIOS = torch.tensor([0.5, 1.0, 1.2, 1.5, 2.0, 2.5, 2.67, 3.0, 4.0])
NOTES = 48


class Foundry:
    def __init__(self, partials, seed):
        self.draw = torch.Generator().manual_seed(seed)
        self.centres = torch.linspace(math.log(0.4), math.log(24.0), 6 * partials)

    def cast(self, count):
        note = torch.randint(NOTES, (count,), generator=self.draw)
        strike = note / 12 * math.log(2) + 0.012 * torch.randn(count, generator=self.draw)
        tones = strike[:, None] + RATIOS.log() + 0.01 * torch.randn(count, len(RATIOS), generator=self.draw)
        loud = torch.rand(count, len(RATIOS), generator=self.draw)
        gap = (self.centres[None, :, None] - tones[:, None, :]) / 0.03
        return torch.bmm(torch.exp(-gap * gap), loud[..., None]).squeeze(-1), note
