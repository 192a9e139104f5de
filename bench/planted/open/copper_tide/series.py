"""Made-up hourly load of some stations, and windows of it."""

import math

import torch


def make_load(stations: int, hours: int, seed: int) -> torch.Tensor:
    """Daily and weekly rhythm, a slow trend, and noise that remembers."""
    generator = torch.Generator().manual_seed(seed)
    hour = torch.arange(hours, dtype=torch.float32)
    phase = torch.rand(stations, 1, generator=generator) * 4
    size = 0.5 + torch.rand(stations, 1, generator=generator)
    daily = torch.sin(2 * math.pi * (hour + phase) / 24) + 0.4 * torch.sin(4 * math.pi * (hour - phase) / 24)
    weekly = 0.5 * torch.cos(2 * math.pi * (hour + 12 * phase) / 168)
    noise = torch.randn(stations, hours, generator=generator).cumsum(-1) * 0.02
    return size * (daily + weekly) + noise - noise.mean(-1, keepdim=True)


class Windows:
    """Random windows over all stations; the last hours are held out."""

    def __init__(self, stations: int, hours: int, past: int, future: int, held_out: int, seed: int) -> None:
        load = make_load(stations, hours, seed)
        border = hours - held_out
        centre, scale = load[:, :border].mean(-1, keepdim=True), load[:, :border].std(-1, keepdim=True)
        self.load, self.past, self.future, self.border = (load - centre) / scale, past, future, border
        self.windows = self.load.unfold(1, past + future, 1)
        self.generator = torch.Generator().manual_seed(seed + 1)

    def draw(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        station = torch.randint(len(self.load), (size,), generator=self.generator)
        start = torch.randint(self.border - self.past - self.future, (size,), generator=self.generator)
        window = self.windows[station, start]
        return window[:, : self.past], window[:, self.past :]

    def held_out(self) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.windows[:, -1]
        return window[:, : self.past], window[:, self.past :]
