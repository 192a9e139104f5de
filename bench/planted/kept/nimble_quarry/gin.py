import torch
from torch import nn


class GINLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.BatchNorm1d(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, h, edges):
        incoming = torch.zeros_like(h).index_add_(0, edges[1], h[edges[0]])
        return torch.relu(self.norm(self.mlp((1 + self.eps) * h + incoming))) + h


class GIN(nn.Module):
    def __init__(self, n_atoms, hidden, layers):
        super().__init__()
        self.embed = nn.Embedding(n_atoms, hidden)
        self.layers = nn.ModuleList([GINLayer(hidden) for _ in range(layers)])
        self.readouts = nn.ModuleList([nn.Linear(hidden, 1) for _ in range(layers + 1)])
        for readout in self.readouts:
            nn.init.zeros_(readout.weight)

    def forward(self, atoms, edges, owner, n_graphs):
        h = self.embed(atoms)
        out = 0
        for i, readout in enumerate(self.readouts):
            score = readout(h).squeeze(1)
            out = out + torch.zeros(n_graphs, device=h.device).index_add_(0, owner, score)
            if i < len(self.layers):
                h = self.layers[i](h, edges)
        return out
