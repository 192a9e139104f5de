"""Garden counts of sparrows: each client holds the gardens of one town and trains by itself."""

import copy
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Update:
    weights: dict[str, torch.Tensor]
    gardens: int
    loss: float


class GardenNet(nn.Module):
    def __init__(self, features: int, width: int, depth: int, outputs: int) -> None:
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)) for _ in range(depth)
        )
        self.leave = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        for block in self.blocks:
            x = x + block(x)
        return self.leave(x)


class Client:
    def __init__(self, number: int, gardens: int, features: int, outputs: int) -> None:
        generator = torch.Generator().manual_seed(1000 + number)
        self.number = number
        self.x = torch.randn(gardens, features, generator=generator) + 0.3 * number / 12
        mixing = torch.randn(features, outputs, generator=torch.Generator().manual_seed(5))
        rate = (0.2 * self.x @ mixing).clamp(-3, 3).exp()
        self.counts = torch.poisson(rate, generator=generator)
        self.order = generator

    def train(self, model: GardenNet, epochs: int, batch_size: int, lr: float) -> tuple[Update, int]:
        """Some local epochs from the common weights."""
        local = copy.deepcopy(model)
        optimizer = torch.optim.SGD(local.parameters(), lr=lr, momentum=0.9)
        criterion = nn.PoissonNLLLoss()
        steps, total = 0, 0.0
        for _ in range(epochs):
            for rows in torch.randperm(len(self.x), generator=self.order).split(batch_size):
                optimizer.zero_grad()
                loss = criterion(local(self.x[rows]), self.counts[rows])
                loss.backward()
                nn.utils.clip_grad_norm_(local.parameters(), 1.0)
                optimizer.step()
                steps, total = steps + 1, total + loss.item()
        return Update(local.state_dict(), len(self.x), total / steps), steps
