"""Belly patterns of crested newts: each animal has its own spots; pairs of pictures of the same one."""

import torch
from torch.utils.data import Dataset


class Newts(Dataset):
    def __init__(self, animals: int = 120, views: int = 12, size: int = 20, seed: int = 0):
        g = torch.Generator().manual_seed(seed)
        base = (torch.rand(animals, 1, size // 2, size // 2, generator=g) < 0.3).float()
        base = torch.nn.functional.interpolate(base, scale_factor=2, mode="bilinear", align_corners=False)
        self.images = (base.unsqueeze(1) + 0.4 * torch.randn(animals, views, 1, size, size, generator=g)).flatten(0, 1)
        self.animal = torch.arange(animals).repeat_interleave(views)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.animal[i]
