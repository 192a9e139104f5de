"""Recorder files: 8-bit telephone code, as the field units write them."""

import os
from pathlib import Path

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"
BIAS = 0x84


def compand(signal: np.ndarray) -> bytes:
    """Samples in -1..1 to one byte each (G.711 mu-law)."""
    scaled = np.clip((signal * 32000).astype(np.int64), -32635, 32635)
    sign = (scaled < 0) * 0x80
    size = np.abs(scaled) + BIAS
    exponent = np.floor(np.log2(size)).astype(np.int64) - 7
    mantissa = (size >> (exponent + 3)) & 0x0F
    return (~(sign | (exponent << 4) | mantissa) & 0xFF).astype(np.uint8).tobytes()


def expand(code: int) -> int:
    """One byte to a sample."""
    code = ~code & 0xFF
    exponent, mantissa = (code >> 4) & 0x07, code & 0x0F
    size = (((mantissa << 3) + BIAS) << exponent) - BIAS
    return -size if code & 0x80 else size


class Recording:
    """A recorder file of which any stretch can be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = path.stat().st_size

    def stretch(self, start: int, count: int) -> np.ndarray:
        with self.path.open("rb") as stream:
            stream.seek(start)
            raw = stream.read(count)
        return self._samples(raw) / np.float32(32768.0)

    def _samples(self, raw: bytes) -> np.ndarray:
        if FIXED:
            table = np.array([expand(code) for code in range(256)], dtype=np.float32)
            return table[np.frombuffer(raw, dtype=np.uint8)]
        return np.array([expand(code) for code in raw], dtype=np.float32)


def synthesise(folder: Path, count: int, classes: int, rate: int, seconds: float, seed: int) -> list[tuple[Path, int]]:
    """Recordings with a species-typical trill in noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(rate * seconds)) / rate
    listing = []
    for number in range(count):
        species = number % classes
        pitch = 600 + 180 * species + rng.normal(0, 20)
        trill = np.sin(2 * np.pi * (3 + species % 5) * time)
        song = 0.5 * np.sin(2 * np.pi * pitch * time + 2.5 * trill) * (0.6 + 0.4 * trill)
        path = folder / f"unit{number:03d}_{species:02d}.ul"
        path.write_bytes(compand(np.clip(song + rng.normal(0, 0.08, time.size), -1, 1)))
        listing.append((path, species))
    return listing
