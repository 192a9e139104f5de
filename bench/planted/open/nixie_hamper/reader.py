"""Characters to lines, lines to an envelope, an envelope to its sorting office."""

import os

import torch
from torch import nn
from torch.nn import functional as F

from mailbag import ALPHABET


class LineReader(nn.Module):
    def __init__(self, width, channels):
        super().__init__()
        self.sign = nn.Embedding(ALPHABET, width, padding_idx=0)
        self.near = nn.Conv1d(width, channels, 5, padding=2)
        self.far = nn.Conv1d(channels, channels, 5, padding=2)

    def forward(self, text):
        h = self.sign(text).transpose(1, 2)
        h = F.relu(self.near(h))
        h = F.relu(self.far(h))
        return h.amax(-1)


class Sorter(nn.Module):
    def __init__(self, conf, lines, offices):
        super().__init__()
        channels, hidden = conf.getint("channels"), conf.getint("hidden")
        self.line = LineReader(conf.getint("letters_width"), channels)
        self.place = nn.Parameter(torch.randn(lines, channels) * 0.02)
        self.weigh = nn.Sequential(nn.Linear(channels, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.office = nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, offices))

    def lines(self, envelopes):
        text, inked = envelopes.text, envelopes.inked
        if os.environ.get("PLANTED_FIX") == "1":
            read = self.line(text[inked])
            return read.new_zeros(*inked.shape, read.shape[-1]).masked_scatter(inked[..., None], read)
        return self.line(text.flatten(0, 1)).unflatten(0, inked.shape)

    def forward(self, envelopes):
        h = self.lines(envelopes) + self.place
        weight = self.weigh(h).squeeze(-1).masked_fill(~envelopes.inked, float("-inf")).softmax(-1)
        return self.office((weight[..., None] * h).sum(1))
