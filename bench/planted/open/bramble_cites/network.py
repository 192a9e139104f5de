import os

import torch
import torch.nn as nn
import torch.nn.functional as F

from layers import GraphLayer, propagation

FIX = os.environ.get("PLANTED_FIX") == "1"


class CitationNet(nn.Module):
    """Topics of papers from their words and what they cite."""

    def __init__(self, words: int, hidden: int, topics: int, depth: int = 3, dropout: float = 0.4):
        super().__init__()
        sizes = [words] + [hidden] * (depth - 1) + [topics]
        self.layers = nn.ModuleList(GraphLayer(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True))
        self.second_hop = 0.3
        self.dropout = dropout
        self.mixed = None

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        if FIX:
            if self.mixed is None:
                self.mixed = propagation(edges, x.size(0), self.second_hop)
            p = self.mixed
        else:
            p = propagation(edges, x.size(0), self.second_hop)
        for number, layer in enumerate(self.layers):
            x = F.dropout(x, self.dropout, self.training)
            x = layer(x, p)
            if number + 1 < len(self.layers):
                x = F.elu(x)
        return x
