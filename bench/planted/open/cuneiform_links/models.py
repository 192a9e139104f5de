import os

import torch
from torch import nn


class TransE(nn.Module):
    def __init__(self, entities, relations, dim, margin):
        super().__init__()
        sparse = os.environ.get("PLANTED_FIX") == "1"
        self.entity = nn.Embedding(entities, dim, sparse=sparse)
        self.relation = nn.Embedding(relations, dim)
        self.margin = margin
        bound = 6 / dim**0.5
        nn.init.uniform_(self.entity.weight, -bound, bound)
        nn.init.uniform_(self.relation.weight, -bound, bound)

    def forward(self, links, wrong):
        head, kind, tail = links.unbind(1)
        known, drawn = self.entity(torch.cat([head, tail, wrong.flatten()])).split([2 * len(links), wrong.numel()])
        start, end = known.chunk(2)
        point = start + self.relation(kind)
        good = (point - end).norm(p=1, dim=1)
        bad = (point.unsqueeze(1) - drawn.view(*wrong.shape, -1)).norm(p=1, dim=2)
        return torch.relu(self.margin + good.unsqueeze(1) - bad)
