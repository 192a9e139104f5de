import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.conv = nn.Conv2d(before, after, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(after)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class UNet(nn.Module):
    def __init__(self, width=10, classes=3):
        super().__init__()
        self.first = Block(1, width)
        self.second = Block(width, 2 * width)
        self.middle = Block(2 * width, 2 * width)
        self.drop = nn.Dropout2d(0.1)
        self.last = Block(3 * width, width)
        self.head = nn.Conv2d(width, classes, 1)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, x):
        full = self.first(x)
        half = self.second(self.pool(full))
        half = self.drop(self.middle(half))
        return self.head(self.last(torch.cat([full, self.up(half)], 1)))
