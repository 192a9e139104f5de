"""Made-up recordings of animals' motion: several channels, several gaits."""

import math
from collections.abc import Iterator

import torch
from config import Config


def make(config: Config, seed: int, count: int) -> torch.Tensor:
    """Recordings in patches: (count, patches, channels * patch)."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.linspace(0, 24 * math.pi, config.length)
    pace = 0.5 + 1.5 * torch.rand(count, 1, 1, generator=generator)
    phase = 2 * math.pi * torch.rand(count, config.channels, 1, generator=generator)
    size = 0.4 + torch.rand(count, config.channels, 1, generator=generator)
    wave = size * (torch.sin(pace * time + phase) + 0.4 * torch.sin(2 * pace * time - phase))
    wave = wave + 0.1 * torch.randn(wave.shape, generator=generator)
    wave = (wave - wave.mean(-1, keepdim=True)) / wave.std(-1, keepdim=True)
    patches = wave.unfold(2, config.patch, config.patch).transpose(1, 2)
    return patches.flatten(2).contiguous()


class Batches:
    """Random recordings with random patches hidden, without end."""

    def __init__(self, patches: torch.Tensor, config: Config, seed: int) -> None:
        self.patches, self.size, self.share = patches, config.batch_size, config.hidden_share
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        while True:
            rows = torch.randint(len(self.patches), (self.size,), generator=self.generator)
            hidden = torch.rand(self.size, self.patches.shape[1], generator=self.generator) < self.share
            yield self.patches[rows], hidden
