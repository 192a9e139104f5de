import torch
from torch import nn


class SegNet(nn.Module):
    """Convolutions, with a wide bottleneck that sees the whole picture."""

    def __init__(self, width: int = 16, bottleneck: int = 384):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU()
        )
        self.squeeze = nn.Linear(width * 64, bottleneck)
        self.spread = nn.Linear(bottleneck, width * 64)
        self.up = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 8, 4, stride=4),
            nn.ReLU(),
            nn.Conv2d(11, 1, 3, padding=1),
        )

    def forward(self, x):
        h = self.down(x)
        whole = self.spread(torch.relu(self.squeeze(h.flatten(1)))).view_as(h)
        for i, layer in enumerate(self.up):
            h = layer(torch.cat([h, whole], 1)) if i == 0 else layer(torch.cat([h, x], 1)) if i == len(self.up) - 1 else layer(h)
        return h.squeeze(1)
