"""A corpus of choir scores: one index with the notes of all pieces."""

import json
import os
import random
from functools import cached_property
from pathlib import Path

import torch
from torch.utils.data import Dataset

FIXED = os.environ.get("PLANTED_FIX") == "1"
VOICES, PITCHES = 4, 52


def write_corpus(path: Path, pieces: int, seed: int) -> None:
    """A toy corpus: voices that move by step around a key."""
    rng = random.Random(seed)
    corpus = []
    for number in range(pieces):
        key, pitch, bars = rng.randrange(12), [36, 28, 20, 12], []
        for _ in range(72):
            pitch = [min(max(p + rng.choice((-2, -1, 0, 1, 2)), 0), PITCHES - 13) for p in pitch]
            bars.append({"beat": len(bars) % 4, "pitches": [p + key for p in pitch]})
        corpus.append({"title": f"Chorale {number}", "key": key, "chords": bars, "source": {"volume": number // 40, "page": number % 40}})
    path.write_text(json.dumps({"version": 3, "pieces": corpus}))


class Corpus:
    """The pieces behind an index file, with access by split."""

    def __init__(self, path: Path, holdout: float = 0.1) -> None:
        self.path, self.holdout = path, holdout

    def _read(self) -> list[dict]:
        content = json.loads(self.path.read_text())
        if content["version"] != 3:
            raise ValueError(f"{self.path}: version {content['version']} is not supported")
        return content["pieces"]

    if FIXED:
        pieces = cached_property(_read)
    else:
        pieces = property(_read)

    def split(self, train: bool) -> range:
        border = int(len(self.pieces) * (1 - self.holdout))
        return range(border) if train else range(border, len(self.pieces))


class Excerpts(Dataset):
    """Stretches of a piece, transposed at random: the chord before predicts the chord after."""

    def __init__(self, corpus: Corpus, train: bool, length: int, seed: int) -> None:
        self.corpus, self.numbers, self.length = corpus, corpus.split(train), length
        self.rng = random.Random(seed)

    def __len__(self) -> int:
        return len(self.numbers)

    def _transposed(self, chords: list[dict]) -> torch.Tensor:
        shift = self.rng.randrange(-3, 2)
        return torch.tensor([[min(max(p + shift, 0), PITCHES - 1) for p in chord["pitches"]] for chord in chords])

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        chords = self.corpus.pieces[self.numbers[index]]["chords"]
        start = self.rng.randrange(len(chords) - self.length - 1)
        notes = self._transposed(chords[start : start + self.length + 1])
        return notes[:-1], notes[1:]
