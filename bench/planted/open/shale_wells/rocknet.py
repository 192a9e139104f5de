import torch
from torch import nn


class RockNet(nn.Module):
    def __init__(self, width: int, rocks: int, depth: int = 4):
        super().__init__()
        self.enter = nn.Conv1d(3, width, 5, padding=2)
        self.layers = nn.ModuleList([nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i) for i in range(depth)])
        self.norms = nn.ModuleList([nn.GroupNorm(8, width) for _ in range(depth)])
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, rocks))

    def forward(self, x):
        x = self.enter(x)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.relu(norm(layer(x)))
        middle = x[..., x.shape[-1] // 2]
        return self.head(torch.cat([middle, x.amax(-1)], 1))
