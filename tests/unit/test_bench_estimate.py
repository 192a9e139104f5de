from __future__ import annotations

import math
from dataclasses import replace

import pytest

from trainflash import bench
from trainflash.bench.estimate import Measured, Slice, estimate
from trainflash.schema import Start

MS = 1_000_000


def piece(first, steps, step_ms=5.0, wait_ms=0.01, *, cpu=1.0, own=1.0, ended=False, slow_step=0.0):
    """`steps` equal steps; the last one takes `slow_step` ms more."""
    walls = [round(step_ms * MS)] * steps
    walls[-1] += round(slow_step * MS)
    waits = None if wait_ms is None else (round(wait_ms * MS),) * steps
    total = sum(walls)
    runq = None if waits is None else sum(waits)
    busy = total - (runq or 0)
    return Slice(first, tuple(walls), waits, total, runq, round(cpu * busy), round(own * busy), ended)


def program(step_ms=5.0, *, slices=12, steps=20, warmup=4, processes=1, tree_cpu_s=None, device=False, **options):
    pieces = [piece(1, warmup, step_ms, **options)]
    pieces += [piece(1 + warmup + i * steps, steps, step_ms, **options) for i in range(slices)]
    return Measured(tuple(pieces), 3.0, tree_cpu_s, processes, device)


def started(baseline, candidate, schedule="resident", even=True):
    return estimate(1, schedule, baseline, candidate, spent_s=9.0, even_slices=lambda slices: even)[0]


def with_slices(side, change):
    return replace(side, slices=tuple(change(i, piece) for i, piece in enumerate(side.slices)))


def test_two_steady_programs():
    start = started(program(6.0), program(5.0))
    assert start.clock == "net"
    assert start.y == pytest.approx(math.log(5.99 / 4.99))
    assert start.y_wall == pytest.approx(math.log(6 / 5))
    assert (start.steps, start.slices) == (240, 12)
    assert start.baseline_step_ms == pytest.approx(5.99)
    assert start.baseline_p95_ms == pytest.approx(5.99)
    assert start.baseline_p99_ms is None
    assert start.runqueue_share == pytest.approx(0.02 / 11)


def test_net_time_forgets_the_wait_for_a_core():
    start = started(program(6.0, wait_ms=0.01), program(12.0, wait_ms=7.01))
    assert start.y == pytest.approx(math.log(5.99 / 4.99))
    assert start.y_wall == pytest.approx(math.log(6 / 12))


@pytest.mark.parametrize(
    "side",
    [
        program(wait_ms=None),
        program(wait_ms=0.0),
        program(cpu=1.3),
        program(device=True),
        program(processes=2, tree_cpu_s=1.2),
        replace(program(), paced=False),
    ],
    ids=["no schedstat", "schedstat stands still", "several busy threads", "gpu", "another process count", "several trainers"],
)
def test_net_must_hold_on_both_sides(side):
    assert started(side, program()).clock == "wall"
    assert started(program(), side).clock == "wall"


def test_workers_at_work_are_judged_by_wall_time():
    waiting = program(processes=2, tree_cpu_s=1.2, cpu=0.4, own=0.4)
    idle_helper = program(processes=2, tree_cpu_s=1.2)
    assert started(waiting, waiting).clock == "wall"
    assert started(idle_helper, idle_helper).clock == "net"


def test_wall_time_trims_slices_that_were_disturbed():
    disturbed = with_slices(program(wait_ms=None), lambda i, p: piece(p.first, p.steps, 50.0, None) if i == 3 else p)
    start = started(disturbed, program(wait_ms=None))
    assert start.y == pytest.approx(0.0)
    assert start.y_wall > 0.4


def test_what_the_slices_scatter_by_is_told_where_they_are_alike():
    uneasy = with_slices(program(), lambda i, p: piece(p.first, p.steps, 5.0 * (1.1 if i % 2 else 1.0)))
    assert started(program(), program()).scatter == pytest.approx(0.0, abs=1e-9)
    assert started(uneasy, program()).scatter == pytest.approx(math.log(1.1) / 2 * math.sqrt(12 / 11) / math.sqrt(12), rel=0.01)
    assert started(uneasy, program(), even=False).scatter is None
    few = with_slices(program(slices=4, steps=60), lambda i, p: p)
    assert started(few, few).scatter is None


def test_wall_time_keeps_slices_that_hold_an_evaluation():
    evaluating = with_slices(program(wait_ms=None), lambda i, p: piece(p.first, p.steps, 5.0, None, slow_step=400.0 if i == 3 else 0.0))
    start = started(evaluating, program(wait_ms=None), even=False)
    assert start.y == start.y_wall > 0.2


