"""Germination trays photographed every two hours; one row is a seed's course, the label its vigour class."""

import torch

HOURS, CHANNELS, CLASSES = 48, 4, 6


def course(count, generator):
    kind = torch.randint(CLASSES, (count,), generator=generator)
    t = torch.linspace(0, 1, HOURS)
    onset = 0.2 + 0.1 * kind[:, None] + 0.05 * torch.randn(count, 1, generator=generator)
    pace = 9 + 2 * torch.randn(count, 1, generator=generator)
    root = torch.sigmoid(pace * (t - onset))
    shoot = torch.sigmoid(pace * (t - onset - 0.2))
    water = root.cumsum(1) / HOURS
    light = (torch.sin(12.57 * t) > 0).float().expand(count, HOURS)
    seen = torch.stack([root, shoot, water, light], 2)
    return (seen + 0.1 * torch.randn(seen.shape, generator=generator)).flatten(1), kind
