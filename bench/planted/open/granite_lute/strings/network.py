import torch
from torch import nn


class Body(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.turn = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.ring = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](x)
        x = x + self.turn(y, y, y, need_weights=False)[0]
        return x + self.ring(self.norms[1](x))


class Lute(nn.Module):
    def __init__(self, partials: int, width: int, layers: int) -> None:
        super().__init__()
        self.lift = nn.Linear(partials, width)
        self.bodies = nn.Sequential(*[Body(width) for _ in range(layers)])
        self.out = nn.Linear(width, 2)

    def forward(self, spectra: torch.Tensor) -> torch.Tensor:
        return self.out(self.bodies(self.lift(spectra)).mean(1))
