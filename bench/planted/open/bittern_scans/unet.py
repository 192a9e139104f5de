import torch
import torch.nn.functional as F
from torch import nn


def pair(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two, self.three = pair(3, width), pair(width, 2 * width), pair(2 * width, 3 * width)
        self.up = pair(5 * width, 2 * width)
        self.top = pair(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.one(x)
        b = self.two(F.max_pool2d(a, 2))
        c = self.three(F.max_pool2d(b, 2))
        b = self.up(torch.cat([b, F.interpolate(c, scale_factor=2)], 1))
        a = self.top(torch.cat([a, F.interpolate(b, scale_factor=2)], 1))
        return self.out(a).squeeze(1)


def dice(logits, truth):
    chance = torch.sigmoid(logits)
    both = (chance * truth).sum((1, 2))
    return 1 - (2 * both + 1) / (chance.sum((1, 2)) + truth.sum((1, 2)) + 1)
