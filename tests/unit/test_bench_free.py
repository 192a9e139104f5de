"""Programs that run freely and are frozen in turns: which time belongs to which step."""

from __future__ import annotations

import json
import struct
import types

import pytest

from trainflash.bench import free
from trainflash.bench.estimate import Measured, Slice, estimate
from trainflash.bench.paced import Bench
from trainflash.launch import StepCounter

MS = 1_000_000


def whole(steps, step_ms, *, ended=False, work=1.0):
    walls = tuple([round(step_ms * MS)] * steps)
    return Measured((Slice(0, walls, None, sum(walls), None, 0, 0, ended),), 3.0, None, 3, False, paced=False, work=work)


def test_time_in_which_a_tree_was_frozen_belongs_to_no_step():
    program = types.SimpleNamespace(moving=[(0, 100), (300, 400), (1000, 1100)])

    def moved(ns):
        return free.Free._moved(program, ns)

    assert [moved(ns) for ns in (0, 50, 100, 200, 300, 350, 400, 999, 1050, 1100)] == [0, 50, 100, 100, 100, 150, 200, 200, 250, 300]
    assert moved(1050) - moved(350) == 100, "a step cut in two by freezing took what it ran"


def test_both_sides_are_cut_at_the_same_steps():
    sides = free.cut({"baseline": whole(205, 6.0), "candidate": whole(180, 5.0)}, 20, 40)
    cuts = [[(piece.first, piece.steps) for piece in side.slices] for side in sides.values()]
    assert cuts == [[(0, 20), (20, 40), (60, 40), (100, 40), (140, 40)]] * 2
    start, _ = estimate(1, "resident", sides["baseline"], sides["candidate"], spent_s=1.0, even_slices=lambda _: True)
    assert start.clock == "wall"
    assert start.y == pytest.approx(0.1823, abs=1e-3)


def test_a_doubled_batch_is_cut_at_the_same_samples():
    sides = free.cut({"baseline": whole(200, 5.0, work=16.0), "candidate": whole(110, 8.0, work=32.0)}, 20, 40)
    assert [(piece.first, piece.steps) for piece in sides["candidate"].slices] == [(0, 10), (10, 20), (30, 20), (50, 20), (70, 20)]
    start, _ = estimate(1, "resident", sides["baseline"], sides["candidate"], spent_s=1.0, even_slices=lambda _: True)
    assert start.y == pytest.approx(0.2231, abs=1e-3)


def test_a_program_that_is_shorter_than_its_warm_up_gives_no_start():
    sides = free.cut({"baseline": whole(15, 5.0, ended=True), "candidate": whole(15, 5.0, ended=True)}, 20, 40)
    start, _ = estimate(1, "resident", sides["baseline"], sides["candidate"], spent_s=1.0, even_slices=lambda _: True)
    assert start.y is None
    assert "too few steps" in start.reason


def header(folder, pid, steps, *, role="main", world_size=2):
    (folder / f"events-{pid}.bin").write_bytes(struct.pack("<QQ", 0, steps))
    facts = {"role": role, "world_size": world_size, "events": f"events-{pid}.bin"}
    (folder / f"process-{pid}.json").write_text(json.dumps(facts))


def test_steps_are_those_of_the_slowest_rank_once_all_train(tmp_path):
    counter = StepCounter(tmp_path)
    assert counter.read() == 0
    header(tmp_path, 1, 7)
    header(tmp_path, 2, 99, role="worker")
    assert counter.read() == 0, "the second rank has not begun"
    header(tmp_path, 3, 5)
    assert counter.read() == 5
    with (tmp_path / "events-3.bin").open("r+b") as file:
        file.write(struct.pack("<QQ", 0, 8))
    assert counter.read() == 7
    counter.close()


def test_patience_is_bounded_and_never_short():
    bench = Bench(None, {}, None, 1e18, 600.0, hang_s=180.0)
    assert bench.patience(1.0) == 180.0
    assert bench.patience(60.0) == 1200.0
    assert Bench(None, {}, None, 0.0, 600.0).patience(60.0) == pytest.approx(0.05)
    assert bench.patience(None) > 1e9


def test_steps_of_the_candidate_hold_the_samples_of_the_baselines():
    bench = Bench(None, {}, None, 0.0, 1.0, work={"baseline": 16.0, "candidate": 64.0})
    assert (bench.steps("baseline", 40), bench.steps("candidate", 40), bench.steps("candidate", 1)) == (40, 10, 1)
