import torch
from torch import nn


class Echo(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 5, padding=2 * reach, dilation=reach)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.mix(torch.relu(self.conv(x)))


class Listener(nn.Module):
    def __init__(self, bands, clans, width=48, depth=4):
        super().__init__()
        self.enter = nn.Conv1d(bands, width, 1)
        self.echoes = nn.Sequential(*(Echo(width, 2**k) for k in range(depth)))
        self.leave = nn.Linear(width, clans)

    def forward(self, sound, frames):
        heard = self.echoes(self.enter(sound))
        there = torch.arange(sound.size(-1)) < frames[:, None]
        mean = (heard * there[:, None]).sum(-1) / frames[:, None]
        return self.leave(mean)
