"""A synthetic catalogue of three-component seismograms with P and S onsets."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Event:
    trace: np.ndarray  # (3, length), float32
    p_onset: int
    s_onset: int
    station: int


def ricker(length: int, centre: float, width: float) -> np.ndarray:
    x = (np.arange(length) - centre) / width
    return (1.0 - x**2) * np.exp(-0.5 * x**2)


class Catalogue:
    def __init__(self, settings):
        rng = np.random.default_rng(settings.seed)
        length = settings.trace_length
        self.events: list[Event] = []
        self.gain = rng.uniform(0.5, 2.0, size=settings.stations).astype(np.float32)
        for _ in range(settings.events):
            p = int(rng.integers(60, length // 2))
            s = int(p + rng.integers(40, length // 3))
            wave = rng.normal(0, 0.15, size=(3, length))
            for component in range(3):
                wave[component] += rng.uniform(0.5, 1.0) * ricker(length, p + 4, 5.0)
                wave[component] += rng.uniform(0.8, 1.6) * ricker(length, s + 6, 9.0)
            spikes = rng.integers(0, length, size=6)
            wave[:, spikes] += rng.choice([-6.0, 6.0], size=6)
            self.events.append(Event(wave.astype(np.float32), p, s, int(rng.integers(settings.stations))))

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, index: int) -> Event:
        return self.events[index]
