"""Made-up recordings: tones that come and go, as band energies over time."""

import numpy as np
import torch


def record(rng: np.random.Generator, frames: int, bands: int, tones: int) -> tuple[np.ndarray, np.ndarray]:
    """Energies [frame, band] and, for each frame, which tone sounds (0: none)."""
    labels = np.zeros(frames, dtype=np.int64)
    at = 0
    while at < frames:
        length = int(rng.integers(12, 48))
        labels[at : at + length] = rng.integers(0, tones + 1)
        at += length
    centres = np.linspace(1, bands - 2, tones)
    shape = np.exp(-((np.arange(bands)[None] - centres[:, None]) ** 2) / 2.5)
    voiced = np.concatenate([np.zeros((1, bands)), shape])[labels]
    gain = 1 + 0.3 * np.sin(np.arange(frames)[:, None] / 40 + rng.random())
    return voiced * gain + 0.5 * rng.standard_normal((frames, bands)), labels


class Recordings:
    """All clips in memory; batches by a seeded permutation, again and again."""

    def __init__(self, clips: int, frames: int, bands: int, tones: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        made = [record(rng, frames, bands, tones) for _ in range(clips)]
        self.energies = torch.tensor(np.stack([energy for energy, _ in made]), dtype=torch.float32)
        self.labels = torch.tensor(np.stack([label for _, label in made]))
        self.generator = torch.Generator().manual_seed(seed)

    def batches(self, size: int):
        while True:
            for numbers in torch.randperm(len(self.labels), generator=self.generator).split(size):
                if len(numbers) == size:
                    yield self.energies[numbers], self.labels[numbers]
