import os

import numpy as np


class Wobble:
    """Bends a picture a little: rows slide sideways, columns up and down, along slow waves."""

    def __init__(self, side, reach=4.0):
        self.reach, self.pixels = reach, np.arange(side)

    def wave(self, rng):
        speed, phase, size = rng.uniform(0.02, 0.12), rng.uniform(0, 6.28), rng.uniform(0, self.reach)
        return size * np.sin(speed * self.pixels + phase)

    def __call__(self, picture, rng):
        light = np.float32(rng.uniform(0.8, 1.2))
        bent = self.slide(picture, self.wave(rng))
        bent = self.slide(bent.swapaxes(1, 2), self.wave(rng)).swapaxes(1, 2)
        return np.ascontiguousarray(bent * light)

    def slide(self, picture, by):
        if os.environ.get("PLANTED_FIX") == "1":
            return between(picture, *self.places(by[:, None]))
        out = np.empty_like(picture)
        for plane, bent in zip(picture, out):
            for row, line in enumerate(plane):
                bent[row] = between(line, *self.places(by[row]))
        return out

    def places(self, by):
        """The pixel to the left of where each one comes from, the one to the right, and how far between."""
        whole = np.floor(by)
        left = np.clip(self.pixels + np.int64(whole), 0, len(self.pixels) - 1)
        return left, np.minimum(left + 1, len(self.pixels) - 1), np.float32(by - whole)


def between(picture, left, right, part):
    if picture.ndim == 1:
        return picture[left] * (1 - part) + picture[right] * part
    rows = np.arange(len(left))[:, None]
    return picture[:, rows, left] * (1 - part) + picture[:, rows, right] * part
