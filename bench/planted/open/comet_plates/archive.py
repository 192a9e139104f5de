"""A plate archive behind a network mount; `round_trip` is what one read from the observatory's share costs."""

import time
from pathlib import Path

import numpy as np


def expose(root, plates, cutouts, size, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size] - size / 2
    for plate in range(plates):
        kind = rng.random(cutouts) < 0.5
        sky = rng.normal(0, 1, (cutouts, size, size))
        angle, bright = rng.random(cutouts) * 2 * np.pi, rng.uniform(1, 4, cutouts)
        for i in range(cutouts):
            along = xx * np.cos(angle[i]) + yy * np.sin(angle[i])
            across = -xx * np.sin(angle[i]) + yy * np.cos(angle[i])
            tail = np.exp(-((across / 2) ** 2) - np.maximum(along, 0) / 6) * (along > 0)
            star = np.exp(-(along**2 + across**2) / 6)
            sky[i] += bright[i] * (star + tail * kind[i])
        folder = Path(root) / f"plate{plate:03d}"
        folder.mkdir()
        for i in range(cutouts):
            sky[i].astype(np.float32).tofile(folder / f"{i:03d}_{int(kind[i])}.f32")


class Share:
    def __init__(self, root, round_trip):
        self.root, self.round_trip = Path(root), round_trip

    def listing(self):
        return sorted(str(p.relative_to(self.root)) for p in self.root.glob("*/*.f32"))

    def read(self, name):
        time.sleep(self.round_trip)
        return (self.root / name).read_bytes()
