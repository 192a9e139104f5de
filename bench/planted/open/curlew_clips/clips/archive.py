"""Field recordings of calling birds, one file each."""

import os

import numpy as np

RATE = 4000


def call(rng, kind, samples):
    t = np.arange(samples) / RATE
    tone = np.sin(2 * np.pi * (180 + 90 * kind) * t + 3 * np.sin(2 * np.pi * (2 + kind) * t))
    loudness = rng.uniform(0.05, 0.9)
    return (loudness * tone + rng.normal(0, 0.05, samples)).astype(np.float32)


def record(folder, count, species, seed):
    rng = np.random.default_rng(seed)
    names = []
    for number in range(count):
        kind = number % species
        seconds = 200 if number % 97 == 31 else rng.uniform(0.5, 0.6)
        name = os.path.join(folder, f"{number:04d}_{kind}.npy")
        np.save(name, call(rng, kind, int(seconds * RATE)))
        names.append(name)
    return names
