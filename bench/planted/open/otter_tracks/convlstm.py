import torch
from torch import nn


class ConvLSTM(nn.Module):
    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(inputs + width, 4 * width, 3, padding=1)

    def forward(self, films):
        b, t, _, rows, cols = films.shape
        h = c = films.new_zeros(b, self.width, rows, cols)
        for k in range(t):
            i, f, o, g = self.gates(torch.cat([films[:, k], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


class Tracker(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.squeeze = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.memory = ConvLSTM(8, width)
        self.out = nn.Sequential(nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(width * 36, 2))

    def forward(self, films):
        b, t = films.shape[:2]
        small = torch.relu(self.squeeze(films.flatten(0, 1))).unflatten(0, (b, t))
        return self.out(self.memory(small))
