"""Made-up observation wells in a raised bog: properties of the site, weather, and the water table that was read."""

import math

import torch


class Wells:
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        n, days = cfg.wells, cfg.soil.days
        self.site = torch.randn(n, cfg.features, generator=g)
        season = torch.rand(n, 1, generator=g) * 2 * math.pi
        t = torch.arange(days) * (2 * math.pi / 365)
        wet = (torch.rand(n, days, generator=g) < 0.4).float()
        self.rain = wet * torch.rand(n, days, generator=g) * (0.5 + 0.2 * torch.sin(t + season))
        self.sun = 0.06 * (1 + torch.sin(t + season + 0.5))
        mix = torch.randn(cfg.features, generator=g) / cfg.features**0.5
        slow = torch.sigmoid(self.site @ mix)[:, None]
        table = torch.zeros(n, days)
        level = torch.full((n, 1), 4.0)
        for d in range(days):
            level = level + 0.8 * self.rain[:, d : d + 1] - self.sun[:, d : d + 1] - 0.03 * slow * level
            table[:, d : d + 1] = level
        self.table = table + 0.02 * torch.randn(n, days, generator=g)
        self.g, self.batch = g, cfg.batch

    def draw(self):
        rows = torch.randint(len(self.site), (self.batch,), generator=self.g)
        return self.site[rows], self.rain[rows], self.sun[rows], self.table[rows]
