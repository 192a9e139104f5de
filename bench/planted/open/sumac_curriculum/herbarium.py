"""Leaf outlines as Fourier descriptors; some species look alike, some labels are wrong."""

import torch

TRAITS, SPECIES = 40, 16


def leaves(count, seed):
    g = torch.Generator().manual_seed(seed)
    species = torch.randint(SPECIES, (count,), generator=g)
    centre = torch.randn(SPECIES, TRAITS, generator=torch.Generator().manual_seed(500))
    centre[8:] = centre[:8] + 0.35 * centre[8:]
    x = centre[species] + 0.9 * torch.randn(count, TRAITS, generator=g)
    wrong = torch.rand(count, generator=g) < 0.05
    label = torch.where(wrong, torch.randint(SPECIES, (count,), generator=g), species)
    return x, label
