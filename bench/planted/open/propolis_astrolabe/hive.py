"""Waggle dances filmed on the comb: position, heading and body shake, twenty-five frames a second."""

import math

import torch


def dances(count, frames, sites, generator):
    site = torch.randint(sites, (count,), generator=generator)
    toward = 2 * math.pi * site / sites + 0.12 * torch.randn(count, generator=generator)
    length = 0.35 + 0.05 * (site % 3) + 0.02 * torch.randn(count, generator=generator)
    speed = 1 + 0.15 * torch.randn(count, 1, generator=generator)
    start = torch.rand(count, 1, generator=generator)
    t = (torch.arange(frames) / frames * 3 * speed + start) % 1
    runs = t < length[:, None]
    side = torch.where(((torch.arange(frames) / frames * 3 * speed + start).floor() % 2) == 0, 1.0, -1.0)
    turn = side * math.pi * ((t - length[:, None]) / (1 - length[:, None])).clamp(min=0)
    heading = toward[:, None] + turn
    shake = torch.where(runs, torch.sin(2 * math.pi * 13 * t), 0.0)
    steps = torch.stack([heading.cos(), heading.sin()], 1) * 0.1
    films = torch.cat([steps.cumsum(2), heading.cos()[:, None], heading.sin()[:, None], shake[:, None]], 1)
    return films + 0.05 * torch.randn(films.shape, generator=generator), site
