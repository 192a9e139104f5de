import torch
from torch import nn


class ChorusNet(nn.Module):
    def __init__(self, bands, channels, hidden, species):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(bands, channels, 3, padding=1),
            nn.GroupNorm(4, channels),
            nn.GELU(),
            nn.Conv1d(channels, channels, 3, stride=2, padding=1),
            nn.GroupNorm(4, channels),
            nn.GELU(),
        )
        self.rnn = nn.GRU(channels, hidden, batch_first=True)
        self.head = nn.Linear(2 * hidden, species)

    def forward(self, x):
        states, last = self.rnn(self.front(x).transpose(1, 2))
        return self.head(torch.cat([states.mean(1), last[-1]], dim=1))
