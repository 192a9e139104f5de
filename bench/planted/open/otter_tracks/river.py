"""Otters on a river at night, seen by a heat camera: short films made on the fly."""

import torch
from torch.utils.data import IterableDataset


class Films(IterableDataset):
    """Endless batches of films and the otter's next place; everything is made by a few tensor operations."""

    def __init__(self, batch: int, frames: int = 6, size: int = 24, seed: int = 0):
        self.batch, self.frames, self.size = batch, frames, size
        self.g = torch.Generator().manual_seed(seed)
        axis = torch.arange(size, dtype=torch.float32)
        self.rows, self.cols = axis[:, None], axis[None, :]

    def __iter__(self):
        while True:
            start = 6 + 12 * torch.rand(self.batch, 1, 2, generator=self.g)
            speed = torch.randn(self.batch, 1, 2, generator=self.g)
            t = torch.arange(self.frames + 1, dtype=torch.float32)[None, :, None]
            path = start + speed * t + 0.2 * torch.randn(self.batch, self.frames + 1, 2, generator=self.g)
            seen = path[:, :-1, :, None, None]
            film = torch.exp(-((self.rows - seen[:, :, 0]) ** 2 + (self.cols - seen[:, :, 1]) ** 2) / 4)
            film = film + 0.2 * torch.randn(film.shape, generator=self.g)
            yield film.unsqueeze(2), path[:, -1] / self.size
