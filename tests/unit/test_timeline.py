"""Every step in order, joined to bins: what is drawn is what was measured."""

from __future__ import annotations

import numpy as np
import pytest
import traces as t
from hypothesis import given
from hypothesis import strategies as st

from trainflash.schema import Timeline, from_plain, to_plain
from trainflash.summary import timeline
from trainflash.summary.timeline import MOST_BINS


def of(step_ms, phases) -> Timeline:
    return timeline(t.trace(t.rank(step_ms, phases)), run="diagnose-001")


def test_a_short_run_keeps_every_step():
    found = of([10.0] * 50, {"Fwd": 0.5, "Eval": [0.0] * 49 + [4.0]})
    assert found.first_step == tuple(range(50))
    assert found.phases["Eval"][-1] == pytest.approx(4.0) and found.phases["Eval"][0] == 0.0
    assert found.steps == 50 and found.warmup_steps == 5
    assert from_plain(Timeline, to_plain(found)) == found


def test_the_slowest_step_of_a_bin_is_kept():
    steps = [10.0] * 1000
    steps[700] = 500.0
    found = of(steps, {"Fwd": 0.5})
    assert len(found.first_step) == MOST_BINS
    assert max(found.slowest_ms) == pytest.approx(500.0)
    assert max(sum(column) for column in zip(*found.phases.values(), strict=True)) < 500.0


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=400))
def test_bins_hold_every_step_once_and_phases_add_up(step_ms):
    found = of(step_ms, {"Data": 0.3, "Bwd": 0.4})
    edges = (*found.first_step, found.steps)
    counts = np.diff(edges)
    assert edges[0] == 0 and edges[-1] == len(step_ms) and (counts > 0).all()
    heights = np.sum(list(found.phases.values()), axis=0)
    assert float((heights * counts).sum()) == pytest.approx(sum(step_ms), rel=1e-3, abs=1e-3)
    assert all(slowest >= height - 1e-6 for slowest, height in zip(found.slowest_ms, heights, strict=True))
