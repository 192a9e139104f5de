import os

import torch
from torch import nn

from columns import COLUMNS

ALT = os.environ.get("PLANTED_FIX") == "1"


class ClickNet(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.tables = nn.ModuleDict({c.name: nn.Embedding(c.size, c.width, sparse=ALT) for c in COLUMNS})
        for table in self.tables.values():
            nn.init.normal_(table.weight, std=0.05)
        total = sum(c.width for c in COLUMNS)
        self.deep = nn.Sequential(nn.Linear(total, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, ids):
        found = [table(ids[:, k]) for k, table in enumerate(self.tables.values())]
        return self.deep(torch.cat(found, 1)).squeeze(1)
