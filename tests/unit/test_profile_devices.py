"""One process with several devices or several driving threads: nothing that one of them does hides what another does not."""

from __future__ import annotations

import pytest
from profile_scenarios import Event, call, flat, host, launched, profile, step, trace, work

from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.events import Kind
from trainflash.profile.query import ask


def parts(summary):
    return {name: getattr(summary.time_breakdown, name).total_duration for name in ("compute", "communication", "copy", "host", "stall")}


def on_device(name, call_at, start, duration, correlation, device):
    return [call("cudaLaunchKernel", call_at, 5, correlation), work(name, start, duration, correlation, device=device)]


def marks():
    return [step(number, 1000 * number, 1000) for number in range(4)]


def test_computing_on_one_device_hides_no_communication_of_another():
    events = flat(
        marks(),
        *[on_device("ncclDevKernel_AllReduce", 1000 * n, 1000 * n, 1000, 2 * n + 1, "0") for n in range(4)],
        *[on_device("gemm", 1000 * n, 1000 * n, 1000, 2 * n + 2, "1") for n in range(4)],
    )
    summary = summarize(profile(trace(events)))
    assert (summary.overlap.exposed_us, summary.overlap.overlapped_us) == (4000, 0)
    assert summary.communication_ops[0].exposed_us == 4000
    assert parts(summary) == {"compute": 4000, "communication": 4000, "copy": 0, "host": 0, "stall": 0}
    assert summary.time_breakdown.window_us == 8000 and summary.ranks[0].window_us == 4000 and summary.ranks[0].compute_share == 0.5


@pytest.mark.parametrize("mode", ["exclusive_global", "exclusive_per_track"])
def test_devices_that_take_turns_idle_half_of_the_time(mode):
    events = flat(marks(), *[on_device("gemm", 500 * n, 500 * n + 9, 491, n + 1, str(n % 2)) for n in range(8)])
    summary = summarize(profile(trace(events)), Options(breakdown_mode=mode))
    assert [each.utilization for each in summary.devices] == [0.491, 0.491]
    assert summary.idle.window_us == 8000 and summary.idle.idle_us == pytest.approx(8000 - 8 * 491)
    assert sum(parts(summary).values()) == summary.time_breakdown.total_duration == 8000
    assert [each.candidate_id for each in summary.optimization_candidates] != ["compute"]
    assert summary.hot_ops[0].count == 8 and summary.hot_ops[0].exclusive_duration == 8 * 491, "sums of ops hold each event once"
    assert "of 8.000 ms" in ask(summary, "Why is the device idle?").said


def test_each_device_waits_for_the_same_loader():
    loading = [host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000 * n + 1, 490) for n in range(4)]
    kernels = [on_device("gemm", 1000 * n + 492, 1000 * n + 500, 500, 2 * n + int(gpu) + 1, gpu) for n in range(4) for gpu in "01"]
    summary = summarize(profile(trace(flat(marks(), loading, *kernels))))
    (cause,) = [each for each in summary.idle.causes if each.cause == "data_loading"]
    assert cause.total_us == 2 * 4 * 490 and cause.per_step_us == 490 and cause.share_of_window == 0.49
    assert summary.step_time.data_loading_mean_us == 490


def test_a_stray_kernel_on_a_neighbours_device_makes_it_none_of_ours():
    events = flat(
        marks(), *[on_device("gemm", 1000 * n, 1000 * n, 1000, n + 1, "1") for n in range(4)], work("barrier", 10, 20, device="0")
    )
    summary = summarize(profile(trace(events)))
    assert summary.time_breakdown.window_us == 4000 and summary.idle.idle_us == 0
    assert sum(op.count for op in summary.hot_ops) == 5 and [each.device for each in summary.devices] == ["0", "1"]


@pytest.mark.parametrize(
    "waiting",
    [host("threading.py(1115): join", 0, 10_000, kind=Kind.PYTHON), call("cudaStreamSynchronize", 0, 10_000)],
    ids=["a frame that sleeps", "a call that waits for the device"],
)
def test_what_one_thread_waits_for_another_works_at(waiting):
    """The main thread, which drives the optimizer, waits throughout; a worker runs operators nine tenths of the time."""
    work_of = [host("aten::conv2d", at, 900, thread="2") for at in range(0, 10_000, 1000)]
    kernels = [launched("kernel", at + 790, at + 800, 100, at + 1, thread="2") for at in range(0, 10_000, 1000)]
    main = host("Optimizer.step#SGD.step", 9990, 5, kind=Kind.ANNOTATION)
    summary = summarize(profile(trace(flat(waiting, main, work_of, *kernels))))
    found = parts(summary)
    assert found["compute"] == 1000 and found["host"] == pytest.approx(8000, abs=5)


def test_an_operator_that_is_no_call_does_not_tell_when_its_work_was_launched():
    """The operator began before the gap and ended after it: nothing was queued meanwhile."""
    events = flat(
        host("aten::stack", 0, 5000, external_id=7),
        launched("first_kernel", 20, 100, 50, 1),
        work("second_kernel", 4900, 100, external_id=7),
    )
    causes = {each.cause: each.total_us for each in summarize(profile(trace(events))).idle.causes}
    assert "queued" not in causes and causes["launch_bound"] == 100 + 4750


def merged(*pairs):
    """Kernels of two processes in one file: (operator, process, device, kernel, correlation, when)."""
    events = []
    for operator, process, device, kernel, correlation, at in pairs:
        events.append(Event(operator, Kind.HOST_OP, at, 50, (process, "1"), {}))
        events.append(Event("cudaLaunchKernel", Kind.RUNTIME, at + 10, 5, (process, "1"), {"correlation": correlation}))
        events.append(work(kernel, at + 100, 50, correlation, device=device))
    return summarize(profile(trace(events)))


COLLIDING = (("aten::mm", "1000", "0", "gemm", 5, 0), ("aten::add", "2000", "1", "add_kernel", 5, 20))


def test_processes_in_one_file_count_their_launches_each_by_itself():
    told = (("aten::bmm", "1000", "0", "bmm_kernel", 6, 500), ("aten::relu", "2000", "1", "relu_kernel", 7, 520))
    summary = merged(*COLLIDING, *told)
    launched_by = {op.name: op.launched_by for op in summary.hot_ops}
    assert launched_by == {"gemm": "aten::mm", "add_kernel": "aten::add", "bmm_kernel": "aten::bmm", "relu_kernel": "aten::relu"}
    assert not any("several processes" in each for each in summary.trace_overview.quality_warnings)


def test_a_launch_that_two_processes_may_have_made_is_unknown_and_said():
    summary = merged(*COLLIDING)
    assert {op.launched_by for op in summary.hot_ops} == {None}
    assert any("2 device events have calls of several processes" in each for each in summary.trace_overview.quality_warnings)
