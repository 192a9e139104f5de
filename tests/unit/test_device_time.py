"""Device times and who gets the waits: hand-computed scenarios on a fake device, and properties of the rule."""

from __future__ import annotations

import numpy as np
import pytest
from device_machines import CudaMachine, FakeMachine
from device_scenarios import (
    Training,
    asks_outside_phases,
    copies_and_blocks,
    host_bound,
    logs_each_step,
    prefetches,
    run,
    runs_ahead,
)
from hypothesis import given
from hypothesis import strategies as st
from probe_events import MS, part

from trainflash.schema import PHASES
from trainflash.trace import load
from trainflash.trace.device import clock_origin, give_waits

FWD, BWD, OPT, LOG, OTHER = (PHASES.index(name) for name in ("Fwd", "Bwd", "Opt", "Log", "Other"))


def given_to(waits: list, spans: list) -> list[dict[str, int]]:
    """`waits`: (from, to, phase); `spans`: (from, to, phase)."""
    columns = [np.array(column, dtype=np.int64) for rows in (waits, spans) for column in (zip(*rows, strict=True) if rows else [()] * 3)]
    return [{PHASES[index]: int(ns) for index, ns in enumerate(row) if ns} for row in give_waits(*columns)]


def test_a_wait_goes_to_the_work_that_ran_during_it():
    spans = [(0, 40, FWD), (40, 120, BWD), (120, 140, OPT)]
    assert given_to([(10, 145, LOG)], spans) == [{"Fwd": 30, "Bwd": 80, "Opt": 20, "Log": 5}]


def test_two_waits_share_the_queue_in_order():
    spans = [(0, 40, FWD), (40, 120, BWD)]
    assert given_to([(30, 50, LOG), (60, 130, OTHER)], spans) == [{"Fwd": 10, "Bwd": 10}, {"Bwd": 60, "Other": 10}]


def test_a_gap_of_the_device_stays_with_the_waiting_phase():
    assert given_to([(0, 100, LOG)], [(10, 20, FWD), (70, 80, FWD)]) == [{"Fwd": 20, "Log": 80}]


def test_without_device_spans_or_waits_nothing_moves():
    assert given_to([(0, 100, LOG)], []) == [{"Log": 100}]
    assert given_to([], [(0, 10, FWD)]) == []


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7), st.sampled_from(range(9))), max_size=30),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(range(9))), max_size=30),
    st.integers(0, 10**15),
)
def test_a_wait_keeps_its_length_and_nobody_gets_less_than_nothing(waits, gaps, origin):
    spans, at = [], origin
    for gap, length, phase in gaps:
        spans.append((at + gap, at + gap + length, phase))
        at += gap + length
    waits = [(origin + begin, origin + begin + length, phase) for begin, length, phase in waits]
    for wait, row in zip(waits, given_to(waits, spans), strict=True):
        assert sum(row.values()) == wait[1] - wait[0]
        assert min(row.values(), default=0) >= 0


@pytest.mark.parametrize("drift", [0.0, 30e-6, -30e-6])
def test_the_origin_lies_between_its_bounds(drift):
    source = np.random.default_rng(3)
    host = 10**14 + np.sort(source.integers(0, 60 * 10**9, 4000))
    lag = np.where(source.random(4000) < 0.1, 8_000, source.integers(10_000, 40 * MS, 4000))
    reached = np.maximum.accumulate(host + lag)
    device = np.rint((reached - reached[0]) * (1 + drift)).astype(np.int64)
    seen = reached + source.integers(1_000, 5 * MS, 4000)
    origin, half = clock_origin(host, device, seen)
    assert np.abs(device + origin - reached).max() <= 2 * half + 60_000
    assert half < 200_000


@pytest.fixture(params=[FakeMachine, pytest.param(CudaMachine, marks=pytest.mark.gpu)], ids=["fake", "cuda"])
def machine(request):
    return request.param()


def phases_ms(summary) -> dict[str, float]:
    return {name: stat.mean_ms for name, stat in summary.phases.items()}


def test_a_host_that_queues_fast_and_then_asks_for_the_loss(machine, tmp_path):
    """Device work is Fwd 4, Bwd 8, Opt 2 ms; the host takes 0.2 ms for each and sits the rest out in `.item()`."""
    summary = run(machine, logs_each_step).summary(tmp_path)
    assert summary.timeline == "device"
    found = phases_ms(summary)
    assert found["Bwd"] == pytest.approx(8.2, abs=0.1 * machine.tolerance)
    assert found["Opt"] == pytest.approx(2.2, abs=0.1 * machine.tolerance)
    assert found["Fwd"] == pytest.approx(3.8, abs=0.1 * machine.tolerance)  # the device began with it while the host queued the rest
    assert found["Log"] == pytest.approx(0.5, abs=0.1 * machine.tolerance)
    assert found["Data"] == pytest.approx(1.0, abs=0.02 * machine.tolerance)
    assert sum(stat.share for stat in summary.phases.values()) == pytest.approx(1)
    device = {name: stat.device_ms for name, stat in summary.phases.items()}
    assert (device["Fwd"], device["Bwd"], device["Opt"]) == pytest.approx((4.2, 8.0, 2.0), abs=0.05 * machine.tolerance)
    assert device["Data"] == pytest.approx(0, abs=0.01 * machine.tolerance)
    assert summary.device_time.busy_share == pytest.approx(14.2 / summary.step_ms.mean_ms, rel=0.02 * machine.tolerance)
    assert summary.device_time.lag_share < 0.01


