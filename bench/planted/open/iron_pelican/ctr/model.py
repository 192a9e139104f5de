import torch
import torch.nn as nn


class ClickModel(nn.Module):
    def __init__(self, cardinalities, numeric, dim, hidden):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(c, dim, sparse=True) for c in cardinalities])
        for table in self.tables:
            nn.init.normal_(table.weight, std=0.02)
        width = dim * len(cardinalities) + numeric
        layers = []
        for h in hidden:
            layers += [nn.Linear(width, h), nn.ReLU()]
            width = h
        layers.append(nn.Linear(width, 1))
        self.mlp = nn.Sequential(*layers)

    def forward(self, cat, num):
        parts = [table(cat[:, i]) for i, table in enumerate(self.tables)]
        return self.mlp(torch.cat(parts + [num], dim=1)).squeeze(1)
