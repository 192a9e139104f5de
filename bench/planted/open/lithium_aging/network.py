from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(x)


class AgingNet(nn.Module):
    """Past window of all curves in, the capacity of the coming cycles out."""

    def __init__(self, inputs, horizon, width, blocks):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width),
            *[Residual(width) for _ in range(blocks)],
            nn.LayerNorm(width),
            nn.Linear(width, horizon),
        )

    def forward(self, past):
        return self.layers(past)
