"""A brick works as a graph: kilns, dryers and belts; which of them will fail next month?"""

import random

import torch


def plant(units: int = 3500, seed: int = 13):
    rng = random.Random(seed)
    wires = set()
    for i in range(1, units):
        for _ in range(rng.choice([1, 1, 2, 3])):
            j = rng.randrange(max(0, i - 40), i)
            wires.add((j, i))
    generator = torch.Generator().manual_seed(seed)
    readings = torch.randn(units, 24, generator=generator)
    heat = readings[:, :4].sum(1)
    for _ in range(2):
        spread = heat.clone()
        for i, j in wires:
            spread[i] += 0.3 * heat[j]
            spread[j] += 0.3 * heat[i]
        heat = spread / 2
    labels = (heat > heat.median()).long()
    mask = torch.rand(units, generator=generator) < 0.4
    return readings, sorted(wires), labels, mask
