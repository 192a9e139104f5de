import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, width, out=64):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 4, stride=4), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(width, width * 2, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width * 2, width * 4, 3, padding=1), nn.ReLU()
        )
        self.head = nn.Linear(width * 4, out)

    def forward(self, x):
        return F.normalize(self.head(self.body(self.stem(x)).mean((2, 3))), dim=1)


def contrast(a, b, temperature):
    logits = a @ b.T / temperature
    target = torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
