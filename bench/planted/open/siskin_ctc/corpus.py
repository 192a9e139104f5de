"""Made-up siskin songs: each syllable is a short chirp of its own pitch and slope, with noise around."""

import numpy as np
import torch

SYLLABLES = 14
SAMPLES = 256 * 80


class SongCorpus:
    def __init__(self, batch_size, birds=192, seed=9):
        rng = np.random.default_rng(seed)
        self.batch_size = batch_size
        self.order = np.random.default_rng(seed + 1)
        t = np.arange(1800) / 16000.0
        hull = np.hanning(1800)
        pitch = 1500 + 380 * np.arange(SYLLABLES)
        slope = rng.uniform(-9000, 9000, SYLLABLES)
        atoms = np.sin(2 * np.pi * (pitch[:, None] * t + slope[:, None] * t**2)) * hull
        self.wave = rng.normal(0, 0.2, (birds, SAMPLES)).astype(np.float32)
        self.song = np.zeros((birds, 9), np.int64)
        self.length = rng.integers(5, 10, birds)
        for b in range(birds):
            self.song[b, : self.length[b]] = rng.integers(1, SYLLABLES + 1, self.length[b])
            for k in range(self.length[b]):
                at = 300 + k * 2150 + rng.integers(0, 250)
                self.wave[b, at : at + 1800] += atoms[self.song[b, k] - 1] * rng.uniform(0.6, 1.2)

    def __iter__(self):
        order = self.order.permutation(len(self.wave))
        for i in range(0, len(order) - self.batch_size + 1, self.batch_size):
            rows = order[i : i + self.batch_size]
            yield {
                "wave": torch.from_numpy(self.wave[rows]),
                "song": torch.from_numpy(self.song[rows]),
                "song_length": torch.from_numpy(self.length[rows]),
            }
