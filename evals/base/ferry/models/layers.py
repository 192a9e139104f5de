"""Parts that several encoders share."""

from __future__ import annotations

import math

import torch
from torch import nn


class Positions(nn.Module):
    """Sinusoidal positions, added to embeddings (B, L, W)."""

    def __init__(self, width: int, longest: int) -> None:
        super().__init__()
        steps = torch.arange(longest).unsqueeze(1)
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(steps * rates)
        table[:, 1::2] = torch.cos(steps * rates)
        self.register_buffer("table", table, persistent=False)

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        return embedded + self.table[: embedded.shape[1]]


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(self.dropout(torch.nn.functional.gelu(self.inner(x))))


class MaskedMean(nn.Module):
    """Mean over the words, padding left out: (B, L, W), (B, L) → (B, W)."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = mask.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1).clamp(min=1.0)
