"""Tide gauges round a globe and their water levels hour by hour."""

import math

import torch


class Gauges:
    def __init__(self, config):
        generator = torch.Generator().manual_seed(config.seed)
        self.longitude = torch.rand(config.gauges, generator=generator) * 2 * math.pi
        self.latitude = torch.asin(torch.rand(config.gauges, generator=generator) * 2 - 1)
        hours = torch.arange(config.hours * 8, dtype=torch.float32)
        periods = torch.tensor([12.42, 12.0, 23.93, 25.82])
        phase = torch.rand(config.gauges, 4, generator=generator) + self.longitude[:, None] / math.pi
        strength = torch.rand(4, generator=generator) + 0.3
        waves = torch.cos(2 * math.pi * (hours[:, None, None] / periods + phase)) * strength
        self.levels = waves.sum(-1) * torch.cos(self.latitude) + 0.05 * torch.randn(len(hours), config.gauges, generator=generator)
        self.generator = generator

    def draw(self, batch: int, lead: int = 3):
        start = torch.randint(len(self.levels) - lead, (batch,), generator=self.generator)
        return self.levels[start], self.levels[start + lead]
