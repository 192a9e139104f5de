import torch
from torch import nn

from fleece import GRADES


class Along(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.mix = nn.Conv1d(width, width, 3, padding=reach, dilation=reach)
        self.norm = nn.GroupNorm(8, width)

    def forward(self, h):
        return h + torch.relu(self.norm(self.mix(h)))


class Classer(nn.Module):
    """Ordinal: one threshold between each two grades."""

    def __init__(self, width):
        super().__init__()
        self.enter = nn.Conv1d(4, width, 5, padding=2)
        self.along = nn.Sequential(*(Along(width, reach) for reach in (1, 2, 4)))
        self.drop = nn.Dropout(0.1)
        self.quality = nn.Linear(2 * width, 1)
        self.steps = nn.Parameter(torch.linspace(-2, 2, GRADES - 1))

    def forward(self, seen):
        h = self.along(self.enter(seen))
        h = torch.cat([h.mean(-1), h.amax(-1)], -1)
        return self.quality(self.drop(h)) - self.steps


def ordinal_loss(logits, grade):
    above = (grade[:, None] > torch.arange(GRADES - 1)).float()
    return nn.functional.binary_cross_entropy_with_logits(logits, above)


def called(logits):
    return (logits > 0).sum(-1)
