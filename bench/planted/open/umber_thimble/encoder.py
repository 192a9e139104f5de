import torch
from torch import nn


def columns(field):
    """A field of a batch as a float matrix, one row a core."""
    rows = torch.stack(field, 1) if isinstance(field, list) else field
    return rows.float()


class Indices(nn.Module):
    """Widths to growth indices: logarithm less the core's mean, by its spread."""

    def forward(self, widths):
        logs = widths.clamp(min=1).log()
        return (logs - logs.mean(1, keepdim=True)) / (logs.std(1, keepdim=True) + 1e-3)


class RingEncoder(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.indices = Indices()
        self.body = nn.Sequential(
            nn.Conv1d(1, channels, 16, stride=8, padding=4),
            nn.GELU(),
            nn.Conv1d(channels, channels, 4, stride=2, padding=1),
            nn.GELU(),
            nn.Conv1d(channels, 2 * channels, 4, stride=2, padding=1),
            nn.GELU(),
        )
        self.head = nn.Sequential(nn.Linear(2 * channels, 128), nn.GELU(), nn.Linear(128, out))

    def forward(self, widths):
        features = self.body(self.indices(widths)[:, None])
        return nn.functional.normalize(self.head(features.mean(-1)), dim=-1)
