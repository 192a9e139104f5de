"""The observatory's tape reel. It turns at a certain pace, and takes a moment to settle before it can be read."""

import time

import numpy as np


class Reel:
    def __init__(self, path, shape, pace, settle):
        self.tape = np.memmap(path, np.float32, "r", shape=shape)
        self.pace, self.settle, self.under = pace, settle, 0

    def read(self, hour):
        time.sleep(self.settle + abs(hour - self.under) / (self.pace * 40))
        self.under = hour
        return np.array(self.tape[hour])


def record(path, hours, rate, channels, seed):
    """An infrasound record of a volcano, an excerpt of each hour: wind, and what the vent did."""
    rng = np.random.default_rng(seed)
    tape = np.memmap(path, np.float32, "w+", shape=(hours, channels, rate))
    kinds = rng.integers(0, 5, hours)
    t = np.arange(rate) / rate
    for hour, kind in enumerate(kinds):
        onset, tone = rng.uniform(0.1, 0.5), 12 + 9 * kind + rng.normal()
        burst = np.where(t > onset, np.exp(-(t - onset) * (3 + 2 * kind)), 0) * np.sin(2 * np.pi * tone * t)
        wind = rng.standard_normal((channels, rate)).cumsum(1) * 0.05
        tape[hour] = wind + rng.uniform(0.5, 1.5, (channels, 1)) * burst
    tape.flush()
    return kinds
