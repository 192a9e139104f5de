import os
import random

import torch

FAST = os.environ.get("PLANTED_FIX") == "1"


def citations(nodes=2500, degree=7, seed=4):
    rng = random.Random(seed)
    return [(i, rng.randrange(nodes)) for i in range(nodes) for _ in range(degree)]


def normalised_adjacency(edges, nodes):
    """D^-1/2 (A + I) D^-1/2 as a sparse tensor."""
    neighbours = {i: {i} for i in range(nodes)}
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    rows, cols, values = [], [], []
    for i in range(nodes):
        for j in sorted(neighbours[i]):
            rows.append(i)
            cols.append(j)
            values.append((len(neighbours[i]) * len(neighbours[j])) ** -0.5)
    return torch.sparse_coo_tensor(torch.tensor([rows, cols]), torch.tensor(values), (nodes, nodes)).coalesce()
