"""Clouds of points on made-up shapes."""

import math

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


def _sphere(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    z, angle = 2 * u - 1, 2 * math.pi * v
    ring = (1 - z**2).clamp_min(0).sqrt()
    return torch.stack([ring * angle.cos(), ring * angle.sin(), z], -1)


def _torus(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    a, b = 2 * math.pi * u, 2 * math.pi * v
    return torch.stack([(1 + 0.4 * b.cos()) * a.cos(), (1 + 0.4 * b.cos()) * a.sin(), 0.4 * b.sin()], -1)


def _cylinder(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    angle = 2 * math.pi * u
    return torch.stack([0.7 * angle.cos(), 0.7 * angle.sin(), 2 * v - 1], -1)


def _saddle(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    x, y = 2 * u - 1, 2 * v - 1
    return torch.stack([x, y, x**2 - y**2], -1)


SHAPES = (_sphere, _torus, _cylinder, _saddle)


def make_clouds(count: int, points: int, seed: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(len(SHAPES), (count,), generator=generator)
    u, v = torch.rand(2, count, points, generator=generator)
    clouds = torch.empty(count, points, 3)
    for number, shape in enumerate(SHAPES):
        clouds[labels == number] = shape(u[labels == number], v[labels == number])
    turn, _ = torch.linalg.qr(torch.randn(count, 3, 3, generator=generator))
    size = 0.6 + 0.8 * torch.rand(count, 1, 3, generator=generator)
    noise = 0.08 * torch.randn(clouds.shape, generator=generator)
    return TensorDataset((clouds * size) @ turn + noise, labels)


class Clouds(L.LightningDataModule):
    def __init__(self, count: int, points: int, batch_size: int, seed: int) -> None:
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage: str) -> None:
        hp = self.hparams
        self.train = make_clouds(hp.count, hp.points, hp.seed)
        self.valid = make_clouds(hp.count // 10, hp.points, hp.seed + 1)

    def train_dataloader(self) -> DataLoader:
        order = torch.Generator().manual_seed(self.hparams.seed)
        return DataLoader(self.train, self.hparams.batch_size, shuffle=True, drop_last=True, generator=order)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.valid, self.hparams.batch_size)
