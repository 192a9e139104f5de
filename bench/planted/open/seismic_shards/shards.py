"""Waveform shards: text exports of the network's archive, one per station and week."""

import gzip
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import IterableDataset

TRACES, CHANNELS, SAMPLES = 512, 3, 160
BINARY = os.environ.get("PLANTED_FIX") == "1"


def make_shard(path: Path, seed: int) -> None:
    """An export as the archive delivers it: a label and the counts of three channels on each line."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, TRACES)
    noise = rng.normal(0, 40, (TRACES, CHANNELS, SAMPLES))
    t = np.arange(SAMPLES)
    for i in np.flatnonzero(labels):
        onset = rng.integers(20, 100)
        burst = np.where(t >= onset, np.exp(-(t - onset) / 25.0) * np.sin((t - onset) * rng.uniform(0.4, 1.2)), 0)
        noise[i] += rng.uniform(60, 200) * burst
    counts = noise.astype(int)
    lines = [
        f"{label};" + ";".join(",".join(map(str, channel)) for channel in trace)
        for label, trace in zip(labels, counts.tolist(), strict=True)
    ]
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("\n".join(lines))


def remove_response(trace: list[float], a: float = 1.62, b: float = -0.71) -> list[float]:
    """Undoes the seismometer's resonance: a second-order recursion."""
    y1 = y2 = x1 = 0.0
    out = []
    for x in trace:
        y = 0.2 * (x - x1) + a * y1 + b * y2
        y1, y2, x1 = y, y1, x
        out.append(y)
    return out


def parse(path: Path) -> tuple[np.ndarray, np.ndarray]:
    labels, traces = [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            label, *channels = line.strip().split(";")
            labels.append(int(label))
            traces.append([remove_response([float(v) for v in channel.split(",")]) for channel in channels])
    return np.array(traces, dtype=np.float32) / 50, np.array(labels)


def export(folder: Path, count: int) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i in range(count):
        path = folder / f"week{i:02d}.txt.gz"
        make_shard(path, i)
        if BINARY:
            np.savez(path.with_suffix(".npz"), *parse(path))
        paths.append(path)
    return paths


class ShardStream(IterableDataset):
    def __init__(self, paths: list[Path], seed: int = 0):
        self.paths, self.rng = paths, np.random.default_rng(seed)

    def open(self, path: Path):
        if BINARY:
            held = np.load(path.with_suffix(".npz"))
            return held["arr_0"], held["arr_1"]
        return parse(path)

    def __iter__(self):
        while True:
            for i in self.rng.permutation(len(self.paths)):
                traces, labels = self.open(self.paths[i])
                for j in self.rng.permutation(len(labels)):
                    yield torch.from_numpy(traces[j]), int(labels[j])
