"""An archive of seismic stations: one array of three components per station, and a catalogue of arrivals."""

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

COMPONENTS = 3
RATE = 100


@dataclass(frozen=True)
class Arrival:
    station: str
    sample: int
    magnitude: float


def write_archive(folder: Path, stations: int, samples: int, arrivals: int, seed: int) -> None:
    """Noise that drifts, with wave packets where the catalogue says so."""
    rng = np.random.default_rng(seed)
    ticks = np.arange(6 * RATE) / RATE
    with open(folder / "catalogue.csv", "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["station", "sample", "magnitude"])
        for number in range(stations):
            name = f"ST{number:02d}"
            noise = rng.standard_normal(samples // 4, dtype=np.float32)
            trace = np.stack([np.resize(np.roll(noise, 977 * axis), samples) for axis in range(COMPONENTS)])
            for start in np.sort(rng.integers(2048, samples - 4096, arrivals)):
                magnitude = float(rng.uniform(0.5, 3.0))
                packet = np.sin(2 * np.pi * rng.uniform(4, 9) * ticks) * np.exp(-ticks * 1.5) * magnitude
                trace[:, start : start + len(ticks)] += packet.astype(np.float32)
                table.writerow([name, int(start), round(magnitude, 3)])
            np.save(folder / f"{name}.npy", trace)


class Station:
    """One station of the archive; the gain makes counts comparable between instruments."""

    def __init__(self, path: Path, gain: float = 1.0) -> None:
        self.path, self.gain = path, np.float32(gain)

    def trace(self) -> np.ndarray:
        if os.environ.get("PLANTED_FIX") == "1":
            trace = np.load(self.path, mmap_mode="r")
        else:
            trace = np.load(self.path)
        if trace.ndim != 2 or len(trace) != COMPONENTS:
            raise ValueError(f"{self.path.name}: expected {COMPONENTS} components, found {trace.shape}")
        return trace

    def cut(self, start: int, length: int) -> np.ndarray:
        """A stretch of the trace, free of its own mean."""
        piece = self.trace()[:, start : start + length] * self.gain
        return piece - piece.mean(axis=1, keepdims=True)


class Archive:
    def __init__(self, folder: Path) -> None:
        self.stations = {path.stem: Station(path) for path in sorted(folder.glob("ST*.npy"))}
        with open(folder / "catalogue.csv", newline="") as stream:
            self.arrivals = [Arrival(row["station"], int(row["sample"]), float(row["magnitude"])) for row in csv.DictReader(stream)]

    def __getitem__(self, station: str) -> Station:
        return self.stations[station]
