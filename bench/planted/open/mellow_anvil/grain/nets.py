"""Generator and critic."""

from torch import nn


def carver(latent: int, width: int, length: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(latent, width), nn.ReLU(inplace=True),
        nn.Linear(width, width), nn.ReLU(inplace=True),
        nn.Linear(width, width), nn.ReLU(inplace=True),
        nn.Linear(width, length),
    )  # fmt: skip


def judge(length: int, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(length, width), nn.LeakyReLU(0.2, inplace=True),
        nn.Linear(width, width), nn.LeakyReLU(0.2, inplace=True),
        nn.Linear(width, width), nn.LeakyReLU(0.2, inplace=True),
        nn.Linear(width, 1),
    )  # fmt: skip
