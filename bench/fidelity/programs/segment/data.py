"""Synthetic microscopy tiles: discs and bars on a noisy background, three classes."""
import numpy as np
import torch
from torch.utils.data import Dataset

SIZE = 24


def draw(rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    image = rng.normal(0.0, 0.35, (SIZE, SIZE)) + rng.uniform(-0.3, 0.3)
    mask = np.zeros((SIZE, SIZE), dtype=np.int64)
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.uniform(4, SIZE - 4, 2)
        if rng.random() < 0.5:
            inside = (yy - cy) ** 2 + (xx - cx) ** 2 < rng.uniform(2.0, 4.5) ** 2
            mask[inside], image[inside] = 1, image[inside] + 0.9
        else:
            inside = (abs(yy - cy) < 1.6) & (abs(xx - cx) < rng.uniform(3, 7))
            mask[inside], image[inside] = 2, image[inside] + 0.7
    return image.astype(np.float32), mask


class Tiles(Dataset):
    """Tiles of one split; training tiles are flipped and turned at random each time they are drawn."""

    def __init__(self, count, seed, augment):
        rng = np.random.default_rng(seed)
        self.tiles = [draw(rng) for _ in range(count)]
        self.augment = augment

    def __len__(self):
        return len(self.tiles)

    def normalise(self, image):
        low, high = np.percentile(image, [2, 98])
        smooth = image.copy()
        for axis in (0, 1):
            smooth += 0.25 * (np.roll(image, 1, axis) + np.roll(image, -1, axis))
        return ((smooth - smooth.mean()) / (high - low + 1e-3)).astype(np.float32)

    def __getitem__(self, index):
        image, mask = self.tiles[index]
        image = torch.from_numpy(self.normalise(image))
        mask = torch.from_numpy(mask)
        if self.augment:
            turns = int(torch.randint(4, ()))
            image, mask = torch.rot90(image, turns), torch.rot90(mask, turns)
            if torch.rand(()) < 0.5:
                image, mask = image.flip(1), mask.flip(1)
            image = image + 0.1 * torch.randn(image.shape)
        return image[None].contiguous(), mask.contiguous()
