"""Photographed quadrats of a churchyard wall, painted by the program itself: a few thalli of each of some species on stone."""

import numpy as np

SIDE = 288
SPECIES = 6
TINTS = np.random.default_rng(77).uniform(0.25, 0.95, (SPECIES, 3)).astype(np.float32)


def stone(rng):
    coarse = rng.normal(0.5, 0.08, (SIDE // 8, SIDE // 8, 1)).astype(np.float32)
    return np.repeat(np.repeat(coarse, 8, 0), 8, 1) + rng.normal(0, 0.04, (SIDE, SIDE, 3)).astype(np.float32)


def paint(rng):
    """A plate, and which species covers each pixel (0: none)."""
    plate, cover = stone(rng), np.zeros((SIDE, SIDE), dtype=np.uint8)
    y, x = np.ogrid[:SIDE, :SIDE]
    for _ in range(26):
        cy, cx, r = rng.integers(0, SIDE), rng.integers(0, SIDE), rng.integers(10, 38)
        kind, lobes = rng.integers(SPECIES), rng.integers(3, 9)
        edge = r * (1 + 0.18 * np.cos(lobes * np.arctan2(y - cy, x - cx)))
        inside = (y - cy) ** 2 + (x - cx) ** 2 < edge**2
        plate[inside] = 0.3 * plate[inside] + 0.7 * TINTS[kind]
        cover[inside] = kind + 1
    return plate, cover


def wall(count, seed):
    rng = np.random.default_rng(seed)
    plates, covers = zip(*(paint(rng) for _ in range(count)))
    return np.stack(plates), np.stack(covers)
