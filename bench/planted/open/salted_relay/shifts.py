"""Shifts: an epoch is a drawn handful of messages, four of each of some operators, so that each has company."""

import os

import numpy as np
from torch.utils.data import DataLoader


class Draw:
    def __init__(self, operators, batch, each, length, seed):
        self.groups = {o: np.flatnonzero(operators == o) for o in np.unique(operators)}
        self.batch, self.each, self.length, self.seed, self.shift = batch, each, length, seed, 0

    def __len__(self):
        return self.length

    def __iter__(self):
        rng = np.random.default_rng((self.seed, self.shift))
        for _ in range(self.length):
            chosen = rng.choice(list(self.groups), self.batch // self.each, replace=False)
            yield np.concatenate([rng.choice(self.groups[o], self.each, replace=False) for o in chosen]).tolist()


class Shifts:
    """Iterates for ever; yields (shift, batch)."""

    def __init__(self, wire, draw, hands):
        self.wire, self.draw, self.hands, self.kept = wire, draw, hands, None

    def crew(self, **more):
        return DataLoader(self.wire, batch_sampler=self.draw, num_workers=self.hands, prefetch_factor=3, **more)

    def __iter__(self):
        while True:
            if os.environ.get("PLANTED_FIX") == "1":
                self.kept = self.kept or self.crew(persistent_workers=True)
                loader = self.kept
            else:
                loader = self.crew()
            for batch in loader:
                yield self.draw.shift, batch
            self.draw.shift += 1
