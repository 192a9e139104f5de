import torch
from torch import nn


class MeanHop(nn.Module):
    """Mean of the neighbours and the node itself, both through linear maps."""

    def __init__(self, wide, out):
        super().__init__()
        self.own = nn.Linear(wide, out)
        self.near = nn.Linear(wide, out, bias=False)

    def forward(self, x, src, dst):
        h = self.near(x)
        total = torch.zeros_like(h).index_add_(0, dst, h[src])
        degree = torch.bincount(dst, minlength=len(x)).clamp(min=1)
        return self.own(x) + total / degree[:, None]


class LoftNet(nn.Module):
    def __init__(self, inputs, width, lofts):
        super().__init__()
        self.first = MeanHop(inputs, width)
        self.second = MeanHop(width, lofts)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.3)

    def forward(self, x, src, dst):
        h = torch.relu(self.norm(self.first(x, src, dst)))
        return self.second(self.drop(h), src, dst)
