import torch
import torch.nn as nn


class Mixer(nn.Module):
    """Mixes over time, then over stations, as TSMixer does."""

    def __init__(self, history: int, stations: int, hidden: int):
        super().__init__()
        self.norm_time, self.norm_station = nn.LayerNorm(history), nn.LayerNorm(stations)
        self.over_time = nn.Sequential(nn.Linear(history, hidden), nn.GELU(), nn.Linear(hidden, history))
        self.over_station = nn.Sequential(nn.Linear(stations, hidden // 4), nn.GELU(), nn.Linear(hidden // 4, stations))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.over_time(self.norm_time(x.transpose(1, 2))).transpose(1, 2)
        return x + self.over_station(self.norm_station(x))


class Forecaster(nn.Module):
    def __init__(self, history: int, horizon: int, stations: int, hidden: int = 320, depth: int = 3):
        super().__init__()
        self.mixers = nn.Sequential(*[Mixer(history, stations, hidden) for _ in range(depth)])
        self.head = nn.Linear(history, horizon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = x[:, -1:, :]
        return self.head(self.mixers(x - last).transpose(1, 2)).transpose(1, 2) + last
