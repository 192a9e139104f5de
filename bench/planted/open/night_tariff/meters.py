"""Made-up electricity meters in half hours: days, weeks, weather and a cheap tariff at night."""

import math

import torch


class Meters:
    def __init__(self, houses: int, weeks: int, seed: int) -> None:
        source = torch.Generator().manual_seed(seed)
        ticks = torch.arange(weeks * 7 * 48)
        hour, day = (ticks % 48) / 2, ticks // 48
        night = ((hour >= 23) | (hour < 6)).float()
        weather = torch.cumsum(0.03 * torch.randn(houses, len(ticks), generator=source), dim=1)
        weather = weather - weather.mean(dim=1, keepdim=True)
        shift, heater = torch.rand(houses, 1, generator=source) * 4, torch.rand(houses, 1, generator=source)
        daily = torch.sin((hour + shift) * math.pi / 12) + 0.5 * torch.sin((hour + shift) * math.pi / 6)
        weekend = 0.4 * ((day % 7) >= 5).float()
        noise = 0.2 * torch.randn(houses, len(ticks), generator=source)
        self.load = daily + weekend + 1.5 * heater * night + 0.5 * weather + noise
        self.load = (self.load - self.load.mean(1, keepdim=True)) / self.load.std(1, keepdim=True)
        self.hour, self.source = hour, source

    def get_batch(self, count: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Load and hour of the day as inputs; the load half an hour later as target."""
        houses = torch.randint(len(self.load), (count,), generator=self.source)
        starts = torch.randint(self.load.shape[1] - length - 1, (count,), generator=self.source)
        ticks = starts[:, None] + torch.arange(length + 1)
        load, hour = self.load[houses[:, None], ticks], self.hour[ticks] * math.pi / 12
        inputs = torch.stack([load, hour.sin(), hour.cos()], dim=-1)
        return inputs[:, :-1], load[:, 1:]
