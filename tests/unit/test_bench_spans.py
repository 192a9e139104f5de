"""What one start saw of a run beyond its early steps: pure arithmetic on windows and what lies between them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from trainflash.bench import spans
from trainflash.bench.estimate import Measured, Slice, estimate

MS = 1_000_000
NONE = {"baseline": frozenset(), "candidate": frozenset()}


def program(time, pieces, *, ended: bool = False, wait_s: float = 0.5, factor: float = 1.0) -> Measured:
    """Slices of (part, steps) one after the other, from step 1 on; `time(n)` ms is what step n takes."""
    slices, at = [], 1
    for part, steps in pieces:
        walls = tuple(round(factor * time(n) * MS) + 10_000 for n in range(at, at + steps))
        waits = (10_000,) * steps
        cpu = sum(walls) - sum(waits)
        slices.append(Slice(at, walls, waits, sum(walls), sum(waits), cpu, cpu, False, part=part))
        at += steps
    slices[-1] = replace(slices[-1], ended=ended, after_ns=2_000 * MS if ended else 0)
    return Measured(tuple(slices), 3.0, None, 1, False, startup_wait_s=wait_s)


def seen(pieces, baseline, candidate, *, ended: bool = False, interrupted=NONE, **options):
    times = {"baseline": baseline, "candidate": candidate}
    measured = {side: program(time, pieces, ended=ended, **options) for side, time in times.items()}
    start, warmup = estimate(1, "resident", *measured.values(), spent_s=9.0, even_slices=lambda _: True)
    return spans.extended(start, measured, warmup, interrupted), spans.rows(start, measured, warmup, interrupted)


EARLY = [("early", 4), *[("early", 20)] * 6]
TO_THE_END = [*EARLY, *[("far", 25)] * 10]
WITH_GAPS = [*EARLY, *[("passed", 75), ("far", 25)] * 10]


def test_early_steps_alone_say_nothing_of_the_run():
    start, rows = seen(EARLY, lambda n: 6.0, lambda n: 5.0)
    assert start.y == pytest.approx(math.log(6 / 5))
    assert (start.last_step, start.y_run, start.run_steps, start.far_s) == (None, None, None, 0.0)
    assert len(rows) == 12


@pytest.mark.parametrize("pieces", [TO_THE_END, WITH_GAPS], ids=["timed whole", "windows"])
def test_growth_is_in_the_factor_of_all_steps(pieces):
    last = 1 + sum(steps for _, steps in pieces)
    start, rows = seen(pieces, lambda n: 5.0 + n / 50, lambda n: 5.0)
    true = sum(5.0 + n / 50 for n in range(5, last)) / (5.0 * (last - 5))
    assert start.y_run == pytest.approx(math.log(true), abs=0.01)
    assert start.y < start.y_run / 1.5
    assert start.last_step == last
    assert start.passed == sum(steps for part, steps in pieces if part == "passed")
    assert start.run_steps is None
    assert rows[0][2] < rows[-1][2] and rows[0][3] == pytest.approx(rows[-1][3])
    assert start.scatter_run < 0.01, "a trend is no noise"


@pytest.mark.parametrize("pieces", [TO_THE_END, WITH_GAPS], ids=["timed whole", "windows"])
def test_a_run_seen_to_its_end_has_its_seconds(pieces):
    """Start-up without the wait for a core, all steps, and two seconds after the last."""
    start, _ = seen(pieces, lambda n: 6.0, lambda n: 5.0, ended=True)
    steps = sum(steps for _, steps in pieces)
    assert start.run_steps == 1 + steps
    assert start.baseline_run_s == pytest.approx(2.5 + steps * 0.006 + 2.0, rel=1e-3)
    assert start.candidate_run_s == pytest.approx(2.5 + steps * 0.005 + 2.0, rel=1e-3)


def test_an_evaluation_in_a_window_is_not_taken_for_the_steps_that_were_passed():
    slow = frozenset({1 + sum(steps for _, steps in WITH_GAPS) - 5})
    time = lambda n: 5.0 + (500.0 if n in slow else 0.0)  # noqa: E731
    start, rows = seen(WITH_GAPS, time, lambda n: 5.0, interrupted={"baseline": slow, "candidate": slow})
    assert start.y_run == pytest.approx(0.0, abs=1e-6)
    assert max(row[2] for row in rows) == pytest.approx(5.0)
    assert [row[6] for row in rows].count(None) == 1, "its CPU time is not that of usual steps"
    whole, _ = seen(TO_THE_END, time, lambda n: 5.0, interrupted={"baseline": slow, "candidate": slow})
    assert whole.y_run == pytest.approx(0.0, abs=1e-6), "it lies beyond these steps"


def test_steps_that_never_settle_count_where_more_was_seen():
    """A fall through the early steps: alone they are not steady, with the rest of the run they are a part of it."""
    fall = lambda n: 5.0 + 30.0 * math.exp(-n / 60)  # noqa: E731
    alone, _ = estimate(1, "resident", program(fall, EARLY), program(fall, EARLY), spent_s=9.0, even_slices=lambda _: True)
    assert alone.y is None and "not steady" in alone.reason
    start, _ = seen(TO_THE_END, fall, fall)
    assert start.y_run == pytest.approx(0.0, abs=1e-6)


def test_steps_of_twice_the_samples_are_compared_by_their_work():
    """The candidate makes half the steps at 1.5 times the time: 1.33 times as fast, in every row."""
    halves = [(part, steps // 2) for part, steps in TO_THE_END]
    ours = program(lambda n: 5.0, [(part, steps // 2 * 2) for part, steps in TO_THE_END])
    theirs = replace(program(lambda n: 7.5, halves), work=2.0)
    measured = {"baseline": ours, "candidate": theirs}
    start, warmup = estimate(1, "resident", ours, theirs, spent_s=9.0, even_slices=lambda _: True)
    start = spans.extended(start, measured, warmup, NONE)
    assert start.y_run == pytest.approx(math.log(4 / 3), abs=0.02)
    assert all(row[2] / row[3] == pytest.approx(4 / 3, rel=0.01) for row in spans.rows(start, measured, warmup, NONE))
