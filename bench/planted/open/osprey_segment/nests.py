"""Aerial pictures of osprey nests, with their outline; augmented when they are read."""

import math

import torch
from torch.utils.data import Dataset


class Compose:
    def __init__(self, *steps) -> None:
        self.steps = steps

    def __call__(self, picture, outline, generator):
        for step in self.steps:
            picture, outline = step(picture, outline, generator)
        return picture, outline


def flip(picture, outline, generator):
    if torch.rand((), generator=generator) < 0.5:
        return picture.flip(-1), outline.flip(-1)
    return picture, outline


def crop(picture, outline, generator, size: int = 64):
    top, left = torch.randint(picture.shape[-1] - size + 1, (2,), generator=generator).tolist()
    return picture[:, top : top + size, left : left + size], outline[top : top + size, left : left + size]


def light(picture, outline, generator):
    gain, shift = torch.rand(2, generator=generator).tolist()
    return picture * (0.8 + 0.4 * gain) + 0.2 * (shift - 0.5), outline


class Nests(Dataset):
    def __init__(self, count: int, size: int, seed: int, train: bool) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        axis = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        self.pictures, self.outlines = [], []
        for _ in range(count):
            cx, cy, radius, turn = (torch.rand(4, generator=self.generator) - 0.5).tolist()
            angle = torch.atan2(y - cy, x - cx)
            edge = 0.35 + 0.2 * radius + 0.05 * torch.sin(5 * angle + 6 * turn)
            outline = torch.hypot(x - cx, y - cy) < edge
            twigs = torch.sin(40 * (x * math.cos(turn) + y * math.sin(turn)))
            picture = 0.3 * torch.randn(3, size, size, generator=self.generator) + outline * (0.4 + 0.3 * twigs)
            self.pictures.append(picture)
            self.outlines.append(outline.float())
        self.change = Compose(flip, crop, light) if train else None

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        picture, outline = self.pictures[index], self.outlines[index]
        return self.change(picture, outline, self.generator) if self.change else (picture, outline)
