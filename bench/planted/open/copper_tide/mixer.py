"""A mixer over patches of the past."""

import torch
from torch import nn


class MixerLayer(nn.Module):
    def __init__(self, patches: int, width: int, expansion: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_time = nn.Sequential(nn.Linear(patches, expansion * patches), nn.GELU(), nn.Linear(expansion * patches, patches))
        self.over_features = nn.Sequential(nn.Linear(width, expansion * width), nn.GELU(), nn.Linear(expansion * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.over_time(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_features(self.between(x))


class PatchMixer(nn.Module):
    def __init__(self, past: int, future: int, patch: int, width: int, layers: int, expansion: int) -> None:
        super().__init__()
        self.patch, patches = patch, past // patch
        self.embed = nn.Linear(patch, width)
        self.layers = nn.Sequential(*(MixerLayer(patches, width, expansion) for _ in range(layers)))
        self.head = nn.Linear(patches * width, future)

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        level = past[:, -24:].mean(-1, keepdim=True)
        x = self.embed((past - level).unfold(1, self.patch, self.patch))
        return self.head(self.layers(x).flatten(1)) + level
