import torch
from torch import nn
from torch.nn import functional as F


class Fold(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Tower(nn.Module):
    def __init__(self, inputs, width, inner, depth):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.folds = nn.Sequential(*(Fold(width, inner) for _ in range(depth)))

    def forward(self, x):
        return F.normalize(self.folds(self.enter(x)), dim=-1)


class Pairing(nn.Module):
    def __init__(self, wing, place, width, inner, depth):
        super().__init__()
        self.wing = Tower(wing, width, inner, depth)
        self.place = Tower(place, width, inner, depth)
        self.heat = nn.Parameter(torch.tensor(2.0))

    def forward(self, wing, place):
        return self.heat.exp() * self.wing(wing) @ self.place(place).T


def info_nce(scores):
    goal = torch.arange(len(scores))
    return 0.5 * (F.cross_entropy(scores, goal) + F.cross_entropy(scores.T, goal))
