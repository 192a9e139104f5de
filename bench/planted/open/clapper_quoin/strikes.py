"""Strike recordings of tuned bells, as the foundry's tuning bench takes them: mono, cut where the sound has died away."""

import numpy as np
import torch

RATE = 1600
PARTIALS = ("hum", "prime", "tierce", "quint", "nominal")
IDEAL = np.array([0.5, 1.0, 1.2, 1.5, 2.0])


def strike(rng):
    note = rng.uniform(90, 240)
    ratio = IDEAL * (1 + rng.normal(0, 0.02, 5))
    decay = rng.uniform(3, 9) * np.array([0.5, 1.0, 1.1, 1.6, 1.3])
    length = int(rng.integers(260, 760))
    t = np.arange(length) / RATE
    loud = rng.uniform(0.3, 1.0, 5)
    wave = (loud[:, None] * np.exp(-decay[:, None] * t) * np.sin(2 * np.pi * note * ratio[:, None] * t)).sum(0)
    wave += rng.normal(0, 0.01, length)
    cents = 1200 * np.log2(ratio / IDEAL)
    return torch.from_numpy((wave / np.abs(wave).max()).astype(np.float32)), torch.from_numpy((cents / 40).astype(np.float32))


class Bench:
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.items = [strike(rng) for _ in range(count)]
        self.order = np.random.default_rng(seed + 1)

    def rounds(self, size):
        """Endless shuffled passes over all strikes, in trays of `size`."""
        while True:
            seats = self.order.permutation(len(self.items))
            for at in range(0, len(seats) - size + 1, size):
                yield [self.items[i] for i in seats[at : at + size]]
