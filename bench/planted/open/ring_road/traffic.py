"""Made-up speeds: daily waves and jams that drift along the ring."""

import torch
from roads import Roads
from torch.utils.data import Dataset


def speeds(roads: Roads, ticks: int, seed: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    time, sensor = torch.arange(ticks)[:, None], torch.arange(roads.sensors)[None, :]
    daily = 0.6 * torch.sin(2 * torch.pi * time / 96 + roads.places[:, 0][None])
    jams = torch.zeros(ticks, roads.sensors)
    for _ in range(12):
        start, pace = torch.rand(2, generator=rng).tolist()
        distance = (sensor - start * roads.sensors - (pace - 0.5) * time).remainder(roads.sensors)
        jams -= torch.exp(-((distance - roads.sensors / 2) ** 2) / 60)
    return daily + jams + 0.1 * torch.randn(ticks, roads.sensors, generator=rng)


class Windows(Dataset):
    """The last readings of all sensors, and the readings to come."""

    def __init__(self, series: torch.Tensor, past: int, ahead: int, first: int, last: int) -> None:
        self.series, self.past, self.ahead = series[first:last], past, ahead

    def __len__(self) -> int:
        return len(self.series) - self.past - self.ahead + 1

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        middle = index + self.past
        return self.series[index:middle].T.contiguous(), self.series[middle : middle + self.ahead].T.contiguous()
