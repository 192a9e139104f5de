"""Storms of a season as a stream: each worker plays its own share of the storms."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils.data import IterableDataset, get_worker_info

BEAMS = 12


@dataclass(frozen=True)
class Season:
    storms: int = 18
    minutes: int = 40
    window: int = 24
    seed: int = 61


class Storms(IterableDataset):
    """Windows of reflectivity with whether hail follows, mixed over a buffer."""

    def __init__(self, season: Season, buffer: int = 32) -> None:
        self.season, self.buffer = season, buffer
        self.round = torch.zeros((), dtype=torch.long).share_memory_()

    def set_round(self, number: int) -> None:
        self.round.fill_(number)

    def __len__(self) -> int:
        return self.season.storms * (self.season.minutes - self.season.window)

    def _storm(self, number: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        season = self.season
        source = torch.Generator().manual_seed(season.seed + number)
        strength, turn = torch.rand(2, generator=source).tolist()
        ticks = torch.arange(season.minutes) / season.minutes
        rise = strength * torch.sin(math.pi * ticks)[:, None] * torch.cos(torch.arange(BEAMS) * 0.5 + 6 * turn)
        echo = rise + 0.15 * torch.randn(season.minutes, BEAMS, generator=source)
        hail = (echo.amax(1) > 0.8).float()
        for start in range(season.minutes - season.window):
            yield echo[start : start + season.window], hail[start + season.window]

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        source = torch.Generator().manual_seed(self.season.seed + 1000 * int(self.round) + number)
        mine = torch.arange(number, self.season.storms, workers)
        mine = mine[torch.randperm(len(mine), generator=source)].tolist()
        held: list[tuple[torch.Tensor, torch.Tensor]] = []
        for storm in mine:
            for sample in self._storm(storm):
                if len(held) < self.buffer:
                    held.append(sample)
                    continue
                place = int(torch.randint(self.buffer, (), generator=source))
                held[place], sample = sample, held[place]
                yield sample
        for place in torch.randperm(len(held), generator=source).tolist():
            yield held[place]
