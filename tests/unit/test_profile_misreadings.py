"""The classic ways to misread a trace: each one is a trace here, and the summary must not fall for it."""

from __future__ import annotations

import random

import pytest
from profile_scenarios import call, flat, host, launched, profile, ranks, step, trace, work

from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.events import Kind


def parts(summary):
    breakdown = summary.time_breakdown
    return {name: getattr(breakdown, name).total_duration for name in ("compute", "communication", "copy", "host", "stall", "other")}


def test_sums_are_not_wall_time():
    """Three streams compute at once: 300 µs of kernels are 100 µs of wall time."""
    events = [work(f"gemm_{stream}", 0, 100, stream=str(stream)) for stream in (7, 8, 9)]
    one = summarize(profile(trace(events)))
    assert one.devices[0].kernel_sum_us == 300 and one.devices[0].busy_us == 100
    assert one.time_breakdown.total_duration == 100 and parts(one)["compute"] == 100
    inclusive = summarize(profile(trace(events)), Options(breakdown_mode="inclusive"))
    assert parts(inclusive)["compute"] == 300 and inclusive.time_breakdown.total_duration == 100
    by_track = summarize(profile(trace(events)), Options(breakdown_mode="exclusive_per_track"))
    assert by_track.time_breakdown.tracks == 3 and by_track.time_breakdown.total_duration == 300


def collective(rank_arrives: float, ends: float, correlation: int = 1):
    return flat(
        host("nccl:all_reduce", rank_arrives - 20, 10, kind=Kind.ANNOTATION),
        launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", rank_arrives - 15, rank_arrives, ends - rank_arrives, correlation),
    )


def test_rank_0_is_not_typical():
    """Rank 0 comes last and shows no waiting at all; the other three wait nine tenths of their communication."""
    early = collective(100, 1000)
    late = flat(launched("slow_input_kernel", 50, 80, 800, 9), collective(910, 1000))
    summary = summarize(ranks(late, early, early, early))
    uses = {each.rank: each for each in summary.ranks}
    assert uses[0].waiting_share == 0 and uses[0].last_to_arrive == 1
    assert all(uses[rank].waiting_us == 810 and uses[rank].waiting_share == 0.9 for rank in (1, 2, 3))
    assert [each.rank for each in summary.alignment.stragglers] == [0]
    assert summary.alignment.stragglers[0].caused_waiting_us == 3 * 810
    hottest = summary.hot_ops[0]
    assert hottest.count == 4 and hottest.slowest_rank == 1 and hottest.slowest_rank_duration == 900
    assert "rank_straggler" in [each.finding for each in summary.optimization_candidates]


def test_rank_0_alone_says_that_it_cannot_tell():
    summary = summarize(profile(ranks(collective(100, 1000), collective(910, 1000)).traces[0]))
    assert summary.ranks[0].waiting_us is None and summary.alignment is None
    assert summary.communication_ops[0].waiting_us is None and summary.communication_ops[0].transfer_us is None
    assert any("1 of 2 ranks" in warning for warning in summary.trace_overview.quality_warnings)


def exposed(next_launch: float):
    """50 µs of computing, then a collective of 200 µs with nothing beside it, then computing that is launched at `next_launch`."""
    return flat(
        launched("gemm", 0, 10, 50, 1),
        launched("ncclDevKernel_AllReduce", 5, 60, 200, 2, stream="20"),
        host("python work", 10, 245, kind=Kind.HOST_OP),
        launched("gemm", next_launch, 265, 50, 3),
    )


def test_exposed_is_not_blocking():
    """The collective is exposed either way. It blocks only where the next kernel stood in the queue already."""
    waiting_in_queue = summarize(profile(trace(exposed(20)))).overlap
    host_is_late = summarize(profile(trace(exposed(258)))).overlap
    assert waiting_in_queue.exposed_us == host_is_late.exposed_us == 200
    assert waiting_in_queue.blocking_us == 200
    assert host_is_late.blocking_us == 2, "only from the launch of what it could hold up"
    blames = [summarize(profile(trace(exposed(at)))).optimization_candidates for at in (20, 258)]
    assert "communication" in [each.finding for each in blames[0]]
    assert "communication" not in [each.finding for each in blames[1]]


