"""A shared body with a head for the moves and one for the value."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, features: int, width: int, depth: int) -> None:
        super().__init__()
        sizes = [features] + [width] * depth
        self.body = nn.Sequential(
            *(layer for a, b in zip(sizes, sizes[1:], strict=False) for layer in (nn.Linear(a, b), nn.LayerNorm(b), nn.Tanh()))
        )
        self.moves, self.value = nn.Linear(width, 4), nn.Linear(width, 1)
        nn.init.zeros_(self.moves.weight)

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(seen)
        return torch.log_softmax(self.moves(x), dim=-1), self.value(x).squeeze(-1)
