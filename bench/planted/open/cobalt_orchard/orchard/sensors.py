"""Leaf spectra from a drone, kept as float32, with the calibration that the maker ships as JSON."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Calibration:
    dark: np.ndarray
    gain: np.ndarray

    @classmethod
    def load(cls, path: Path) -> "Calibration":
        sheet = json.loads(path.read_text())
        if FIXED:
            return cls(np.array(sheet["dark"], dtype=np.float32), np.array(sheet["gain"], dtype=np.float32))
        else:
            return cls(np.array(sheet["dark"]), np.array(sheet["gain"]))

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        return (counts - self.dark) * self.gain


def ship(path: Path, bands: int, rng: np.random.Generator) -> None:
    dark, gain = 40 + 5 * rng.random(bands), 1 / (8 + 4 * rng.random(bands))
    path.write_text(json.dumps({"dark": dark.round(3).tolist(), "gain": gain.round(6).tolist()}))


def fly(trees: int, bands: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts by band, and sugar, water and nitrogen of the leaf."""
    leaf = rng.random((trees, 3))
    lines = np.exp(-((np.arange(bands)[None] / bands - np.array([[0.25], [0.55], [0.8]])) ** 2) / 0.01)
    counts = 42 + 30 * np.exp(-leaf @ lines) + rng.standard_normal((trees, bands))
    return counts.astype(np.float32), leaf.astype(np.float32)
