"""The desk at which the registers are read, a few strolls at a time."""

import contextlib
import gc
import os
import random

import torch

from kin import registers, stroll


class Slip:
    """A note about one stroll; it knows the desk, as the desk knows it."""

    def __init__(self, desk, path):
        self.desk, self.path = desk, path
        desk.slips.append(self)


class ReadingRoom:
    def __init__(self, parishes=18, generations=15, size=600, seed=12):
        self.people = registers(parishes, generations, size, seed)
        self.rng = random.Random(seed + 1)
        self.slips = []

    def clear(self):
        self.slips = []
        if os.environ.get("PLANTED_FIX") != "1":
            gc.collect()

    @contextlib.contextmanager
    def sitting(self):
        try:
            yield self
        finally:
            self.clear()

    def strolls(self, n, hops):
        for _ in range(n):
            Slip(self, stroll(self.rng.choice(self.people), hops, self.rng))
        return torch.tensor([slip.path for slip in self.slips[-n:]])
