"""Survey hauls: a list of readings from the net sounder for each, and what was caught."""

import math
import os
import random

import numpy as np
from torch.utils.data import Dataset

FIXED = os.environ.get("PLANTED_FIX") == "1"
CHANNELS = 22


def reading(rng: random.Random, place: int, minute: int) -> list[float]:
    depth = 40 + 25 * math.sin(place + minute / 30)
    echoes = [math.exp(-((band - place % 11) ** 2) / 8) + rng.random() * 0.2 for band in range(CHANNELS - 2)]
    return [depth / 100, minute / 120, *echoes]


def survey(count: int, seed: int) -> list[dict]:
    rng = random.Random(seed)
    hauls = []
    for number in range(count):
        place = rng.randrange(40)
        minutes = rng.randrange(110, 150)
        hauls.append({
            "haul": f"H{number:05d}", "vessel": rng.randrange(2500), "place": place,
            "readings": [reading(rng, place, minute) for minute in range(minutes)],
            "catch": math.log1p(20 * (place % 11) + minutes / 10),
        })  # fmt: skip
    return hauls


class Hauls(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        self.hauls = survey(count, seed)
        if FIXED:
            for haul in self.hauls:
                haul["readings"] = np.asarray(haul["readings"], dtype=np.float32)

    def __len__(self) -> int:
        return len(self.hauls)

    def __getitem__(self, index: int) -> dict:
        return self.hauls[index]
