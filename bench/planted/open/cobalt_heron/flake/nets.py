from torch import nn


def stack(sizes, act, norm=False):
    parts = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        parts += [nn.Linear(a, b), nn.LayerNorm(b) if norm else nn.Identity(), act()]
    return nn.Sequential(*parts, nn.Linear(sizes[-2], sizes[-1]))


def make(points, noise, width):
    freezer = stack([noise, width, width, points], nn.SiLU, norm=True)
    lens = stack([points, width, width, 1], lambda: nn.LeakyReLU(0.2))
    return freezer, lens
