from torch import nn


def generator(latent: int, points: int, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(latent, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, points), nn.Tanh()
    )


def critic(points: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(points, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
