"""A small net without normalisation layers: residual branches that start at zero (SkipInit)."""

from torch import nn
from torch.nn import functional as F
import torch


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1)
        self.b = nn.Conv2d(channels, channels, 3, padding=1)
        self.skip_gain = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.skip_gain * self.b(F.relu(self.a(F.relu(x))))


class PlateNet(nn.Module):
    def __init__(self, widths=(24, 48, 96), depth=3, classes=6):
        super().__init__()
        stages, previous = [nn.Conv2d(1, widths[0], 3, stride=2, padding=1)], widths[0]
        for i, width in enumerate(widths):
            if i:
                stages.append(nn.Conv2d(previous, width, 3, stride=2, padding=1))
            stages.extend(Residual(width) for _ in range(depth))
            previous = width
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(previous, classes)
        for conv in self.modules():
            if isinstance(conv, nn.Conv2d):
                nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
                nn.init.zeros_(conv.bias)

    def forward(self, x):
        return self.head(F.relu(self.stages(x)).mean(dim=(2, 3)))