def test_a_drifting_device_clock_is_followed(tmp_path):
    machine = FakeMachine(drift=40e-6)
    steady, drifting = (run(each, logs_each_step, steps=1200) for each in (FakeMachine(), machine))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    expected, found = phases_ms(steady.summary(tmp_path / "a")), phases_ms(drifting.summary(tmp_path / "b"))
    assert found == pytest.approx(expected, abs=0.1)


def test_a_copy_that_blocks_waits_for_the_step_before(machine, tmp_path):
    found = phases_ms(run(machine, copies_and_blocks).summary(tmp_path))
    assert found["H2D"] == pytest.approx(1.0, abs=0.15 * machine.tolerance)
    assert found["Fwd"] + found["Bwd"] + found["Opt"] == pytest.approx(13.2, abs=0.2 * machine.tolerance)  # of 14: Data hides the rest


def test_a_wait_that_no_hook_saw_is_known_by_its_end(machine, tmp_path):
    found = phases_ms(run(machine, asks_outside_phases).summary(tmp_path))
    assert found["Bwd"] == pytest.approx(8.2, abs=0.1 * machine.tolerance)
    assert found["Other"] < 0.2 * machine.tolerance


def test_a_host_bound_program_keeps_its_phases_and_has_no_lag(machine, tmp_path):
    training = run(machine, host_bound)
    rank = training.trace(tmp_path).ranks[0]
    assert np.abs(rank.device_timeline.moved_ns[:, 5:-1]).max() < 0.05 * MS * machine.tolerance
    assert np.nanmedian(rank.device_timeline.lag_ns) < 0.1 * MS
    summary = training.summary(tmp_path)
    assert phases_ms(summary)["Fwd"] == pytest.approx(3.1, abs=0.1 * machine.tolerance)
    assert summary.device_time.lag_share < 0.02


def test_the_lag_of_a_device_that_falls_behind(tmp_path):
    rank = run(FakeMachine(), runs_ahead, steps=20).trace(tmp_path).ranks[0]
    lag_ms = rank.device_timeline.lag_ns / MS
    assert lag_ms[10] == pytest.approx(14 * 11 - 0.64 * 11, abs=2.5)
    assert np.abs(rank.device_timeline.moved_ns).max() < 10_000


def test_work_on_a_stream_of_its_own(machine, tmp_path):
    training = run(machine, prefetches)
    summary = training.summary(tmp_path)
    assert summary.phases["H2D"].device_ms == pytest.approx(3.0, abs=0.05 * machine.tolerance)
    assert phases_ms(summary)["Bwd"] == pytest.approx(8.2, abs=0.2 * machine.tolerance)
    assert summary.device_time.busy_share < 1


def test_attribution_preserves_every_step(tmp_path):
    for number, scenario in enumerate((logs_each_step, copies_and_blocks, asks_outside_phases, prefetches, host_bound)):
        directory = tmp_path / str(number)
        directory.mkdir()
        rank = run(FakeMachine(drift=20e-6), scenario).trace(directory).ranks[0]
        moved = rank.device_timeline.moved_ns
        assert not moved.sum(axis=0).any()
        for index, name in enumerate(PHASES):
            assert (rank.phase_ns[name] + moved[index] >= 0).all()


def test_nothing_is_asked_of_a_stream_that_is_captured(tmp_path):
    machine = FakeMachine()
    training = Training(machine)
    for number in range(40):
        machine.capturing = number == 30
        logs_each_step(training)
        training.step()
    machine.capturing = False
    logs_each_step(training)
    rank = training.trace(tmp_path).ranks[0]
    assert rank.device_timeline.dropped == 11
    assert rank.device_timeline.complete.tolist() == [number != 30 for number in range(40)][: rank.steps]
    assert training.summary(tmp_path).timeline == "device"


def test_a_full_queue_drops_and_counts(tmp_path):
    training = run(FakeMachine(), runs_ahead, steps=60, most=50)
    rank = training.trace(tmp_path).ranks[0]
    assert rank.device_timeline.dropped > 200
    assert training.summary(tmp_path).timeline == "host"
    assert training.summary(tmp_path).phases["Fwd"].device_ms is None


def test_a_file_cut_short_keeps_what_was_drained(tmp_path):
    training = run(FakeMachine(), logs_each_step)
    whole = training.trace(tmp_path).ranks[0].device_timeline
    training.written(tmp_path, cut=16 * 100 + 5)
    cut = load(tmp_path).ranks[0].device_timeline
    assert 10 < cut.complete.sum() < whole.complete.sum()
    (tmp_path / "device-7.bin").unlink()
    assert load(tmp_path).ranks[0].device_timeline is None


def test_events_are_used_again(tmp_path):
    made = []

    class Counting(FakeMachine):
        def event(self):
            made.append(1)
            return super().event()

    run(Counting(), logs_each_step, steps=200)
    assert len(made) < 40


def test_nested_waits_are_one(tmp_path):
    machine = FakeMachine()
    training = Training(machine)
    training.timeline.wait_ended()  # begun before the timeline was
    training.launch("Fwd", 1.0)
    training.timeline.wait_begins()
    training.item()
    training.timeline.wait_ended()
    waited = part("phases.device").WAITED
    words = np.frombuffer(b"".join(training.records), dtype="<u8")
    assert int((words[::2] & 0xFFF == waited).sum()) == 1
