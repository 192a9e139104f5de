"""The temperature as a network, and what the equation says about it."""

import torch
from points import Points
from torch import nn
from torch.func import functional_call

Weights = dict[str, torch.Tensor]


class Field(nn.Module):
    """u(x, t); its slopes u_x, u_xx and u_t go through the layers beside it where wanted."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        sizes = [2] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, places: torch.Tensor, slopes: bool = False) -> torch.Tensor:
        h = 2 * places - 1
        if not slopes:
            for layer in self.layers:
                h = torch.tanh(layer(h))
            return self.out(h).squeeze(-1)
        along_x = torch.zeros_like(h)
        along_x[:, 0] = 2
        along_t = along_x.flip(-1)
        d = torch.stack([along_x, torch.zeros_like(h), along_t])
        for layer in self.layers:
            h = torch.tanh(layer(h))
            bend = 1 - h * h
            x, xx, t = (d @ layer.weight.T).unbind(0)
            d = torch.stack([bend * x, bend * (xx - 2 * h * x * x), bend * t])
        return (d @ self.out.weight.T).squeeze(-1)


class HeatEquation:
    """Residuals of u_t = Fo u_xx, with u given at the start and 0 at the ends."""

    def __init__(self, field: Field, fourier: float) -> None:
        self.field, self.fourier = field, fourier

    def at(self, weights: Weights, places: torch.Tensor) -> torch.Tensor:
        return functional_call(self.field, weights, (places,))

    def residual(self, weights: Weights, places: torch.Tensor) -> torch.Tensor:
        _, u_xx, u_t = functional_call(self.field, weights, (places, True))
        return u_t - self.fourier * u_xx

    def loss(self, weights: Weights, points: Points) -> tuple[torch.Tensor, torch.Tensor]:
        inside = self.residual(weights, points.inside).square().mean()
        start = (self.at(weights, points.start) - points.heat_at_start).square().mean()
        ends = self.at(weights, points.ends).square().mean()
        return inside + 10 * (start + ends), inside.detach()