def test_a_candidate_that_only_moves_cost_gains_nothing():
    def moved(i, p):
        return piece(p.first, p.steps, 4.5, slow_step=10.0) if i else p

    start = started(program(5.0), with_slices(program(5.0), moved))
    assert start.y == pytest.approx(0.0, abs=1e-3)


def test_unequal_steps_do_not_compare():
    short = program()
    short = replace(short, slices=(*short.slices[:5], piece(short.slices[5].first, 9, ended=True)))
    long = replace(program(), slices=program().slices[:6])
    start = started(long, short)
    assert start.y is None
    assert "same number of steps: 105 steps and 94 steps to its end" in start.reason


def test_both_ending_at_the_same_step_is_fine():
    def cut(side):
        return replace(side, slices=(*side.slices[:5], piece(side.slices[5].first, 9, ended=True)))

    start = started(cut(program(6.0)), cut(program()))
    assert start.y is not None
    assert start.steps == 89
    later = replace(program(), slices=(*program().slices[:5], piece(program().slices[5].first, 9)))
    assert started(cut(program()), later).y is None


def test_warmup_of_either_side_is_dropped_on_both():
    def cold(i, p):
        return piece(p.first, p.steps, 20.0) if i <= 2 else p

    start = started(program(6.0), with_slices(program(5.0), cold))
    assert start.slices in (9, 10)
    assert start.y == pytest.approx(math.log(5.99 / 4.99))


def test_a_first_epoch_that_was_passed_is_no_part_of_the_steady_steps():
    """A candidate whose cache fills in the first 140 steps: they are slow, long, and say nothing about the steps after them."""
    slow_first = with_slices(program(2.0, warmup=140), lambda i, each: piece(1, 140, 6.0) if i == 0 else each)
    start, warmup = estimate(1, "resident", program(6.0, warmup=140), slow_first, spent_s=9.0, even_slices=lambda slices: True)
    assert start.y == pytest.approx(math.log(5.99 / 1.99))
    assert (start.steps, warmup) == (240, 141)


def test_steps_that_never_settle_do_not_count():
    rising = with_slices(program(), lambda i, p: piece(p.first, p.steps, 60.0 - 4 * i))
    start = started(rising, program())
    assert start.y is None
    assert "not steady" in start.reason


def test_a_slow_first_half_of_a_short_start_is_left_out():
    """48 steps, too few for the windows of their second half: what came before is left out, and that half counts unless it falls."""
    disturbed = with_slices(program(6.0, slices=6, steps=8), lambda i, p: piece(p.first, p.steps, 9.0) if i <= 2 else p)
    start = started(disturbed, program(slices=6, steps=8))
    assert start.y == pytest.approx(math.log(5.99 / 4.99)) and start.steps >= 20
    falling = with_slices(program(slices=6, steps=8), lambda i, p: piece(p.first, p.steps, 30.0 - 4 * i))
    assert "not steady" in started(falling, program(slices=6, steps=8)).reason


def test_too_few_steps_do_not_count():
    start = started(program(slices=1, steps=15), program(slices=1, steps=15))
    assert start.y is None
    assert "too few steps: 15" in start.reason


def test_sequential_runs_drop_the_warmup_within_the_run():
    def long(step_ms, cold):
        walls = (round(cold * MS),) * 20 + (round(step_ms * MS),) * 180
        waits = (10_000,) * 200
        whole = Slice(5, walls, waits, sum(walls), sum(waits), sum(walls), sum(walls), False)
        return Measured((piece(1, 4, cold), whole), 3.0, None, 1, False)

    start = started(long(6.0, 30.0), long(5.0, 10.0), "sequential")
    assert (start.schedule, start.clock) == ("sequential", "net")
    assert start.y == pytest.approx(math.log(5.99 / 4.99))
    assert 170 <= start.steps <= 180


def begun(n, y, clock="net", y_wall=None, **fields):
    return Start(n, "resident", y, y if y_wall is None else y_wall, clock, **fields)


def test_starts_of_mixed_clocks_are_all_judged_by_wall():
    starts = [begun(n, 0.4, "net", 0.3) for n in range(3)] + [begun(3, 0.4, "wall", 0.3)]
    assert bench.judge_starts(starts).speedup.mean == pytest.approx(math.exp(0.3))
    assert bench.judge_starts([begun(n, 0.4, "net", 0.3) for n in range(4)]).speedup.mean == pytest.approx(math.exp(0.4))


def test_starts_that_did_not_count_are_named():
    starts = [begun(n, 0.4) for n in range(4)] + [Start(5, "resident", None, None, "wall", reason="it crashed")]
    verdict = bench.judge_starts(starts)
    assert verdict.decision == "accept"
    assert "1 more start did not count: it crashed" in verdict.reason


