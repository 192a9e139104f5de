"""Into which slices a start is cut, by how long a step takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trainflash.bench import measure
from trainflash.bench.estimate import LEAST_STEPS
from trainflash.bench.paced import Plan


def paced(step_s: float):
    times = [step_s * 1e9] * 5
    measured = SimpleNamespace(step_times=lambda: times)
    return SimpleNamespace(measured=lambda: measured, slices=[SimpleNamespace(step_ns=times)], ready={}, processes=1)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("step_s", [0.001, 0.02, 0.09, 0.17, 0.3, 1.0, 6.0])
def test_a_start_has_enough_steps_however_long_they_are(step_s, far):
    steps, slices = measure._cut(Plan(far=far, startup_s=4.0), paced(step_s), paced(step_s))
    assert steps * slices >= LEAST_STEPS and slices >= measure.LEAST_SLICES
    assert slices <= (measure.EARLY_SLICES if far else measure.SLICES)


def cycles(cycle: int, budget_s: float, available: int | None = None, startup_s: float | None = None):
    share = SimpleNamespace(reach_s=lambda: budget_s / 5)
    first = paced(0.1)
    first.startup_s = lambda: 2.0
    return measure._cycles(Plan(cycle=cycle, startup_s=startup_s, available=available), share, first, paced(0.08))


def test_slices_hold_a_whole_evaluation_each_where_there_is_time():
    assert cycles(50, 300.0) == (50, 2)  # 2 × 50 steps of 0.1 s on both sides, and as long again for the evaluations
    assert cycles(50, 3000.0) == (50, measure.EARLY_SLICES)
    assert cycles(50, 60.0) is None  # no time
    assert cycles(50, 60.0, startup_s=2.0) == (50, 1)  # as the starts before it
    assert cycles(0, 300.0) is None and cycles(8, 300.0) is None  # none, or in slices of any length
    assert cycles(50, 300.0, available=40) is None
