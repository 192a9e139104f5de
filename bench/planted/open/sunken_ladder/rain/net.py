"""Gates look at all other gates of their beam."""

import torch
from torch import nn

from .heads import join, part


class Look(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask, self.offer, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query = part(self.ask(x), self.heads)
        key, value = (part(y, self.heads) for y in self.offer(x).chunk(2, dim=-1))
        return self.out(join(nn.functional.scaled_dot_product_attention(query, key, value), self.heads))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look = Look(width, heads)
        self.think = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.look(self.first(x))
        return x + self.think(self.second(x))


class RainNet(nn.Module):
    def __init__(self, gates: int, width: int, heads: int, depth: int) -> None:
        super().__init__()
        self.lift = nn.Linear(3, width)
        self.place = nn.Parameter(0.02 * torch.randn(gates, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.rate = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1), nn.Softplus())

    def forward(self, sweeps: torch.Tensor) -> torch.Tensor:
        return self.rate(self.layers(self.lift(sweeps) + self.place)).squeeze(-1)
