"""Accordion reeds: the partials of a note, and which of the faults the tuner would hear."""

import torch

PARTIALS, FAULTS = 128, 12


def notes(count, seed):
    gen = torch.Generator().manual_seed(seed)
    partial = torch.arange(1, PARTIALS + 1).float()
    fault = torch.randint(FAULTS, (count,), generator=gen)
    slope = 0.8 + 0.5 * torch.rand(count, 1, generator=gen)
    beat = torch.cos(partial * (0.15 + 0.11 * fault[:, None]))
    loud = partial ** -(slope * 0.3) * (1 + 0.6 * beat)
    return loud + 0.25 * torch.randn(count, PARTIALS, generator=gen), fault


def portions(count, size, seed):
    gen = torch.Generator().manual_seed(seed)
    while True:
        yield from (rows for rows in torch.randperm(count, generator=gen).split(size) if len(rows) == size)