def test_a_host_that_waits_for_communication_is_blocked_by_it():
    events = flat(exposed(262), call("cudaStreamSynchronize", 60, 200))
    assert summarize(profile(trace(events))).overlap.blocking_us == 200


def test_reused_handles_join_on_time_too():
    """Correlation 5 is used twice: each kernel belongs to the call before it, not to the first or the last call of that number."""
    events = flat(
        host("aten::mm", 0, 20),
        launched("gemm", 10, 30, 20, 5),
        host("aten::add", 1000, 20),
        launched("elementwise_kernel", 1010, 1030, 20, 5),
    )
    summary = summarize(profile(trace(events)))
    assert {op.name: op.launched_by for op in summary.hot_ops} == {"gemm": "aten::mm", "elementwise_kernel": "aten::add"}
    assert summary.launches.launch_latency.max == 20, "not 1,020 µs from the other call"


@pytest.mark.parametrize("bad", [0, 1e-3])
def test_time_stamps_of_0_stretch_nothing(bad):
    at = 1_700_000_000_000_000
    good = flat(launched("gemm", at, at + 10, 100, 1), launched("gemm", at + 20, at + 200, 100, 2))
    clean = summarize(profile(trace(good)))
    dirty = summarize(profile(trace([*good, work("gemm", bad, 5), host("aten::mm", bad, 5)])))
    assert dirty.devices[0].span_us == clean.devices[0].span_us == 290
    assert dirty.time_breakdown.total_duration == clean.time_breakdown.total_duration
    assert dirty.trace_overview.duration_us == clean.trace_overview.duration_us
    assert any("2 events have no time" in warning for warning in dirty.trace_overview.quality_warnings)


def test_a_clock_that_begins_at_0_is_no_fault():
    summary = summarize(profile(trace([work("gemm", 0, 100), work("gemm", 200, 100)])))
    assert summary.devices[0].kernels == 2 and not any("no time" in each for each in summary.trace_overview.quality_warnings)


def test_step_marks_on_host_and_device_count_once():
    events = flat(
        [step(number, 1000 * number, 1000) for number in range(5)],
        [work(f"ProfilerStep#{number}", 1000 * number, 900, kind=Kind.DEVICE_ANNOTATION, step=number) for number in range(5)],
        [work("gemm", 1000 * number + 10, 500) for number in range(5)],
    )
    summary = summarize(profile(trace(events)))
    assert summary.step_time.all_steps.count == 5 and summary.step_time.all_steps.mean == 1000
    assert parts(summary)["compute"] == 2500, "annotations are no work"


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("mode", ["exclusive_global", "exclusive_per_track"])
def test_exclusive_parts_add_up_to_the_window(seed, mode):
    random_events = random.Random(seed)
    events = []
    for number in range(60):
        start, duration = random_events.randrange(10_000) / 10, random_events.randrange(1, 900) / 10
        kind = random_events.choice(["gemm", "ncclDevKernel_AllReduce", "copy", "op", "wait"])
        stream = random_events.choice("789")
        if kind == "copy":
            events.append(work("Memcpy HtoD (Pinned -> Device)", start, duration, kind=Kind.MEMCPY, stream=stream))
        elif kind == "op":
            events.append(host("aten::mm", start, duration))
        elif kind == "wait":
            events.append(call("cudaStreamSynchronize", start, duration, number))
        else:
            events.append(work(kind, start, duration, stream=stream))
    summary = summarize(profile(trace(events)), Options(breakdown_mode=mode))
    total = summary.time_breakdown.window_us * summary.time_breakdown.tracks
    assert sum(parts(summary).values()) == pytest.approx(total, abs=1e-6)
    assert summary.time_breakdown.total_duration == pytest.approx(total, abs=1e-6)
    causes = sum(each.total_us for each in summary.idle.causes)
    assert causes == pytest.approx(summary.idle.idle_us, abs=1e-6), "every idle instant has one cause"
