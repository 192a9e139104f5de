"""A transformer over patches that is told how much noise there is."""

import math

import torch
from torch import nn


def waves(level: torch.Tensor, width: int) -> torch.Tensor:
    paces = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
    phase = 100 * level[:, None] * paces
    return torch.cat([phase.sin(), phase.cos()], dim=1)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_a = nn.LayerNorm(width, elementwise_affine=False)
        self.norm_b = nn.LayerNorm(width, elementwise_affine=False)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.told = nn.Linear(width, 4 * width)

    def forward(self, x: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        scale_a, shift_a, scale_b, shift_b = self.told(level).unsqueeze(1).chunk(4, dim=-1)
        y = self.norm_a(x) * (1 + scale_a) + shift_a
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.mix(y).chunk(3, dim=-1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        y = self.norm_b(x) * (1 + scale_b) + shift_b
        return x + self.down(nn.functional.silu(self.up(y)))


class Denoiser(nn.Module):
    def __init__(self, values: int, patches: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.width = width
        self.read, self.write = nn.Linear(values, width), nn.Linear(width, values)
        self.places = nn.Parameter(0.02 * torch.randn(patches, width))
        self.level = nn.Sequential(nn.Linear(width, width), nn.SiLU())
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))

    def forward(self, noisy: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        told = self.level(waves(level, self.width))
        x = self.read(noisy) + self.places
        for layer in self.layers:
            x = layer(x, told)
        return self.write(x)
