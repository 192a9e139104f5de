"""Satellite scenes of tidal channels, and their augmentation."""

import numpy as np
import torch
from torch.utils.data import Dataset


def scene(size: int, rng: np.random.Generator, bands: int = 5) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:size, :size] / size
    bend = 0.5 + 0.25 * np.sin(6 * y * rng.uniform(0.5, 1.5) + rng.uniform(0, 6))
    channel = np.abs(x - bend) < rng.uniform(0.05, 0.12)
    image = rng.normal(0, 0.4, (bands, size, size)) + channel * rng.uniform(0.3, 1.0, (bands, 1, 1))
    return image.astype(np.float32), channel.astype(np.float32)


class Flip:
    def __call__(self, image, mask, rng):
        if rng.random() < 0.5:
            image, mask = image[:, :, ::-1], mask[:, ::-1]
        if rng.random() < 0.5:
            image, mask = image[:, ::-1], mask[::-1]
        return image, mask


class Haze:
    def __call__(self, image, mask, rng):
        return image * rng.uniform(0.8, 1.2) + rng.uniform(-0.1, 0.1), mask


class Turn:
    def __call__(self, image, mask, rng):
        turns = int(rng.integers(4))
        return np.rot90(image, turns, (1, 2)), np.rot90(mask, turns)


class Scenes(Dataset):
    def __init__(self, count: int, size: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.scenes = [scene(size, rng) for _ in range(count)]
        self.steps, self.seed, self.visits = [Flip(), Turn(), Haze()], seed, 0

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int):
        self.visits += 1
        rng = np.random.default_rng((self.seed, index, self.visits))
        image, mask = self.scenes[index]
        for step in self.steps:
            image, mask = step(image, mask, rng)
        return torch.from_numpy(np.ascontiguousarray(image, dtype=np.float32)), torch.from_numpy(np.ascontiguousarray(mask))
