"""The station archive: records kept as first differences, 16 bits each, as the digitisers send them."""

import os
import struct
from dataclasses import dataclass

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass(frozen=True)
class Record:
    station: int
    first: tuple[int, int, int]
    frames: tuple[bytes, bytes, bytes]
    onset: int


def expand(first: int, frame: bytes) -> np.ndarray:
    """Counts of one channel from its first count and the frame of differences."""
    if FIXED:
        return first + np.cumsum(np.frombuffer(frame, "<i2"), dtype=np.int64)
    else:
        counts, level = [], first
        for (change,) in struct.iter_unpack("<h", frame):
            level += change
            counts.append(level)
        return np.array(counts, dtype=np.int64)


def compress(counts: np.ndarray) -> tuple[int, bytes]:
    return 0, np.diff(counts, prepend=0).astype("<i2").tobytes()


def synthesize(rng: np.random.Generator, station: int, length: int) -> Record:
    onset = int(rng.integers(length // 5, 4 * length // 5))
    since = np.clip(np.arange(length) - onset, 0, None)
    frames = []
    for lean in (1.0, 0.6, 0.5):
        period = rng.uniform(18, 60)
        wave = lean * rng.uniform(300, 900) * np.sin(2 * np.pi * since / period) * np.exp(-since / rng.uniform(200, 900))
        sway = 120 * np.sin(np.arange(length) / rng.uniform(150, 400) + rng.uniform(0, 6))
        frames.append(compress(np.rint(wave + sway + 60 * rng.standard_normal(length)).astype(np.int64)))
    return Record(station, tuple(first for first, _ in frames), tuple(frame for _, frame in frames), onset)


class Archive:
    def __init__(self, records: int, length: int, stations: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.length = length
        self.records = [synthesize(rng, number % stations, length) for number in range(records)]

    def waveform(self, record: Record) -> np.ndarray:
        return np.stack([expand(first, frame) for first, frame in zip(record.first, record.frames, strict=True)])
