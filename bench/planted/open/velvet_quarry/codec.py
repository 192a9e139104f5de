"""Soft residual vector quantisation between two residual towers."""

import os

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Fold(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Book(nn.Module):
    """Entries mixed by nearness; the sharper, the nearer to a hard choice."""

    def __init__(self, entries: int, code: int) -> None:
        super().__init__()
        self.entries = nn.Parameter(torch.randn(entries, code) / code**0.5)
        if FIXED:
            self.register_buffer("level", torch.ones(()))
        else:
            self.level = 1

    def sharpen(self, level: int) -> None:
        if FIXED:
            self.level.fill_(level)
        else:
            self.level = level

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        far = x.square().sum(-1, keepdim=True) - 2 * x @ self.entries.T + self.entries.square().sum(-1)
        return (-0.25 * self.level * far).softmax(-1) @ self.entries


class Codec(nn.Module):
    def __init__(self, length: int, width: int, depth: int, code: int, books: int, entries: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(length, width), *[Fold(width) for _ in range(depth)], nn.Linear(width, code))
        self.decode = nn.Sequential(nn.Linear(code, width), *[Fold(width) for _ in range(depth)], nn.Linear(width, length))
        self.books = nn.ModuleList([Book(entries, code) for _ in range(books)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rest = code = self.encode(x)
        for book in self.books:
            rest = rest - book(rest)
        return self.decode(code - rest), rest.square().mean()
