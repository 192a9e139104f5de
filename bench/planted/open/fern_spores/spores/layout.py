import torch
from torch import nn


class Layout(nn.Module):
    """Two coordinates for each spore, near ones near."""

    def __init__(self, count):
        super().__init__()
        self.place = nn.Embedding(count, 2)

    def forward(self, i, near, far):
        here = self.place(i)
        pull = (here[:, None] - self.place(near)).square().sum(-1)
        push = (here[:, None] - self.place(far)).square().sum(-1)
        return torch.log1p(pull).mean() - torch.log(push / (1 + push) + 1e-4).mean()
