"""The restorer as plain functions over a list of (weight, bias)."""

import torch
from torch.nn import functional as F


def sizes_of(config):
    cells = config.getint("cloth", "ends") * config.getint("cloth", "picks")
    return [cells, *map(int, config["net"]["widths"].split(",")), cells]


def born(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        weight = torch.randn(b, a) * (2 / a) ** 0.5
        layers.append((weight.requires_grad_(), torch.zeros(b, requires_grad=True)))
    return layers


def restore(layers, x):
    for weight, bias in layers[:-1]:
        x = F.relu(F.linear(x, weight, bias))
    return F.linear(x, *layers[-1])


def blame(layers, seen, clean):
    return F.binary_cross_entropy_with_logits(restore(layers, seen), clean, reduction="none").mean(1).sum()
