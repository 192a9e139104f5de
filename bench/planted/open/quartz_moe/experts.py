import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Routed(nn.Module):
    """Each row through its best experts, weighted by the router; rows are gathered per expert."""

    def __init__(self, width, inner, experts, best):
        super().__init__()
        self.experts = nn.ModuleList([Expert(width, inner) for _ in range(experts)])
        self.router = nn.Linear(width, experts, bias=False)
        self.best = best
        self.load = torch.zeros(experts)

    def forward(self, x):
        share = self.router(x).float().softmax(-1)
        weight, chosen = share.topk(self.best, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            row, slot = torch.nonzero(chosen == number, as_tuple=True)
            if len(row) == 0:
                continue
            out = out.index_add(0, row, (expert(x[row]) * weight[row, slot, None]).to(x.dtype))
        used = torch.zeros_like(share).scatter(1, chosen, 1.0).mean(0)
        self.load = used.detach()
        return out, len(self.experts) * (used * share.mean(0)).sum()


class Mixture(nn.Module):
    def __init__(self, points, minerals, width=256, inner=768, experts=4, depth=2):
        super().__init__()
        self.lift = nn.Linear(points, width)
        self.layers = nn.ModuleList([Routed(width, inner, experts, 2) for _ in range(depth)])
        self.head = nn.Linear(width, minerals)

    def forward(self, x):
        h, balance = torch.relu(self.lift(x)), 0.0
        for layer in self.layers:
            moved, uneven = layer(h)
            h = h + moved
            balance = balance + uneven
        return self.head(h), balance
