"""Each lock has a temper of its own: errors are weighed by how widely they lately spread there."""

import os
from collections import deque

import numpy as np


def middle(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def temper(errors):
    centre = middle(errors)
    return middle([abs(error - centre) for error in errors])


class Gauges:
    """Begins as if the last boats at every lock had been a minute early and a minute late, in turn."""

    def __init__(self, locks, reach, least=0.05):
        self.errors = [deque([1.0, -1.0] * (reach // 2), maxlen=reach) for _ in range(locks)]
        self.least = least

    def note(self, lock, error):
        for at, value in zip(lock.tolist(), error.tolist()):
            self.errors[at].append(value)

    def weights(self, lock):
        return (1 / np.maximum(self.spread(), self.least))[lock].astype(np.float32)

    def spread(self):
        return np.array([1.4826 * temper(errors) for errors in self.errors])


class Rows(Gauges):
    def __init__(self, locks, reach, least=0.05):
        self.errors = np.tile([1.0, -1.0], (locks, reach // 2))
        self.next, self.least = [0] * locks, least

    def note(self, lock, error):
        for at, value in zip(lock.tolist(), error.tolist()):
            self.errors[at, self.next[at]] = value
            self.next[at] = (self.next[at] + 1) % self.errors.shape[1]

    def spread(self):
        off = np.abs(self.errors - np.median(self.errors, 1, keepdims=True))
        return 1.4826 * np.median(off, 1)


def gauges(locks, reach):
    if os.environ.get("PLANTED_FIX") == "1":
        return Rows(locks, reach)
    return Gauges(locks, reach)
