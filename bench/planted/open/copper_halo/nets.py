"""The painter makes curves from noise, the critic tells them from real ones."""

import torch
from torch import nn


def tower(sizes: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
        layers.append(nn.Linear(a, b))
        if number < len(sizes) - 2:
            layers += [nn.LeakyReLU(0.2), nn.LayerNorm(b)]
    return nn.Sequential(*layers)


class Painter(nn.Module):
    def __init__(self, noise: int, width: int, points: int) -> None:
        super().__init__()
        self.noise = noise
        self.tower = tower([noise, width, width, points])
        smooth = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0])
        self.register_buffer("smooth", (smooth / smooth.sum()).view(1, 1, -1))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        rough = self.tower(z)[:, None]
        padded = nn.functional.pad(rough, (2, 2), mode="replicate")
        return nn.functional.conv1d(padded, self.smooth).squeeze(1)


class Critic(nn.Module):
    def __init__(self, points: int, width: int) -> None:
        super().__init__()
        self.tower = tower([points, width, width, 1])

    def forward(self, curve: torch.Tensor) -> torch.Tensor:
        return self.tower(curve).squeeze(-1)


class Shadow:
    """A slow copy of a network's weights, for sampling."""

    def __init__(self, net: nn.Module, keep: float) -> None:
        self.net, self.keep = net, keep
        self.weights = {name: value.detach().clone() for name, value in net.state_dict().items()}

    @torch.no_grad()
    def follow(self) -> None:
        for name, value in self.net.state_dict().items():
            self.weights[name].lerp_(value, 1 - self.keep)
