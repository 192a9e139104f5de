"""Generator and critic for petal textures."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


class Generator(nn.Module):
    def __init__(self, noise: int, width: int) -> None:
        super().__init__()
        self.start = nn.Linear(noise, 2 * width * 16)
        self.body = nn.Sequential(
            nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Upsample(scale_factor=2), nn.Conv2d(width, 3, 3, padding=1), nn.Tanh(),
        )  # fmt: skip
        self.width = width

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.body(self.start(noise).view(len(noise), 2 * self.width, 4, 4))


class Critic(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = (3, width, 2 * width, 2 * width)
        layers: list[nn.Module] = []
        for inside, outside in zip(sizes, sizes[1:], strict=False):
            layers += [spectral_norm(nn.Conv2d(inside, outside, 4, stride=2, padding=1)), nn.LeakyReLU(0.2)]
        self.body = nn.Sequential(*layers)
        self.head = spectral_norm(nn.Linear(2 * width * 16, 1))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(pictures).flatten(1)).squeeze(1)


def gradient_penalty(critic: Critic, real: torch.Tensor, made: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """WGAN-GP: the critic's slope between real and made pictures should be one."""
    share = torch.rand(len(real), 1, 1, 1, generator=generator)
    between = (share * real + (1 - share) * made).requires_grad_()
    slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()
