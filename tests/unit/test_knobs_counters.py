"""A counter of operations that is entered once: the program's figures stay, and later blocks run without it."""

from __future__ import annotations

from knob_runs import applied, candidate_here

SOURCE = """
import contextlib
import torch
from torch.utils.flop_counter import FlopCounterMode


class Meter:
    def __init__(self):
        self.work = []

    @contextlib.contextmanager
    def lap(self):
        with FlopCounterMode(display=False) as count:  # here
            yield
        self.work.append(count.get_total_flops())


def work():
    meter, layer, modes = Meter(), torch.nn.Linear(4, 3), []
    for _ in range(3):
        with meter.lap():
            layer(torch.ones(2, 4)).sum().backward()
            modes.append(len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()))
    return meter.work, modes
"""


def test_figures_stay_and_only_the_first_block_is_counted(tmp_path):
    before: dict = {}
    exec(SOURCE, before)
    changed = applied(tmp_path, candidate_here(tmp_path, "counted_once", SOURCE, input_shapes=1).diff)["train.py"]
    after: dict = {}
    exec(changed, after)
    figures, modes = before["work"]()
    assert figures[0] > 0 and modes == [1, 1, 1]
    assert after["work"]() == (figures, [1, 0, 0])
