import torch
from torch import nn

from .registry import MODELS


class Message(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(1, width)
        self.mix = nn.Linear(2 * width, width)

    def forward(self, h, batch):
        sent = h[batch.source] * torch.sigmoid(self.gate(batch.lengths.unsqueeze(1)))
        heard = torch.zeros_like(h).index_add_(0, batch.target, sent)
        return h + self.mix(torch.cat([h, heard / 10], 1)).relu()


@MODELS.register("mpnn")
class Mpnn(nn.Module):
    def __init__(self, kinds=8, width=32, rounds=2):
        super().__init__()
        self.embed = nn.Embedding(kinds, width)
        self.rounds = nn.ModuleList(Message(width) for _ in range(rounds))
        self.read = nn.Linear(width, 1)

    def forward(self, batch):
        h = self.embed(batch.atoms)
        for message in self.rounds:
            h = message(h, batch)
        total = h.new_zeros(len(batch.energy), h.shape[1]).index_add_(0, batch.owner, h)
        counts = torch.bincount(batch.owner, minlength=len(batch.energy)).unsqueeze(1)
        return self.read(total / counts).squeeze(1)
