"""Writes the little survey: one folder a recording, one raw file a hydrophone, and a json with the labels."""

import json
from pathlib import Path

import numpy as np

CHANNELS, LENGTH, RECORDINGS, CLASSES = 32, 384, 192, 6


def ensure(root: Path) -> Path:
    if (root / "index.txt").exists():
        return root
    rng = np.random.default_rng(17)
    t = np.arange(LENGTH)
    names = []
    for number in range(RECORDINGS):
        label = int(rng.integers(CLASSES))
        folder = root / f"rec_{number:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        delays = rng.integers(0, 24, CHANNELS)
        call = np.sin(2 * np.pi * (label + 2) * t / 96.0) * 6000
        for channel in range(CHANNELS):
            wave = np.roll(call, delays[channel]) + rng.normal(0, 2500, LENGTH)
            wave.astype("<i2").tofile(folder / f"ch{channel:02d}.raw")
        (folder / "meta.json").write_text(json.dumps({"label": label, "gain_db": float(rng.normal(0, 2)), "site": f"S{number % 7}"}))
        names.append(folder.name)
    (root / "index.txt").write_text("\n".join(names))
    return root
