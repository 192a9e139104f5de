"""Well logs: a registry of intervals, each with its readings and notes."""

import random
from dataclasses import dataclass, field

import numpy as np

ROCKS = ("shale", "sand", "lime", "coal", "salt")


@dataclass
class Interval:
    top: float
    bottom: float
    rock: int
    tools: list = field(default_factory=list)
    notes: dict = field(default_factory=dict)


@dataclass
class Well:
    name: str
    intervals: list
    gamma: np.ndarray
    density: np.ndarray
    porosity: np.ndarray


def make_well(number: int, rng: random.Random, intervals: int) -> Well:
    rows, depth = [], 0.0
    for i in range(intervals):
        thick = 0.5 + rng.random()
        rock = rng.randrange(len(ROCKS))
        rows.append(Interval(depth, depth + thick, rock, [i, ["gr", number]], {"seen": [depth], "rock": (ROCKS[rock], [i])}))
        depth += thick
    rocks = np.array([row.rock for row in rows])
    noise = np.random.default_rng(number)
    gamma = np.array([110, 40, 25, 60, 10])[rocks] + noise.normal(0, 12, intervals)
    density = np.array([2.5, 2.3, 2.7, 1.4, 2.1])[rocks] + noise.normal(0, 0.1, intervals)
    porosity = np.array([0.1, 0.25, 0.08, 0.4, 0.01])[rocks] + noise.normal(0, 0.04, intervals)
    return Well(f"W-{number:04d}", rows, gamma, density, porosity)


class Registry:
    def __init__(self, wells: int, intervals: int, seed: int):
        rng = random.Random(seed)
        self.wells = [make_well(n, rng, intervals) for n in range(wells)]
        self.by_rock: dict[int, list] = {}
        for well in self.wells:
            for interval in well.intervals:
                self.by_rock.setdefault(interval.rock, []).append((well.name, interval))

    def __len__(self):
        return len(self.wells)
