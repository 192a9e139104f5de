"""Water levels of a made-up wet season, and windows cut from them."""

from collections.abc import Iterator

import torch
from torch import Tensor

from .basin import Basin


def season(basin: Basin, hours: int, seed: int) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    rain = torch.rand(hours, basin.gauges, generator=g).pow(12)
    level, rows = torch.zeros(basin.gauges), []
    walk = basin.downstream
    for hour in range(hours):
        level = 0.8 * level + 0.15 * (level @ walk) + rain[hour]
        rows.append(torch.stack([level, rain[hour]], -1))
    return torch.stack(rows)


def windows(levels: Tensor, past: int, ahead: int, batch: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(levels) - past - ahead, (batch,), generator=g)
        at = starts[:, None] + torch.arange(past)
        yield levels[at], levels[starts + past + ahead - 1, :, 0]
