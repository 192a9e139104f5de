"""Steps that lead from a log to a clip."""

import os

import numpy as np


class Level:
    """Running median to zero, running spread to one; the ends, where they are not defined, are lost."""

    def __init__(self, span):
        self.span = span

    def __call__(self, log, rng):
        half = self.span // 2
        view = np.lib.stride_tricks.sliding_window_view(log, self.span)
        low, mid, high = np.quantile(view, (0.15, 0.5, 0.85), axis=1).astype(np.float32)
        return (log[half:-half] - mid) / (high - low + 0.1)


class Window:
    def __init__(self, width, spare=0):
        self.width, self.spare = width, spare

    def __call__(self, log, rng):
        at = int(rng.random() * (len(log) - self.width - self.spare + 1))
        return log[at : at + self.width + self.spare]


class Scale:
    def __call__(self, log, rng):
        return (log - log.mean()) / (log.std() + 1e-4)


class Chain:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, log, rng):
        for step in self.steps:
            log = step(log, rng)
        return log


def standard(width, span=41):
    if os.environ.get("PLANTED_FIX") == "1":
        return Chain(Window(width, span - 1), Level(span), Scale())
    return Chain(Level(span), Window(width), Scale())
