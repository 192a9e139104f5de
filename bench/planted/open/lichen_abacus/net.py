import torch
from torch import nn


class Pull(nn.Module):
    """One exchange along the threads."""

    def __init__(self, width):
        super().__init__()
        self.say = nn.Linear(width, width)
        self.weigh = nn.Linear(4, width)
        self.hear = nn.Linear(width, width)

    def forward(self, state, threads, twist):
        source, sink = threads
        words = self.say(state)[source] * torch.sigmoid(self.weigh(twist))
        return state + torch.tanh(self.hear(torch.zeros_like(state).index_add(0, sink, words)))


class Tension(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.pull = Pull(width)
        self.leave = nn.Linear(width, 1)

    def forward(self, pattern):
        state = self.pull(torch.tanh(self.enter(pattern.pins)), pattern.threads, pattern.twist)
        return self.leave(state).squeeze(-1)
