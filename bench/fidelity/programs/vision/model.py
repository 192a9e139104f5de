"""A small convolutional classifier."""

import torch.nn as nn


class ConvNet(nn.Module):
    def __init__(self, classes, width=16, dropout=0.2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.body = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
        )
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.body(self.stem(x))
        x = self.pool(x).flatten(1)
        return self.head(self.dropout(x))
