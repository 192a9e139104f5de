"""The road network: a ring with sensors, and chords that cross it."""

import math
import random
from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class Roads:
    """Sensors and the links between them; compared by identity."""

    places: torch.Tensor
    links: tuple[tuple[int, int], ...]

    @property
    def sensors(self) -> int:
        return len(self.places)

    def neighbours(self, sensor: int) -> list[int]:
        return sorted({b for a, b in self.links if a == sensor} | {a for a, b in self.links if b == sensor})

    def degree_report(self) -> dict[int, int]:
        degrees: dict[int, int] = {}
        for sensor in range(self.sensors):
            degree = len(self.neighbours(sensor))
            degrees[degree] = degrees.get(degree, 0) + 1
        return degrees


def ring(sensors: int, chords: int, seed: int) -> Roads:
    rng = random.Random(seed)
    places = [
        (math.cos(2 * math.pi * n / sensors) * rng.uniform(0.9, 1.1), math.sin(2 * math.pi * n / sensors) * rng.uniform(0.9, 1.1))
        for n in range(sensors)
    ]
    links = {(n, (n + 1) % sensors) for n in range(sensors)}
    while len(links) < sensors + chords:
        a, b = rng.sample(range(sensors), 2)
        links.add((min(a, b), max(a, b)))
    return Roads(torch.tensor(places), tuple(sorted(links)))
