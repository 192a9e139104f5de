"""A model of visits: a GRU over the items seen, scores by dot product."""

import torch
from torch import nn


class VisitModel(nn.Module):
    def __init__(self, items: int, width: int, layers: int) -> None:
        super().__init__()
        self.items = nn.Embedding(items + 1, width, padding_idx=0)
        self.bias = nn.Parameter(torch.zeros(items + 1))
        self.memory = nn.GRU(width, width, layers, batch_first=True)
        self.query = nn.Linear(width, width)
        nn.init.normal_(self.items.weight, std=width**-0.5)

    def forward(self, seen: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        states, _ = self.memory(self.items(seen))
        query = self.query(states[:, -1]).unsqueeze(-1)
        return (self.items(candidates) @ query).squeeze(-1) + self.bias[candidates]


def figures(scores: torch.Tensor) -> dict[str, float]:
    """Mean reciprocal rank and hit rate of the target, which comes first."""
    rank = 1 + (scores[:, 1:] >= scores[:, :1]).sum(-1)
    return {"mrr": rank.reciprocal().mean().item(), "hit": (rank == 1).float().mean().item()}
