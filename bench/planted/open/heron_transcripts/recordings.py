"""Made-up field recordings: syllables of a heron as bumps in a filterbank."""

from dataclasses import dataclass

import numpy as np
from torch.utils.data import Dataset, Sampler

BANDS = 40
SYLLABLES = ("kra", "ark", "gok", "ro", "tuk", "eee", "hrr", "ka", "skew", "clap")


@dataclass
class Recording:
    frames: np.ndarray  # [time, BANDS]
    syllables: list[int]


def invent(count: int, seed: int) -> list[Recording]:
    """Each syllable is a band pattern that lasts for some frames, over wind noise."""
    rng = np.random.default_rng(seed)
    patterns = rng.normal(0.0, 1.0, (len(SYLLABLES), BANDS)).astype(np.float32)
    recordings = []
    for _ in range(count):
        syllables = rng.integers(0, len(SYLLABLES), rng.integers(6, 13))
        spans = rng.integers(10, 20, len(syllables))
        frames = np.repeat(patterns[syllables], spans, axis=0)
        frames = frames + rng.normal(0.0, 0.6, frames.shape).astype(np.float32)
        recordings.append(Recording(frames.astype(np.float32), syllables.tolist()))
    return recordings


class FieldRecordings(Dataset):
    """Recordings with a random gain, and bands and frames blanked out at random."""

    def __init__(self, recordings: list[Recording], seed: int, augment: bool) -> None:
        self.recordings, self.augment = recordings, augment
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.recordings)

    def lengths(self) -> list[int]:
        return [len(recording.frames) for recording in self.recordings]

    def __getitem__(self, index: int) -> Recording:
        recording = self.recordings[index]
        if not self.augment:
            return recording
        frames = recording.frames * np.float32(self.rng.uniform(0.8, 1.25))
        low = int(self.rng.integers(0, BANDS - 6))
        frames[:, low : low + int(self.rng.integers(1, 6))] = 0.0
        first = int(self.rng.integers(0, len(frames) - 8))
        frames[first : first + int(self.rng.integers(1, 8))] = 0.0
        return Recording(frames, recording.syllables)


class SimilarLengths(Sampler):
    """Batches of recordings that last about as long as each other, in a new order each epoch."""

    def __init__(self, lengths: list[int], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size = np.asarray(lengths), batch_size
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        jitter = self.lengths + self.rng.normal(0.0, 6.0, len(self.lengths))
        order = np.argsort(jitter)[: len(self) * self.batch_size].reshape(len(self), self.batch_size)
        for row in self.rng.permutation(len(self)):
            yield order[row].tolist()
