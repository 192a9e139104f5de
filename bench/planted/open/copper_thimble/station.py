"""A steel plate with a geophone under a mountain torrent: gravel drums on it, and every event becomes a file."""

import json
from pathlib import Path

import numpy as np


def drum(rng, length, grain):
    """Hits of stones of one class: the smaller, the more often and the higher."""
    signal = rng.standard_normal(length, dtype=np.float32) * np.float32(40)
    hits = rng.integers(0, length - 400, max(3, min(600, length // (600 * (grain + 1)))))
    t = np.arange(400)
    ring = np.exp(-t / (30 + 25 * grain)) * np.sin(t * (1.2 - 0.22 * grain))
    for at in hits:
        signal[at : at + 400] += rng.uniform(300, 1500) * ring
    return signal + 200 * np.float32(rng.normal())


def record(folder: Path, seed, rate, events, floods, flood_minutes, classes):
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lengths = [int(rate * s) for s in rng.uniform(2.0, 7.0, events)] + [rate * 60 * flood_minutes] * floods
    index = []
    for n, length in enumerate(lengths):
        grain = int(rng.integers(classes))
        drum(rng, length, grain).clip(-32000, 32000).astype(np.int16).tofile(folder / f"{n:04d}.pcm")
        index.append({"file": f"{n:04d}.pcm", "length": length, "grain": grain})
    (folder / "index.json").write_text(json.dumps(index))
