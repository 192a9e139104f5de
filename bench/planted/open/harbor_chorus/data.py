"""Made-up ships: each class has its blades, its shaft rate and its hum."""

import numpy as np
import torch
from registry import register
from torch.utils.data import Dataset
from transforms import Transform

SHIPS = ["tug", "ferry", "tanker", "dinghy", "trawler", "none"]


def ship_sound(ship: int, samples: int, rate: int, rng: np.random.Generator) -> np.ndarray:
    time = np.arange(samples) / rate
    if SHIPS[ship] == "none":
        return 0.1 * rng.standard_normal(samples)
    shaft, blades = (2.0 + 1.7 * ship) * rng.uniform(0.95, 1.05), 3 + ship % 3
    hum = sum(np.sin(2 * np.pi * shaft * blades * k * 5 * time + rng.uniform(0, 6.3)) / k for k in range(1, 6))
    beat = 1 + 0.6 * np.sin(2 * np.pi * shaft * time)
    return beat * (hum + 0.3 * rng.standard_normal(samples))


@register("data", "hydrophone")
class Hydrophone(Dataset):
    """Clean sounds in memory; transformed anew whenever they are asked for."""

    def __init__(self, clips: int, seconds: float, rate: int, seed: int, transform: Transform) -> None:
        self.rate, self.transform = rate, transform
        self.rng = np.random.default_rng(seed)
        self.ships = self.rng.integers(len(SHIPS), size=clips)
        self.sounds = [ship_sound(ship, int(seconds * rate), rate, self.rng) for ship in self.ships]

    def __len__(self) -> int:
        return len(self.sounds)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        sound = self.transform(self.sounds[index], self.rate, self.rng)
        return torch.from_numpy(np.asarray(sound, dtype=np.float32)), int(self.ships[index])
