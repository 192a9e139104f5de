import torch
import torch.nn as nn


class Field(nn.Module):
    """A plain tanh network, as in the first PINN papers."""

    def __init__(self, width: int = 96, depth: int = 4):
        super().__init__()
        sizes = [2] + [width] * depth
        layers: list[nn.Module] = []
        for a, b in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.body = nn.Sequential(*layers, nn.Linear(width, 1))
        for module in self.body:
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return self.body(torch.cat([x, t], dim=1))
