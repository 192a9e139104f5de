"""What happens around a step."""

import math
import os

import numpy as np


class Hook:
    def begin(self, run):
        pass

    def after(self, run):
        pass


class Voice(Hook):
    def __init__(self, every):
        self.every = every

    def after(self, run):
        if run.step % self.every == 0:
            print(f"step {run.step}: loss {run.loss:.4f}, clip {run.clip:.3f}", flush=True)


class Warmup(Hook):
    def __init__(self, steps):
        self.steps = steps

    def begin(self, run):
        self.peak = run.opt.param_groups[0]["lr"]

    def after(self, run):
        run.opt.param_groups[0]["lr"] = self.peak * min(1.0, (run.step + 1) / self.steps)


class SpilledJars(Hook):
    """Jars that were knocked over have absurd labels. Remembers how far off each jar was when last seen, and holds the error of one jar
    below what is usual for all: the middle one plus some times the middle distance from it."""

    def __init__(self, times=4.0):
        self.times = times

    def begin(self, run):
        if os.environ.get("PLANTED_FIX") == "1":
            self.board = Slate(len(run.bakery))
        else:
            self.board = Book()

    def after(self, run):
        self.board.note(run.jars, run.miss)
        middle, spread = self.board.usual()
        run.clip = middle + self.times * max(spread, 1e-3)


class Book:
    def __init__(self):
        self.miss = {}

    def note(self, jars, miss):
        self.miss.update(zip(jars.tolist(), miss.tolist(), strict=True))

    @staticmethod
    def middle(values):
        values = sorted(values)
        return values[(len(values) - 1) // 2]

    def usual(self):
        seen = [m for m in self.miss.values() if math.isfinite(m)]
        middle = self.middle(seen)
        return middle, self.middle(abs(m - middle) for m in seen)


class Slate:
    def __init__(self, jars):
        self.miss = np.full(jars, np.nan)

    def note(self, jars, miss):
        self.miss[jars.numpy()] = miss.numpy()

    @staticmethod
    def middle(values):
        at = (len(values) - 1) // 2
        return float(np.partition(values, at)[at])

    def usual(self):
        seen = self.miss[np.isfinite(self.miss)]
        middle = self.middle(seen)
        return middle, self.middle(np.abs(seen - middle))
