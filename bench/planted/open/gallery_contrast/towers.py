import math

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, inputs, width, out):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, out)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return nn.functional.normalize(self.out(x), dim=1)


class Pair(nn.Module):
    def __init__(self, pictures, captions, width=768, out=256):
        super().__init__()
        self.pictures, self.captions = Tower(pictures, width, out), Tower(captions, width, out)
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, pictures, captions):
        return self.pictures(pictures), self.captions(captions)
