"""The crystal camera on the mountain hut: it drops one frame after the other into a folder, all winter."""

import datetime
import os

import numpy as np

SIDE = 32


def crystal(rng):
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    r, turn = np.hypot(x, y), np.arctan2(y, x) + rng.uniform(0, np.pi / 3)
    arm = np.abs(np.cos(3 * turn)) ** rng.uniform(2, 14)
    rim = rng.uniform(0.5, 0.95) * (0.35 + 0.65 * arm)
    twig = 0.5 + 0.5 * np.cos(rng.uniform(8, 26) * r + rng.uniform(0, 6))
    return np.where(r < rim, 0.35 + 0.65 * twig, 0.0) * 255


def film(folder, frames, seed):
    """Stands in for the copy of last winter's folder: frames with the dates at which they were taken."""
    rng = np.random.default_rng(seed)
    taken = datetime.datetime(2024, 12, 2, 5, 30)
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(frames):
        taken += datetime.timedelta(seconds=int(rng.integers(40, 4000)))
        path = folder / f"{taken:%m%d-%H%M%S}-{n:04d}.raw"
        path.write_bytes(crystal(rng).astype(np.uint8).tobytes())
        os.utime(path, (taken.timestamp(), taken.timestamp()))
