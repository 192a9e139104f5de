"""Embeddings per field, pairwise interactions, and an MLP on top (DLRM in small)."""
import os

import torch
from torch import nn


class FieldEmbeddings(nn.Module):
    def __init__(self, sizes, dim):
        super().__init__()
        sparse = os.environ.get("PLANTED_FIX") == "1"
        self.tables = nn.ModuleList([nn.Embedding(n, dim, sparse=sparse) for n in sizes])
        for t in self.tables:
            nn.init.normal_(t.weight, std=0.05)

    def forward(self, ids):
        return torch.stack([t(ids[:, i]) for i, t in enumerate(self.tables)], dim=1)


def mlp(sizes, last_relu):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if last_relu or i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class ClickModel(nn.Module):
    def __init__(self, sizes, dim, hidden, n_numeric=8):
        super().__init__()
        self.embed = FieldEmbeddings(sizes, dim)
        self.bottom = mlp([n_numeric, 64, dim], last_relu=True)
        n = len(sizes) + 1
        self.register_buffer("pairs", torch.triu_indices(n, n, offset=1), persistent=False)
        self.top = mlp([n * dim + self.pairs.shape[1], *hidden, 1], last_relu=False)

    def forward(self, ids, numeric):
        v = torch.cat([self.embed(ids), self.bottom(numeric).unsqueeze(1)], dim=1)
        dots = torch.bmm(v, v.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([v.flatten(1), dots], dim=1)).squeeze(1)
