from torch import nn


class FruitNet(nn.Module):
    """Small picture, wide head: the scales' camera is 24 x 24 pixels, in three colours."""

    def __init__(self, fruits, width=18, hidden=720):
        super().__init__()
        self.eyes = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(width * 36, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, fruits)
        )

    def forward(self, x):
        return self.head(self.eyes(x))
