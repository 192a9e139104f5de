"""Timers that a program places by hand; what they saw is the truth that the probe is held against."""

import json
import sys
import time

_clock = time.perf_counter_ns
_marks = []  # [ns, name, +1 or -1]; a step begins: [ns, "step", 0]


class timed:
    """`with timed("Fwd"): …`; spans may nest."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        _marks.append((_clock(), self.name, 1))

    def __exit__(self, *error):
        _marks.append((_clock(), self.name, -1))


def step():
    """One step of the loop is over and the next one begins."""
    _marks.append((_clock(), "step", 0))


def batches(loader):
    """The loader's batches; getting the iterator and waiting for each batch is Data."""
    with timed("Data"):
        iterator = iter(loader)
    while True:
        with timed("Data"):
            batch = next(iterator, None)
        if batch is None:
            return
        yield batch


def write():
    """Leave the marks for the bench."""
    with open(sys.argv[2], "w") as out:
        json.dump(_marks, out)
