"""Predictions about other ranks: right on jobs whose truth is known, silent where the model does not hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from probe_events import write_run
from test_ranks import JOINED, reducing_step, summary_of

from trainflash.summary.rank_what_if import Stretches, balanced, doubled_ns, levelled, predictions


def even(ranks=4, steps=40, calls=2, own=10.0, transfer=3.0):
    return Stretches(np.full((ranks, steps, calls), own), np.full((steps, calls), transfer))


def of(name, measured):
    return next(answer for answer in predictions(measured) if answer.name == name)


def test_a_step_is_the_longest_own_work_and_the_transfer_of_each_collective():
    measured = even()
    measured.own[2, :, 1] = 14.0
    assert measured.step_ns() == 10 + 3 + 14 + 3


@pytest.mark.parametrize("late", [lambda own: own * 1.5, lambda own: own + 4.0])
def test_levelling_gives_the_step_without_the_slow_rank(late):
    rng = np.random.default_rng(3)
    fair = replace(even(steps=4000), own=rng.normal(10.0, 0.5, (4, 4000, 2)))
    slow = replace(fair, own=fair.own.copy())
    slow.own[1] = late(slow.own[1])
    assert levelled(slow, 1).step_ns() == pytest.approx(fair.step_ns(), rel=0.01)
    answer = of("level", slow)
    assert "rank 1" in answer.what
    assert answer.speedup == pytest.approx(slow.step_ns() / fair.step_ns(), rel=0.01)


def test_balancing_takes_what_differs_by_step_and_leaves_what_differs_by_rank():
    measured = even(ranks=2, steps=2, calls=1)
    measured.own[:, :, 0] = [[10.0, 14.0], [20.0, 16.0]]  # 12 and 18 in the mean, 2 more or less by turns
    assert balanced(measured).own[:, :, 0].tolist() == [[12.0, 12.0], [18.0, 18.0]]


def test_equal_ranks_gain_nothing_but_from_more_of_them():
    measured = even()
    assert of("level", measured).speedup == of("balanced", measured).speedup == 1.0
    ring = (2 * 4 - 1) / (2 * (4 - 1))
    assert doubled_ns(measured) == pytest.approx(2 * (10 + 3 * ring))
    assert of("double", measured).speedup == pytest.approx(2 * 26 / (2 * (10 + 3 * ring)))


def write_rank(directory, rank, own_ms):
    """20 steps of 20 ms; the gradients are ready after `own_ms`, then the rank waits in the reduction until 15 ms."""
    events = [event for step in range(20) for event in reducing_step(1 + 20 * step, own_ms, 15)]
    write_run(directory, events, facts=[{**JOINED, "rank": rank}], pid=7 + rank, rank=0, world_size=1, host="a")


def test_recorded_ranks_are_predicted_with_what_is_assumed(tmp_path):
    write_rank(tmp_path, 0, 5)
    write_rank(tmp_path, 1, 13)
    found = {answer.name: answer for answer in summary_of(tmp_path).rank_what_if}
    assert set(found) == {"level", "balanced", "double"}
    assert found["level"].what == "without the lateness of rank 1"
    assert found["level"].step_ms == pytest.approx(12.0)  # 10 ms of own work and 2 ms of transfer
    assert found["level"].speedup == pytest.approx(20 / 12)
    assert found["double"].step_ms == pytest.approx(18 + 2 * 1.5)
    assert "bandwidth" in found["double"].assumes


def test_nothing_is_predicted_for_one_rank_or_when_one_is_missing(tmp_path):
    write_rank(tmp_path, 0, 5)
    assert summary_of(tmp_path).rank_what_if == ()


def test_nothing_is_predicted_where_the_model_does_not_give_the_step(tmp_path):
    """The ranks are slow by turns and do not wait for each other: their collectives are not of both."""
    for rank in (0, 1):
        at, events = 1.0, []
        for step in range(20):
            length = 10 if step % 2 == rank else 30
            events += [*reducing_step(at, length - 4, length - 2)[:-1], (at + length, "step")]
            at += length
        write_run(tmp_path, events, facts=[{**JOINED, "rank": rank}], pid=7 + rank, rank=0, world_size=1, host="a")
    found = summary_of(tmp_path)
    assert len(found.rank_stats) == 2
    assert found.rank_what_if == ()
