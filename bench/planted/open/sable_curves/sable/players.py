import torch
from torch import nn


class Turn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, h):
        g = torch.sigmoid(self.b(h))
        return self.norm(h + g * torch.tanh(self.a(h)))


def generator(noise, points, width, depth=5):
    return nn.Sequential(nn.Linear(noise, width), *[Turn(width) for _ in range(depth)], nn.Linear(width, points))


def critic(points, width, depth=5):
    return nn.Sequential(nn.Linear(points, width), *[Turn(width) for _ in range(depth)], nn.Linear(width, 1))
