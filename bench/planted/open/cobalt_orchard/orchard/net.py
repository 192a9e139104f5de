import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide, self.back, self.norm = nn.Linear(width, 3 * width), nn.Linear(3 * width, width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.back(torch.tanh(self.wide(self.norm(x))))


def leafnet(bands: int, width: int, depth: int) -> nn.Module:
    return nn.Sequential(nn.Linear(bands, width), *[Residual(width) for _ in range(depth)], nn.Linear(width, 3))
