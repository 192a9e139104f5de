import os

import torch
from torch import nn

SIZES = {"shopper": 90_000, "product": 40_000, "store": 6_000}
SPARSE = os.environ.get("PLANTED_FIX") == "1"


class Ranker(nn.Module):
    def __init__(self, width=24, dense=12):
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(rows, width, sparse=SPARSE) for name, rows in SIZES.items()})
        for table in self.tables.values():
            nn.init.normal_(table.weight, std=0.05)
        self.bottom = nn.Sequential(nn.Linear(dense, 48), nn.ReLU(), nn.Linear(48, width))
        pairs = 6
        self.top = nn.Sequential(nn.Linear(4 * width + pairs, 192), nn.ReLU(), nn.Linear(192, 96), nn.ReLU(), nn.Linear(96, 1))
        self.register_buffer("upper", torch.triu_indices(4, 4, offset=1), persistent=False)

    def forward(self, ids, dense):
        parts = [table(ids[name]) for name, table in self.tables.items()]
        parts.append(self.bottom(dense))
        stack = torch.stack(parts, 1)
        crossed = (stack @ stack.transpose(1, 2))[:, self.upper[0], self.upper[1]]
        return self.top(torch.cat([stack.flatten(1), crossed], 1)).squeeze(1)
