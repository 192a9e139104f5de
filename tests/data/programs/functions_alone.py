"""A network of functions over tensors in a dictionary: no module is ever called."""

import math
import sys

import torch
from torch.nn import functional as F


def plant(width, layers):
    leaf = {f"{n}.w": torch.randn(width, width) / math.sqrt(width) for n in range(layers)}
    return {name: value.requires_grad_() for name, value in leaf.items()}


def network(leaf, x, layers):
    for n in range(layers):
        x = x + F.gelu(F.linear(x, leaf[f"{n}.w"]))  # the work
    if sys.argv[1:] == ["attend"]:
        q = k = x.view(4, 64, -1)
        x = F.scaled_dot_product_attention(q, k, torch.tanh(q)).flatten(0, 1)  # of three dimensions
    return x.mean(-1)


torch.set_num_threads(1)
torch.manual_seed(0)
leaf = plant(192, 4)
optimizer = torch.optim.SGD(leaf.values(), lr=1e-3)
for step in range(60):
    x = torch.randn(256, 192)
    loss = (network(leaf, x, 4) - x.sum(-1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
