"""Boats past a pontoon: tracks of very different lengths, and what kind of boat it was."""

import os

import numpy as np
import torch

KINDS, SENSORS = 6, 5


class Tracks:
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(0, KINDS, count)
        slow = rng.random(count) < 0.5
        self.length = np.where(slow, rng.integers(170, 250, count), rng.integers(8, 18, count))
        self.track = []
        for kind, n in zip(self.kind, self.length):
            t = np.linspace(0, 1, n)[:, None]
            wave = np.sin((3 + kind) * t * np.arange(1, SENSORS + 1) + rng.normal(0, 0.3, SENSORS))
            self.track.append(torch.tensor(wave + rng.normal(0, 0.4, wave.shape), dtype=torch.float32))

    def batch(self, rows):
        tracks = [self.track[i] for i in rows]
        lengths = torch.as_tensor(self.length[rows])
        return torch.nn.utils.rnn.pad_sequence(tracks, batch_first=True), lengths, torch.as_tensor(self.kind[rows])


class RankedBatches:
    """Batches of tracks of like length, for this rank. Every rank makes as many."""

    def __init__(self, lengths, size, rank, world, seed=0):
        self.size, self.seed, self.epoch = size, seed, 0
        self.rows = self.portion(np.argsort(lengths, kind="stable"), rank, world)

    @staticmethod
    def portion(order, rank, world):
        each = len(order) // world
        if os.environ.get("PLANTED_FIX") == "1":
            return order[rank : each * world : world]
        return order[rank * each : (rank + 1) * each]

    def __iter__(self):
        batches = [self.rows[i : i + self.size] for i in range(0, len(self.rows) - self.size + 1, self.size)]
        for b in np.random.default_rng([self.seed, self.epoch]).permutation(len(batches)):
            yield batches[b]
        self.epoch += 1
