import torch
from torch import nn


def perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Pair(nn.Module):
    """The forger and the judge."""

    def __init__(self, noise: int, width: int, depth: int, size: int) -> None:
        super().__init__()
        self.noise = noise
        self.forger = perceptron(noise, *[width] * depth, size)
        self.judge = perceptron(size, *[width] * depth, 1)

    def forge(self, count: int) -> torch.Tensor:
        return self.forger(torch.randn(count, self.noise))
