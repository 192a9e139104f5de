"""From bathymetry and flow to where sediment settles: mixing over patches and over channels."""

import torch
from torch import nn


class PatchMix(nn.Module):
    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(self.norm(x).transpose(1, 2)).transpose(1, 2)


class ChannelMix(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(self.norm(x))


class Reach(nn.Module):
    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.patch, self.channel = PatchMix(patches, width), ChannelMix(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.channel(self.patch(x))


class Branch(nn.Module):
    def __init__(self, patches: int, width: int, reaches: int) -> None:
        super().__init__()
        self.reaches = nn.ModuleList(Reach(patches, width) for _ in range(reaches))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for reach in self.reaches:
            x = reach(x)
        return x


class Delta(nn.Module):
    def __init__(self, fields: int, side: int, patch: int, width: int, branches: int, reaches: int) -> None:
        super().__init__()
        self.patch = patch
        patches = (side // patch) ** 2
        self.lift = nn.Linear(fields * patch * patch, width)
        self.branches = nn.ModuleList(Branch(patches, width, reaches) for _ in range(branches))
        self.lower = nn.Linear(width, patch * patch)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        p = self.patch
        x = nn.functional.unfold(maps, p, stride=p).transpose(1, 2)
        x = self.lift(x)
        for branch in self.branches:
            x = branch(x)
        x = self.lower(x).transpose(1, 2)
        return nn.functional.fold(x, maps.shape[-2:], p, stride=p)
