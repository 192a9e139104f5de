"""A stack of blocks, each with the mixer that the config names."""

import torch
from mixers import MIXERS
from torch import nn


class Block(nn.Module):
    def __init__(self, kind: str, width: int, heads: int) -> None:
        super().__init__()
        self.layer, self.mix = MIXERS[kind](width, heads)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mix(self.before(x))
        return x + self.feed(self.between(x))


class Listener(nn.Module):
    def __init__(self, bands: int, tones: int, width: int, heads: int, blocks: list[str]) -> None:
        super().__init__()
        self.lift = nn.Linear(bands, width)
        self.blocks = nn.Sequential(*[Block(kind, width, heads) for kind in blocks])
        self.norm = nn.LayerNorm(width)
        self.name = nn.Linear(width, tones + 1)

    def forward(self, energies: torch.Tensor) -> torch.Tensor:
        return self.name(self.norm(self.blocks(self.lift(energies))))