def test_tails_reach_the_verdict():
    starts = [begun(n, 0.4, baseline_p95_ms=5.0, candidate_p95_ms=9.0, steps=240) for n in range(4)]
    verdict = bench.judge_starts(starts)
    assert verdict.decision == "reject"
    assert verdict.speedup.p95 == pytest.approx(5 / 9)


def test_a_tail_of_few_steps_describes_and_forbids_nothing():
    starts = [begun(n, 0.4, baseline_p95_ms=5.0, candidate_p95_ms=9.0, steps=199) for n in range(4)]
    verdict = bench.judge_starts(starts)
    assert verdict.decision == "accept"
    assert verdict.speedup.p95 == pytest.approx(5 / 9)
    assert verdict.speedup.p95_high is None
    assert "p95: described, not judged" in verdict.speedup.tail_reason


def test_the_tail_of_equal_steps_comes_with_five_starts():
    slow = [5.0] * 39 + [9.0]
    lines = [{"n": n, "baseline": (10, [5.0] * 200), "candidate": (10, slow * 5)} for n in range(6)]
    starts = [begun(n, 0.4) for n in range(6)]
    assert bench.judge_starts(starts, profiles=lines).speedup.own_p95 == pytest.approx(1.0)
    lines = [{**line, "candidate": (10, ([5.0] * 9 + [9.0]) * 20)} for line in lines]
    assert bench.judge_starts(starts, profiles=lines).speedup.own_p95 == pytest.approx(5 / 9)
    assert bench.judge_starts(starts, profiles=lines[:4]).speedup.own_p95 is None


def test_other_threads_at_work_are_judged_by_wall_time():
    """On a busy machine two threads share less than a core: only the training thread's own CPU time tells them apart."""

    def shared(i, p):
        return replace(p, thread_cpu_ns=p.cpu_ns // 2)

    def alone(i, p):
        return replace(p, thread_cpu_ns=p.cpu_ns)

    assert started(with_slices(program(cpu=0.9, own=0.9), shared), with_slices(program(cpu=0.9, own=0.9), shared)).clock == "wall"
    assert started(with_slices(program(cpu=0.9, own=0.9), alone), with_slices(program(cpu=0.9, own=0.9), alone)).clock == "net"


def test_a_larger_batch_is_compared_by_sample():
    """The candidate's steps have twice the samples and take 1.6 times as long: 1.25 times as fast a sample."""
    ours = replace(program(5.0, warmup=4, steps=40), work=16.0)
    theirs = replace(program(8.0, warmup=2, steps=20), work=32.0)
    start = started(ours, theirs)
    assert start.y == pytest.approx(math.log(2 * 4.99 / 7.99))
    assert start.y_wall == pytest.approx(math.log(1.25))
    assert start.baseline_p95_ms is None
    assert "same number of steps" in started(ours, replace(program(8.0, warmup=2, steps=30), work=32.0)).reason


def test_programs_of_equal_samples_may_end_after_unequal_steps():
    def cut(side, steps):
        return replace(side, slices=(*side.slices[:5], piece(side.slices[5].first, steps, ended=True)))

    ours = cut(replace(program(5.0, warmup=4, steps=40), work=16.0), 18)
    theirs = cut(replace(program(8.0, warmup=2, steps=20), work=32.0), 9)
    assert started(ours, theirs).y is not None
    assert started(ours, cut(replace(program(8.0, warmup=2, steps=20), work=32.0), 19)).y is None


def test_cost_is_one_sentence():
    assert bench.cost(600, start_s=10) == (
        "starts the program 8 to 32 times, each version 4 to 16 times, about 40 s to 3 min; ends after 10 min at the latest (--budget)"
    )
    assert "about" not in bench.cost(60)


def test_slices_that_are_whole_cycles_count_whole_however_their_first_steps_are():
    def settling(i, made):
        """The first steps of each slice fall, as noise has it or an epoch begins; its last one evaluates."""
        return replace(made, step_ns=(*(9 * MS - 0.3 * MS * at for at in range(12)), *made.step_ns[12:])) if i else made

    for slices, left in ((1, 100), (3, 300)):
        sides = [
            with_slices(program(each, slices=slices, steps=100, slow_step=slow), settling) for each, slow in ((5.0, 400.0), (5.0, 200.0))
        ]
        start, _ = estimate(1, "resident", *sides, spent_s=9.0, even_slices=lambda pieces: True, whole_cycles=True)
        assert (start.steps, start.slices) == (left, slices) and start.y > 0.2
