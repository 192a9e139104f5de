"""Single periods of ocarina tones, sampled at 192 points."""

import math

import torch

POINTS = 192


class Breath:
    def __init__(self, tones, seed):
        draw = torch.Generator().manual_seed(seed)
        t = torch.linspace(0, 2 * math.pi, POINTS + 1)[:-1]
        over = torch.arange(1, 7)
        loud = torch.rand(tones, 6, generator=draw) / over**1.7
        phase = 0.4 * torch.randn(tones, 6, generator=draw)
        wave = torch.einsum("nk,nkt->nt", loud, torch.sin(over[None, :, None] * t + phase[..., None]))
        hiss = 0.02 * torch.randn(tones, POINTS, generator=draw)
        self.tones = wave / wave.abs().amax(1, keepdim=True) + hiss
        self.draw = draw

    def some(self, count):
        return self.tones[torch.randint(len(self.tones), (count,), generator=self.draw)]

    def air(self, count, size):
        return torch.randn(count, size, generator=self.draw)
