"""Two towers, and a small adapter for each shelf of the shop."""

import torch
from torch import nn


class Adapters(nn.Module):
    """For each shelf a scale and a shift, kept as parameters of their own so that a shelf can be frozen or taken out."""

    def __init__(self, shelves: int, width: int) -> None:
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(shelves))
        self.shifts = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(shelves))

    def forward(self, x: torch.Tensor, shelf: torch.Tensor) -> torch.Tensor:
        scale, shift = torch.stack(list(self.scales)), torch.stack(list(self.shifts))
        return x * scale[shelf] + shift[shelf]


class Towers(nn.Module):
    def __init__(self, buyers: int, items: int, shelves: int, width: int) -> None:
        super().__init__()
        self.buyers, self.items = nn.Embedding(buyers, width), nn.Embedding(items, width)
        self.buyer_tower = self._tower(width)
        self.item_tower = self._tower(width)
        self.adapters = Adapters(shelves, width)
        self.bias = nn.Parameter(torch.zeros(()))

    @staticmethod
    def _tower(width: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.LayerNorm(width))

    def forward(self, buyer: torch.Tensor, item: torch.Tensor, shelf: torch.Tensor) -> torch.Tensor:
        left = self.buyer_tower(self.buyers(buyer))
        right = self.adapters(self.item_tower(self.items(item)), shelf)
        return (left * right).mean(1) + self.bias
