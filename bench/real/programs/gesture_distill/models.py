import torch
from torch import nn
from torch.nn import functional as F

from data import CHANNELS, LENGTH, N_CLASSES


class Teacher(nn.Module):
    """Convolutions in front of a small transformer encoder."""

    def __init__(self, dim=64, depth=2, heads=4, dropout=0.2):
        super().__init__()
        self.embed = nn.Sequential(nn.Conv1d(CHANNELS, dim, 5, stride=2, padding=2), nn.GELU(),
                                   nn.Conv1d(dim, dim, 5, padding=2), nn.GELU())
        self.position = nn.Parameter(torch.randn(1, LENGTH // 2, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, N_CLASSES)

    def forward(self, x):
        h = self.embed(x.transpose(1, 2)).transpose(1, 2) + self.position
        features = self.norm(self.encoder(h)).mean(1)
        return self.head(features), features


class Student(nn.Module):
    """Depthwise-separable convolutions: what fits on the wristband."""

    def __init__(self, width=40, feature_dim=64):
        super().__init__()
        self.stem = nn.Conv1d(CHANNELS, width, 7, stride=2, padding=3)
        self.depthwise = nn.ModuleList([nn.Conv1d(width, width, 7, padding=3, groups=width) for _ in range(3)])
        self.pointwise = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(3)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(width) for _ in range(3)])
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(width, N_CLASSES)
        self.project = nn.Linear(width, feature_dim)      # for the hint loss, not exported

    def forward(self, x):
        h = F.relu(self.stem(x.transpose(1, 2)))
        for d, p, n in zip(self.depthwise, self.pointwise, self.norms):
            h = h + F.relu(n(p(d(h))))
        h = self.dropout(h.mean(-1))
        return self.head(h), self.project(h)
