"""A town's drains: junctions, pipes between near ones, and rain that runs through them."""

import networkx as nx
import numpy as np
import torch


def town(junctions, seed):
    rng = np.random.default_rng(seed)
    places = {i: tuple(p) for i, p in enumerate(rng.random((junctions, 2)))}
    graph = nx.random_geometric_graph(junctions, 1.6 / junctions**0.5, pos=places, seed=seed)
    pipes = np.array(graph.edges)
    width = rng.uniform(0.5, 2.0, len(pipes))
    adjacency = torch.zeros(junctions, junctions)
    adjacency[pipes[:, 0], pipes[:, 1]] = torch.tensor(width, dtype=torch.float32)
    return adjacency + adjacency.T


class Rain:
    """Storms over the town; the level at each junction an hour later is asked for."""

    def __init__(self, adjacency, hours, seed):
        self.rng = torch.Generator().manual_seed(seed)
        n = len(adjacency)
        flow = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
        level, levels, storm = torch.zeros(n), [], 0.0
        for _ in range(hours):
            storm = max(0.0, 0.8 * storm + 0.5 * torch.randn((), generator=self.rng).item())
            level = 0.6 * level + 0.3 * flow @ level + storm * torch.rand(n, generator=self.rng)
            levels.append(level)
        self.levels = torch.stack(levels)

    def batches(self, size, window):
        while True:
            at = torch.randint(window, len(self.levels), (size,), generator=self.rng)
            past = torch.stack([self.levels[i - window : i].T for i in at.tolist()])
            yield past, self.levels[at]
