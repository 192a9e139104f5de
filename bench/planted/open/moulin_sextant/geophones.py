"""Recordings of geophones on a glacier: triggered events of three seconds, and a few drums that ran through the night."""

import json
from pathlib import Path

import numpy as np

CLIP, EVENT, NIGHT = 1024, 1536, 12_000_000


def tremor(rng, kind, n=CLIP):
    t = np.arange(n) / 500
    tone = (6, 14, 27, 45)[kind] * (1 + 0.1 * rng.normal())
    return 900 * np.exp(-t * (1 + kind)) * np.sin(2 * np.pi * tone * t)


def field_season(folder, events, nights, seed):
    """Writes the season's recordings and the catalogue of the picked onsets."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    catalogue = []
    for i in range(events + nights):
        length = NIGHT if i % (events // nights) == events // nights // 2 and i < events else EVENT
        wave = rng.integers(-200, 200, length, dtype=np.int16)
        kind, onset = int(rng.integers(4)), int(rng.integers(200, length - CLIP - 200))
        wave[onset : onset + CLIP] += tremor(rng, kind).astype(np.int16)
        np.save(folder / f"rec{i:05d}.npy", wave)
        catalogue.append({"file": f"rec{i:05d}.npy", "onset": onset, "kind": kind})
    (folder / "catalogue.json").write_text(json.dumps(catalogue))
