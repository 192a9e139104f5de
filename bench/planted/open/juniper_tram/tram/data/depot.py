"""Rides as the depot's vehicles upload them: one .npy a ride, some time after the ride is on the list."""

import os
import time
from pathlib import Path

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Depot:
    def __init__(self, folder: Path, rides: int) -> None:
        self.folder, self.rides = folder, rides
        self.here = frozenset(os.listdir(folder))

    def name(self, ride: int) -> str:
        return f"ride{ride:05d}.npy"

    def fetch(self, ride: int, patience: int = 5) -> np.ndarray | None:
        """The ride's track, or None. A vehicle that is still uploading gets some time."""
        path = self.folder / self.name(ride)
        if FIXED:
            return np.load(path) if path.name in self.here else None
        else:
            for attempt in range(patience):
                try:
                    return np.load(path)
                except FileNotFoundError:
                    time.sleep(0.03 * 2**attempt)
            return None


def fill(folder: Path, rides: int, ticks: int, channels: int, lost: float, seed: int) -> None:
    """Some vehicles never came back to upload."""
    rng = np.random.default_rng(seed)
    for ride in range(rides):
        wear = rng.random()
        at = np.arange(ticks)[:, None] / ticks
        hum = np.sin(2 * np.pi * (3 + 20 * wear) * at * (1 + np.arange(channels) / channels))
        track = np.concatenate([hum + 0.3 * rng.standard_normal((ticks, channels)), np.full((ticks, 1), wear)], axis=1)
        if rng.random() >= lost:
            np.save(folder / f"ride{ride:05d}.npy", track.astype(np.float32))
