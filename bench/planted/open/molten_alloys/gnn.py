"""A continuous-filter network over the joined graph."""

import torch
from torch import nn


class Interaction(nn.Module):
    def __init__(self, width: int, centres: int):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(centres, width), nn.SiLU(), nn.Linear(width, width))
        self.before = nn.Linear(width, width, bias=False)
        self.after = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, atoms, batch):
        messages = self.before(atoms)[batch.target] * self.filter(batch.smeared)
        gathered = torch.zeros_like(atoms).index_add_(0, batch.source, messages)
        return atoms + self.after(gathered)


class EnergyNet(nn.Module):
    def __init__(self, width: int, layers: int, centres: int):
        super().__init__()
        self.embed = nn.Embedding(6, width)
        self.layers = nn.ModuleList([Interaction(width, centres) for _ in range(layers)])
        self.read = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, batch):
        atoms = self.embed(batch.species)
        for layer in self.layers:
            atoms = layer(atoms, batch)
        each = self.read(atoms).squeeze(-1)
        total = each.new_zeros(batch.size).index_add_(0, batch.graph, each)
        return total / torch.bincount(batch.graph, minlength=batch.size)
