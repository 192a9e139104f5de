import torch
import torch.distributed as dist
from torch import nn


def network(inputs, width, layers):
    sizes = [inputs] + [width] * layers
    parts = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.SiLU())]
    return nn.Sequential(*parts, nn.Linear(width, 1))


def sum_over_ranks(parameters, loss):
    """Adds gradients and loss of all bands in one message."""
    flat = torch.cat([p.grad.reshape(-1) for p in parameters] + [loss.detach().reshape(1)])
    dist.all_reduce(flat)
    at = 0
    for p in parameters:
        p.grad.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()
    return flat[-1]
