"""Recipes of a dye house: what went into the vat, and which colours came out of it (several are possible)."""

import torch


class Vats:
    def __init__(self, count, herbs, seed):
        g = torch.Generator().manual_seed(seed)
        self.recipe = torch.rand(count, herbs, generator=g).pow(3)
        hidden = torch.tanh(self.recipe @ torch.randn(herbs, 24, generator=g))
        branch = torch.where(torch.rand(count, 1, generator=g) < 0.3, -1.0, 1.0)  # iron in the water, or none
        self.colour = hidden @ torch.randn(24, 3, generator=g) / 5 + branch * hidden[:, :3].abs()
        self.colour += 0.05 * torch.randn(count, 3, generator=g)

    def halves(self, held):
        return (self.recipe[:-held], self.colour[:-held]), (self.recipe[-held:], self.colour[-held:])


def batches(recipe, colour, size, generator):
    """One pass over the recipes, in a new order, without the rest."""
    order = torch.randperm(len(recipe), generator=generator)
    for start in range(0, len(order) - size + 1, size):
        at = order[start : start + size]
        yield recipe[at], colour[at]
