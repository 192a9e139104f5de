"""Made-up simulations: waves that drift around the sphere at a speed set by their order."""

from dataclasses import dataclass

import torch

from .harmonics import Grid, synthesise
from .settings import Settings


@dataclass
class Archive:
    """All frames of all simulations, [simulation, frame, latitude, longitude]."""

    frames: torch.Tensor
    mean: float
    spread: float

    def pairs(self, simulations: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = (self.frames[simulations, frames] - self.mean) / self.spread
        after = (self.frames[simulations, frames + 1] - self.mean) / self.spread
        return before[:, None], after[:, None]


def simulate(settings: Settings, grid: Grid) -> Archive:
    generator = torch.Generator().manual_seed(settings.seed)
    size = settings.wavenumbers
    order = torch.arange(size, dtype=torch.float32)[:, None]
    degree = torch.arange(size, dtype=torch.float32)[None, :]
    amplitude = (degree >= order) * torch.exp(-degree / 4)
    noise = torch.randn(settings.simulations, size, size, 2, generator=generator)
    start = torch.view_as_complex(noise) * amplitude
    speed = -0.35 * order / (1 + degree)
    turned = [start * torch.exp(1j * speed * frame) for frame in range(settings.frames)]
    frames = synthesise(torch.stack(turned, dim=1), grid, size)
    return Archive(frames, float(frames.mean()), float(frames.std()))


class Sampler:
    """Draws training pairs and keeps a fixed set of pairs aside for the check."""

    def __init__(self, archive: Archive, settings: Settings) -> None:
        self.archive, self.batch = archive, settings.batch
        self.train = settings.simulations - settings.holdout
        self.total, self.frames = settings.simulations, settings.frames
        self.generator = torch.Generator().manual_seed(settings.seed + 1)

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        simulations = torch.randint(self.train, (self.batch,), generator=self.generator)
        frames = torch.randint(self.frames - 1, (self.batch,), generator=self.generator)
        return self.archive.pairs(simulations, frames)

    def held_out(self) -> tuple[torch.Tensor, torch.Tensor]:
        simulations = torch.arange(self.train, self.total)
        return self.archive.pairs(simulations, torch.full_like(simulations, self.frames // 2))
