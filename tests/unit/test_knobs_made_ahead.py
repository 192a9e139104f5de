"""A generator that a thread runs ahead gives what it gave before, ends as it ended, and leaves no thread behind."""

from __future__ import annotations

import subprocess
import sys
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


ENDLESS = """
import torch
import torch.nn.functional as F


def frames():  # here
    for number in range(10**6):
        frame = torch.full((1, 8, 64, 64), float(number % 7))
        for _ in range(20):
            frame = F.grid_sample(frame, torch.zeros(1, 64, 64, 2), align_corners=True)
        yield frame


torch.set_num_threads(1)
batches = frames()
for number, frame in enumerate(batches):
    if number == 5:
        break
print("ended")
"""


def test_a_program_ends_well_while_a_batch_is_being_made(tmp_path):
    here = Location("train.py", next(n for n, row in enumerate(ENDLESS.splitlines(), 1) if "# here" in row))
    changed = applied(tmp_path, candidate_here(tmp_path, "made_ahead", ENDLESS, no_loader=True, data_function=here).diff)["train.py"]
    for _ in range(3):  # a thread that is stopped inside of torch ends the process by a signal, nearly each time
        done = subprocess.run([sys.executable, "-c", changed], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
