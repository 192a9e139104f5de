import os

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class GraphCollator:
    """Stacks graphs to (kinds, normalised adjacency, node mask, targets)."""

    def __init__(self, graphs):
        self.max_nodes = max(len(g["kinds"]) for g in graphs)
        ys = torch.tensor([g["y"] for g in graphs])
        self.centre, self.scale = ys.mean(), ys.std()

    def __call__(self, graphs):
        n = max(len(g["kinds"]) for g in graphs) if FIXED else self.max_nodes
        kinds = torch.zeros(len(graphs), n, dtype=torch.long)
        adj = torch.zeros(len(graphs), n, n)
        mask = torch.zeros(len(graphs), n, 1)
        for row, g in enumerate(graphs):
            size = len(g["kinds"])
            kinds[row, :size] = torch.from_numpy(g["kinds"])
            a, b = torch.from_numpy(g["edges"]).unbind(1)
            adj[row, a, b] = 1.0
            adj[row, b, a] = 1.0
            adj[row, range(size), range(size)] = 1.0
            mask[row, :size] = 1.0
        degree = adj.sum(-1).clamp_min(1.0).rsqrt()
        adj = degree.unsqueeze(-1) * adj * degree.unsqueeze(-2)
        y = torch.tensor([g["y"] for g in graphs])
        return kinds, adj, mask, (y - self.centre) / self.scale


def endless(graphs, batch, collate, seed):
    gen = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(graphs), generator=gen).tolist()
        for i in range(0, len(order) - batch + 1, batch):
            yield collate([graphs[j] for j in order[i : i + batch]])
