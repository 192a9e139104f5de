import torch
from torch import nn


class Melody(nn.Module):
    """Dilated convolutions over notes."""

    def __init__(self, notes=128, width=48, depth=3):
        super().__init__()
        self.embed = nn.Embedding(notes, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 3, padding=2**k, dilation=2**k) for k in range(depth))
        self.head = nn.Linear(width, notes)

    def forward(self, notes):
        h = self.embed(notes).transpose(1, 2)
        for conv in self.convs:
            h = h + torch.tanh(conv(h))
        return self.head(h.transpose(1, 2))
