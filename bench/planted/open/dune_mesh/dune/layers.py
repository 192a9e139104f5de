import torch
from torch import nn


class DiffusionLayer(nn.Module):
    def __init__(self, family, width):
        super().__init__()
        self.family = family
        self.mix = nn.Linear(width * (1 + len(family.scales)), width)

    def forward(self, h):
        spread = torch.einsum("sij,bjw->biws", self.family.operators, h).flatten(2)
        return h + self.mix(torch.cat([h, spread], -1)).tanh() * 0.5


class DuneNet(nn.Module):
    def __init__(self, family, width, depth):
        super().__init__()
        self.lift = nn.Linear(4, width)
        self.layers = nn.ModuleList(DiffusionLayer(family, width) for _ in range(depth))
        self.drop = nn.Linear(width, 1)

    def forward(self, state, xyz):
        h = self.lift(torch.cat([state.unsqueeze(-1), xyz.expand(len(state), -1, -1)], -1))
        for layer in self.layers:
            h = layer(h)
        return state + self.drop(h).squeeze(-1)
