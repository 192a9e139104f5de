import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 7, padding=3)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, h):
        return h + self.mix(torch.relu(self.conv(h)))


class EchoNet(nn.Module):
    """Convolutions over the ping, then the mean over its own samples."""

    def __init__(self, width=56, depth=4, kinds=6):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 9, padding=4)
        self.layers = nn.Sequential(*[Layer(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, kinds))

    def forward(self, x, length):
        h = self.layers(self.stem(x[:, None]))
        inside = (torch.arange(x.shape[1]) < length[:, None])[:, None]
        mean = (h * inside).sum(-1) / length[:, None]
        top = h.masked_fill(~inside, -1e4).amax(-1)
        return self.head(torch.cat([mean, top], 1))
