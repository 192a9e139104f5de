"""Weighted draws whose sums are kept: number for number what numpy draws."""

from __future__ import annotations

import numpy as np
import pytest
from knob_runs import applied, candidate_here

SOURCE = """import numpy as np


class Bank:
    def __init__(self, counts, seed):
        self.p = (counts / counts.sum()).astype(np.{kind})
        self.stream = {stream}

    def draw(self, size):
        return {draws}(len(self.p), size=size, p=self.p)  # here
"""
STREAMS = {
    "generator": ("np.random.default_rng(seed)", "self.stream.choice"),
    "state": ("np.random.RandomState(seed)", "self.stream.choice"),
    "global": ("np.random.seed(seed)", "np.random.choice"),
}


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("stream", STREAMS)
def test_the_draws_are_the_same(tmp_path, stream, kind):
    source = SOURCE.replace("{kind}", kind).replace("{stream}", STREAMS[stream][0]).replace("{draws}", STREAMS[stream][1])
    changed = applied(tmp_path, candidate_here(tmp_path, "drawn_weights", source).diff)["train.py"]
    assert "choice" not in changed
    counts, drawn = np.array([3.0, 1.0, 0.0, 4.0]), []
    for text in (source, changed):
        names: dict = {}
        exec(text, names)
        bank = names["Bank"](counts, 3)
        drawn.append([bank.draw(size) for size in (5, (2, 3), 1000, 0)])
    for one, other in zip(*drawn, strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)
