import torch
from torch import nn


class Field(nn.Module):
    """Fourier features, then a plain network."""

    def __init__(self, width: int, layers: int, seed: int):
        super().__init__()
        spread = torch.randn(3, width // 2, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("spread", spread * torch.tensor([4.0, 4.0, 1.5])[:, None])
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.leave = nn.Linear(width, 1)

    def features(self, inputs):
        angle = inputs @ self.spread
        return torch.cat([angle.sin(), angle.cos()], 1)

    def forward(self, features):
        h = features
        for layer in self.layers:
            h = h + torch.relu(layer(h))
        return self.leave(h).squeeze(-1)
