"""Striped images in six directions, cropped and flipped at random."""

import math

import torch
from torch.utils.data import Dataset

CLASSES = 6
FULL = 20
CROP = 16
MEAN = (0.02, 0.01, 0.0)
STD = (1.05, 1.0, 1.1)


def make_images(count, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (count,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(float(FULL)), torch.arange(float(FULL)), indexing="ij")
    images = torch.empty(count, 3, FULL, FULL)
    for i, label in enumerate(labels.tolist()):
        angle = label * math.pi / CLASSES + 0.25 * torch.randn((), generator=g).item()
        phase = 6.28 * torch.rand((), generator=g).item()
        wave = torch.sin((xx * math.cos(angle) + yy * math.sin(angle)) * 0.9 + phase)
        noise = torch.randn(3, FULL, FULL, generator=g)
        images[i] = torch.stack([wave, wave.roll(1, 0), wave.roll(1, 1)]) + 0.9 * noise
    return images, labels


def crop_and_flip(image, top, left, flip):
    rows = []
    for channel in range(image.shape[0]):
        plane = torch.stack([image[channel, r, left : left + CROP] for r in range(top, top + CROP)])
        rows.append(plane.flip(-1) if flip else plane)
    return torch.stack(rows)


class Stripes(Dataset):
    def __init__(self, count, seed, train):
        self.images, self.labels = make_images(count, seed)
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.train:
            top = torch.randint(0, FULL - CROP + 1, (1,)).item()
            left = torch.randint(0, FULL - CROP + 1, (1,)).item()
            flip = torch.rand(1).item() < 0.5
        else:
            top, left, flip = 2, 2, False
        image = crop_and_flip(image, top, left, flip)
        mean = torch.tensor(MEAN).view(3, 1, 1)
        std = torch.tensor(STD).view(3, 1, 1)
        return (image - mean) / std, int(self.labels[i])
