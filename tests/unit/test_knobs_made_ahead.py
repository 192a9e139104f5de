"""A generator that a thread runs ahead gives what it gave before, ends as it ended, and leaves no thread behind."""

from __future__ import annotations

import threading

import pytest
from knob_runs import applied, candidate_here

from trainflash.schema import Location

SOURCE = """
import numpy as np

made = []


class Batches:
    def __init__(self, count):
        self.count, self.rng = count, np.random.default_rng(3)

    def __iter__(self):  # here
        for number in range(self.count):
            made.append(number)
            if number == 7:
                raise KeyError("seventh")
            yield number, self.rng.normal(size=4)
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("ahead")
    here = Location("train.py", next(n for n, row in enumerate(SOURCE.splitlines(), 1) if "# here" in row))
    return applied(root, candidate_here(root, "made_ahead", SOURCE, no_loader=True, data_function=here).diff)["train.py"]


def space(source: str) -> dict:
    found: dict = {}
    exec(compile(source, "train.py", "exec"), found)
    return found


def rows(batches) -> list:
    return [(number, values.tolist()) for number, values in batches]


@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_the_same_batches_in_the_same_order(changed, count):
    before, after = space(SOURCE)["Batches"](count), space(changed)["Batches"](count)
    assert rows(after) == rows(before)
    assert rows(after) == rows(before)  # a second round goes on with the stream


def test_an_error_comes_where_it_came(changed):
    batches, seen = space(changed)["Batches"](9), []
    with pytest.raises(KeyError, match="seventh"):
        for number, _ in batches:
            seen.append(number)
    assert seen == [*range(7)]


def test_who_stops_early_leaves_no_thread(changed):
    found = space(changed)
    threads = set(threading.enumerate())
    batches = iter(found["Batches"](6))
    next(batches)
    (thread,) = set(threading.enumerate()) - threads
    batches.close()
    thread.join(10)
    assert not thread.is_alive() and len(found["made"]) <= 4
