import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, size, width, reach, odd):
        super().__init__()
        self.half, self.odd, self.reach = size // 2, odd, reach
        self.net = nn.Sequential(
            nn.Linear(self.half, width),
            nn.SiLU(),
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Linear(2 * width, width),
            nn.SiLU(),
            nn.Linear(width, 2 * self.half),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        still, moved = x.chunk(2, 1) if not self.odd else x.chunk(2, 1)[::-1]
        scale, shift = self.net(still).chunk(2, 1)
        scale = self.reach * torch.tanh(scale)
        moved = moved * scale.exp() + shift
        return torch.cat([moved, still] if self.odd else [still, moved], 1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, size, layers, width, bins):
        super().__init__()
        self.steps = nn.ModuleList(Coupling(size, width, bins, n % 2 == 1) for n in range(layers))
        for n in range(layers):
            self.register_buffer(f"order{n}", torch.randperm(size))

    def forward(self, x):
        """Mean negative log-likelihood, in nats."""
        volume = x.new_zeros(len(x))
        for n, step in enumerate(self.steps):
            x, more = step(x[:, getattr(self, f"order{n}")])
            volume = volume + more
        return (0.5 * x.square().sum(1) + 0.5 * x.shape[1] * math.log(2 * math.pi) - volume).mean()
