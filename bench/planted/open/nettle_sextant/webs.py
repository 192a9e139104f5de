"""Orb webs as graphs: a junction of threads is a node, a thread an edge. The angle of the hub's spokes tells the species."""

import math

import numpy as np

SPECIES = 6
FEATURES = 12


def spin(rng, spokes, turns, species):
    """One web: features of its junctions and its threads as pairs of junctions."""
    angle = np.sort(rng.random(spokes)) * 2 * math.pi
    pitch = 0.05 + 0.02 * species + 0.01 * rng.random()
    ring, spoke = np.meshgrid(np.arange(turns), np.arange(spokes), indexing="ij")
    radius = (0.2 + pitch * (ring + spoke / spokes)).ravel()
    theta = angle[spoke.ravel()]
    at = np.stack([radius * np.cos(theta), radius * np.sin(theta)], 1)
    n = len(at)
    along = np.stack([np.arange(n - 1), np.arange(1, n)], 1)
    out = np.stack([np.arange(n - spokes), np.arange(spokes, n)], 1)
    threads = np.concatenate([along, out])
    threads = threads[rng.random(len(threads)) > 0.08]
    wave = np.concatenate([np.sin(at * k) for k in (2, 5, 9, 14, 20)], 1)
    x = np.concatenate([at, wave], 1) + 0.05 * rng.standard_normal((n, FEATURES))
    return x.astype(np.float32), threads


def collect(count, seed):
    """What the field stations sent in: mostly young webs, and a few grown ones."""
    rng = np.random.default_rng(seed)
    webs = []
    for i in range(count):
        grown = i % 400 == 77
        species = int(rng.integers(SPECIES))
        spokes, turns = (16, 8) if grown else (int(rng.integers(5, 10)), int(rng.integers(3, 6)))
        webs.append((*spin(rng, spokes, turns, species), species))
    return webs
