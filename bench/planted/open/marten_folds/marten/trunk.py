import torch
from torch import nn

from .attend import Attend


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attend = Attend(heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.out(self.attend(*self.qkv(self.n1(x)).chunk(3, -1)))
        return x + self.mlp(self.n2(x))


class Trunk(nn.Module):
    """Predicts the next residue of a protein."""

    def __init__(self, residues=20, width=96, heads=6, layers=3, positions=512):
        super().__init__()
        self.residue, self.place = nn.Embedding(residues, width), nn.Parameter(0.02 * torch.randn(positions, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, residues))

    def forward(self, x):
        return self.head(self.layers(self.residue(x) + self.place[: x.shape[1]]))
