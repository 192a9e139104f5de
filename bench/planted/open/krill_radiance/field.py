import torch
from torch import nn


class RadianceField(nn.Module):
    def __init__(self, octaves=8, width=320, depth=6):
        super().__init__()
        self.register_buffer("octaves", 2.0 ** torch.arange(octaves))
        first = 3 + 6 * octaves
        self.layers = nn.ModuleList()
        for i in range(depth):
            self.layers.append(nn.Linear(first if i == 0 else width + (first if i == depth // 2 else 0), width))
        self.rgb = nn.Linear(width, 3)

    def encode(self, points):
        angles = (points.unsqueeze(-1) * self.octaves).flatten(1)
        return torch.cat([points, angles.sin(), angles.cos()], dim=1)

    def forward(self, points):
        code = self.encode(points)
        h = code
        for i, layer in enumerate(self.layers):
            if i and i == len(self.layers) // 2:
                h = torch.cat([h, code], dim=1)
            h = torch.relu(layer(h))
        return torch.sigmoid(self.rgb(h))
