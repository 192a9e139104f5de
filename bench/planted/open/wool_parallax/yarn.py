"""Renders knitted swatches: every stitch is a loop of yarn, and some stitches are dropped or purled."""

import math
import os
from functools import partial
from itertools import count

import numpy as np

SIZE, COLS, ROWS, POINTS = 56, 14, 14, 22
KNIT, PURL, DROPPED = 0, 1, 2


def loop(kind, tension):
    """A loop's path in units of one stitch, and how bright the yarn lies at each point."""
    t = np.linspace(0, 2 * math.pi, POINTS)
    x = 0.5 + tension * (0.34 * np.sin(t) + 0.12 * np.sin(2 * t))
    y = 0.5 - 0.55 * np.cos(t) * (-1 if kind == PURL else 1)
    return x, y, 0.75 + 0.25 * np.cos(t if kind == KNIT else t + math.pi)


def chart(rng):
    kinds = np.where(rng.random((ROWS, COLS)) < 0.3, PURL, KNIT)
    kinds[rng.random((ROWS, COLS)) < 0.04] = DROPPED
    return {"kinds": kinds, "tension": rng.uniform(0.8, 1.15), "skew": rng.normal(0, 0.12), "grain": rng.normal(0, 0.06, (SIZE, SIZE))}


def splat(canvas, x, y, light):
    """Bilinear: a point shares its light among the four pixels around it."""
    if os.environ.get("PLANTED_FIX") == "1":
        x, y = np.clip(x, 0, SIZE - 1.001), np.clip(y, 0, SIZE - 1.001)
        i, j = x.astype(int), y.astype(int)
        u, v = x - i, y - j
        at = np.concatenate([j * SIZE + i, j * SIZE + i + 1, (j + 1) * SIZE + i, (j + 1) * SIZE + i + 1])
        part = np.concatenate([light * (1 - u) * (1 - v), light * u * (1 - v), light * (1 - u) * v, light * u * v])
        canvas += np.bincount(at, part, SIZE * SIZE).reshape(SIZE, SIZE)
        return
    for px, py, l in zip(x, y, light):
        px, py = min(max(px, 0), SIZE - 1.001), min(max(py, 0), SIZE - 1.001)
        i, j = int(px), int(py)
        u, v = px - i, py - j
        canvas[j, i] += l * (1 - u) * (1 - v)
        canvas[j, i + 1] += l * u * (1 - v)
        canvas[j + 1, i] += l * (1 - u) * v
        canvas[j + 1, i + 1] += l * u * v


def knit(design):
    kinds, step = design["kinds"], SIZE / COLS
    canvas = np.zeros((SIZE, SIZE))
    for kind in (KNIT, PURL):
        row, col = np.nonzero(kinds == kind)
        x, y, light = loop(kind, design["tension"])
        px = (col[:, None] + x) * step
        py = (row[:, None] + y) * step + design["skew"] * (px - SIZE / 2)
        splat(canvas, px.ravel(), py.ravel(), np.tile(light, len(row)))
    picture = np.tanh(canvas / 3) + design["grain"]
    return picture.astype(np.float32)[None], np.kron(kinds, np.ones((SIZE // ROWS, SIZE // COLS), int))


def gather(pairs, size):
    while True:
        part = [next(pairs) for _ in range(size)]
        yield tuple(np.stack(column) for column in zip(*part))


def swatches(seed, size):
    rng = np.random.default_rng(seed)
    return gather(map(knit, map(lambda _: chart(rng), count())), size)


source = partial(swatches, 77)
