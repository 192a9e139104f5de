"""Ranks beside each other: event files of several processes → who waits, who computes, what talking costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_events import BASE_NS, MS, plain_step, write_run

from trainflash.schema import Location
from trainflash.summary import summarize
from trainflash.trace import host_clocks, load
from trainflash.trace import slim as slimming
from trainflash.trace.clocks import HostClock

JOINED = {"k": "rank", "world_size": 2, "backend": "gloo"}


def value(number: int) -> int:
    return (number << 12) | 3


def reducing_step(at: float, ready: float, end: float) -> list:
    """Forward from 0 to 3 ms, backward from 3 ms to `end`; its last gradient is ready at `ready`; the step takes 20 ms."""
    return [
        (at, "Fwd"),
        (at + 3, "/Fwd"),
        (at + 3, "Bwd"),
        (at + end, "/Bwd"),
        (at + end, "reduced"),
        value(int((end - ready) * MS)),
        value(1000),
        (at + 20, "step"),
    ]


def write_rank(directory, rank: int, ready: float, *, facts: tuple = (), pid: int | None = None, host: str = "a", **header):
    events = [event for step in range(12) for event in reducing_step(1 + 20 * step, ready, 15)]
    given = [{**JOINED, "rank": rank}, {"k": "wrapper", "name": "DDP", "at": ["/home/me/project/train.py", 9, "main"]}, *facts]
    write_run(directory, events, facts=given, pid=pid or 7 + rank, rank=0, world_size=1, host=host, **header)


def summary_of(directory):
    return summarize(load(directory), run="r", project="p")


def test_a_rank_that_is_slow_in_backward_stands_out_though_all_backwards_are_equally_long(tmp_path):
    write_rank(tmp_path, 0, ready=5)
    write_rank(tmp_path, 1, ready=14)
    found = summary_of(tmp_path)
    assert [(stat.rank, stat.host, stat.steps) for stat in found.rank_stats] == [(0, "a", 7), (1, "a", 7)]
    assert [stat.phases_ms["Bwd"] for stat in found.rank_stats] == [12.0, 12.0]
    assert [stat.own_ms["Bwd"] for stat in found.rank_stats] == [pytest.approx(2.0), pytest.approx(11.0)]
    assert [stat.waiting_ms for stat in found.rank_stats] == [pytest.approx(10.0), pytest.approx(1.0)]


def test_communication_is_what_backward_did_not_hide_and_mostly_waiting_for_the_late_rank(tmp_path):
    said = {"k": "ddp", "bucket_cap_bytes": 25 << 20, "buckets": 3, "comm_ns": 200, "overlap_ns": 50, "find_unused_parameters": True}
    write_rank(tmp_path, 0, ready=5, facts=(said,))
    write_rank(tmp_path, 1, ready=14)
    found = summary_of(tmp_path).communication
    assert (found.backend, found.wrapper, found.location) == ("gloo", "DDP", Location("train.py", 9, "main"))
    assert (found.per_step_ms, found.share) == (pytest.approx(10.0), pytest.approx(0.5))
    assert (found.calls_per_step, found.bytes_per_step, found.syncs_per_step) == (3.0, 1000.0, 1.0)
    assert (found.overlap, found.bucket_cap_mb, found.find_unused_parameters) == (0.25, 25.0, True)
    assert found.wait_share == pytest.approx(0.9)  # nine of the ten milliseconds rank 1 has not arrived


def test_ranks_of_two_machines_whose_clocks_are_minutes_apart_are_compared_by_durations(tmp_path):
    write_rank(tmp_path, 0, ready=5)
    write_rank(tmp_path, 1, ready=14, host="b", base_ns=BASE_NS + 300 * 10**9)
    found = summary_of(tmp_path)
    assert found.communication.wait_share == pytest.approx(0.9)
    assert found.rank_stats[1].own_ms["Bwd"] == pytest.approx(11.0)


def test_plain_collectives_are_counted_by_phase_line_and_call(tmp_path):
    call = [(1.5, "collective"), value(MS // 2), value(2 * 400 + 1)]
    waited = [(2.5, "collective"), value(MS // 4), value(0)]
    events = []
    for step in range(12):
        at = 10 * step
        moved = [(at + 1, "Fwd"), (at + 1.5, "collective"), *call[1:], (at + 2.5, "collective"), *waited[1:], (at + 3, "/Fwd")]
        events += [*moved, (at + 4, "Opt"), (at + 5, "/Opt"), (at + 10, "step")]
    lines = [[["/home/me/project/train.py", 5, "main"], "all_reduce", 12, 6 * MS, 4800]]
    for rank in (0, 1):
        facts = [{**JOINED, "rank": rank}, {"k": "collectives", "lines": lines}]
        write_run(tmp_path, events, facts=facts, pid=7 + rank, host="a")
    found = summary_of(tmp_path)
    assert (found.communication.wrapper, found.communication.location.line) == ("collectives", 5)
    assert (found.communication.calls_per_step, found.communication.bytes_per_step) == (1.0, 400.0)
    assert found.communication.per_step_ms == pytest.approx(0.75)
    assert found.rank_stats[0].own_ms["Fwd"] == pytest.approx(2.0 - 0.75)
    assert found.communication.syncs_per_step is None


def test_one_process_is_one_rank_with_all_time_its_own(tmp_path):
    write_run(tmp_path, [event for step in range(12) for event in plain_step(1 + 10 * step)])
    found = summary_of(tmp_path)
    (only,) = found.rank_stats
    assert (only.own_ms, only.waiting_ms, found.communication) == (only.phases_ms, None, None)


def test_without_a_record_of_collectives_a_rank_s_own_time_is_not_known(tmp_path):
    for rank in (0, 1):
        write_run(tmp_path, [event for step in range(12) for event in plain_step(1 + 10 * step)], pid=7 + rank, rank=rank, world_size=2)
    found = summary_of(tmp_path)
    assert [(stat.own_ms, stat.waiting_ms) for stat in found.rank_stats] == [({}, None)] * 2
    assert found.communication is None


def test_a_device_that_waits_by_itself_is_not_judged_by_the_host(tmp_path):
    said = {"k": "ddp", "comm_ns": 8 * MS, "overlap_ns": 6 * MS}
    device = {"k": "device", "device": "cuda:NVIDIA H200"}
    for rank in (0, 1):
        write_rank(tmp_path, rank, ready=5, facts=(said, device, {**JOINED, "rank": rank, "backend": "cpu:gloo,cuda:nccl"}))
    found = summary_of(tmp_path)
    assert [(stat.own_ms, stat.waiting_ms) for stat in found.rank_stats] == [({}, None)] * 2
    assert (found.communication.per_step_ms, found.communication.wait_share) == (pytest.approx(2.0), None)


def test_a_rank_that_joined_after_its_first_event_is_known_by_what_it_said_then(tmp_path):
    write_rank(tmp_path, 1, ready=5, pid=9)
    write_rank(tmp_path, 0, ready=5, pid=8)
    assert [(rank.rank, rank.pid, rank.world_size) for rank in load(tmp_path).ranks] == [(0, 8, 2), (1, 9, 2)]
    assert load(tmp_path).ranks[0].step_start_ns[0] == BASE_NS + MS


def test_ranks_of_a_very_large_job_are_kept_slim_and_say_the_same(tmp_path):
    """From rank 64 on only what ranks are compared by is kept."""
    found = []
    for folder, ranks in ((tmp_path / "small", (0, 1)), (tmp_path / "large", (64, 65))):
        folder.mkdir()
        for rank, ready in zip(ranks, (5, 14), strict=True):
            write_rank(folder, rank, ready=ready)
        found.append((load(folder), summary_of(folder)))
    (full, plain), (slim, same) = found
    assert [replace(stat, rank=stat.rank % 64) for stat in same.rank_stats] == list(plain.rank_stats)
    assert same.communication == plain.communication
    assert [answer.speedup for answer in same.rank_what_if] == [answer.speedup for answer in plain.rank_what_if]
    assert {"Fwd", "Bwd"} <= set(full.ranks[1].occurrences)
    assert set(slim.ranks[1].occurrences) == {"Bwd"}
    held = [sum(column.nbytes for column in rank.phase_ns.values()) for rank in (full.ranks[1], slim.ranks[1])]
    assert held[1] < held[0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_narrow_arrays_hold_the_same_numbers(values):
    narrow = slimming.narrow(np.array(values, np.int64))
    assert narrow.tolist() == values
    for limits in map(np.iinfo, (np.int8, np.int16, np.int32)):
        if limits.dtype.itemsize < narrow.dtype.itemsize:
            assert any(not limits.min <= value <= limits.max for value in values)


def test_clocks_of_machines_are_laid_over_one_another_by_what_ranks_did_together(tmp_path):
    write_rank(tmp_path, 0, ready=5)
    write_rank(tmp_path, 1, ready=14, host="b", base_ns=BASE_NS + 300 * 10**9)
    write_rank(tmp_path, 2, ready=9, host="b", base_ns=BASE_NS + 300 * 10**9)
    clocks = host_clocks(load(tmp_path).ranks)
    assert set(clocks) == {"b"}
    assert abs(clocks["b"].ahead_ns - 300 * 10**9) <= clocks["b"].error_ns <= 1 * MS  # the last one transfers for a millisecond


def test_machines_whose_ranks_did_nothing_together_have_no_common_clock(tmp_path):
    write_rank(tmp_path, 0, ready=5)
    events = [event for step in range(12) for event in plain_step(1 + 20 * step)]
    write_run(tmp_path, events, facts=[{**JOINED, "rank": 1}], pid=8, rank=0, world_size=1, host="b")
    assert host_clocks(load(tmp_path).ranks)["b"] == HostClock(None, None)
