"""Where steps end: the last one, those behind which marks are missing, those whose host runs ahead of the device, those of two loops."""

from __future__ import annotations

import json

import pytest
from profile_scenarios import Event, flat, host, launched, profile, ranks, step, trace, work

from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Kind
from trainflash.profile.sources import chrome


def lengths(summary):
    return [(each.number, each.duration_us) for each in summary.step_time.steps]


def warnings(summary, word):
    return [each for each in summary.trace_overview.quality_warnings if word in each]


def marked(number, start, duration, *, name="train"):
    """A step as JAX marks it: one name, its number beside it."""
    return Event(name, Kind.ANNOTATION, start, duration, ("100", "1"), {"step": number})


def test_what_is_launched_behind_the_last_mark_is_no_step():
    training = [[step(n, 1000 * n, 1000), *launched("gemm", 1000 * n + 90, 1000 * n + 100, 800, n + 1)] for n in range(5)]
    evaluation = [launched("eval_kernel", 5050 + 1000 * n, 5100 + 1000 * n, 800, 100 + n) for n in range(50)]
    summary = summarize(profile(trace(flat(*training, *evaluation))))
    assert lengths(summary) == [(n, 1000) for n in range(5)]
    assert summary.time_breakdown.window_us == 5000 and [op.name for op in summary.hot_ops] == ["gemm"]


def test_the_last_step_lasts_until_its_own_work_is_done():
    events = [[step(n, 1000 * n, 1000), *launched("gemm", 1000 * n + 90, 1000 * n + 500, 800, n + 1)] for n in range(3)]
    assert lengths(summarize(profile(trace(flat(*events))))) == [(0, 1000), (1, 1000), (2, 1300)]


@pytest.mark.parametrize("known", [True, False], ids=["launches known", "launches unknown"])
def test_a_missing_mark_makes_no_long_step(known):
    events = [step(n, (n - 10) * 100, 100) for n in (10, 11, 12, 18, 19, 20)]
    for n in range(10, 21):
        at = (n - 10) * 100
        events += launched("gemm", at + 5, at + 10, 80, n) if known else [work("gemm", at + 10, 80)]
    summary = summarize(profile(trace(events)))
    assert lengths(summary) == [(n, 100) for n in (10, 11, 12, 18, 19, 20)]
    assert summary.step_time.steady_state_steps.p90 == 100 and len(warnings(summary, "missing in 1 places")) == 1


def test_numbers_that_skip_evenly_miss_nothing():
    summary = summarize(profile(trace(flat(*[[step(10 * n, 150 * n, 100), work("gemm", 150 * n, 90)] for n in range(4)]))))
    assert lengths(summary) == [(0, 150), (10, 150), (20, 150), (30, 100)] and not warnings(summary, "missing")


def running_ahead(steps=6):
    """The host marks a step each millisecond; the device takes ten for the work launched in it."""
    events = [step(n, 1000 * n, 1000) for n in range(steps)]
    for n in range(steps):
        for part in range(10):
            events += launched("gemm", 1000 * n + 10 + 90 * part, 10_000 * n + 500 + 1000 * part, 1000, 10 * n + part + 1)
    return events


def test_steps_of_a_host_that_runs_ahead_are_cut_by_the_device():
    summary = summarize(profile(trace(running_ahead())))
    assert lengths(summary) == [(n, 10_000) for n in range(6)] and summary.step_time.steady_state_steps.p90 == 10_000
    assert summary.time_breakdown.window_us == 60_000 and summary.time_breakdown.compute.share_of_total == 1
    assert len(warnings(summary, "the host runs ahead of the device")) == 1
    named = flat(running_ahead(), host("train_loop", 0, 6000, kind=Kind.ANNOTATION))
    (region,) = summarize(profile(trace(named))).hierarchical_regions
    assert (region.path, region.inclusive_duration) == ("train_loop", 60_000), "work is its region's, wherever the host is by then"


def test_a_host_ahead_is_said_where_launches_are_unknown():
    events = [event for event in running_ahead() if event.kind != Kind.RUNTIME]
    assert len(warnings(summarize(profile(trace(events))), "or a host that runs ahead of it")) == 1


def test_steps_that_keep_pace_are_cut_by_their_marks():
    """Each step's last kernel ends 30 µs into the next step."""
    events = [[step(n, 1000 * n, 1000), *launched("gemm", 1000 * n + 20, 1000 * n + 130, 900, n + 1)] for n in range(5)]
    summary = summarize(profile(trace(flat(*events))))
    assert lengths(summary) == [(0, 1000), (1, 1000), (2, 1000), (3, 1000), (4, 1030)] and not warnings(summary, "ahead")


def test_marks_of_an_evaluation_are_no_training_steps():
    train = [[marked(n, 1000 * n, 990), work("fusion", 1000 * n + 100, 800)] for n in range(5)]
    behind = [[marked(n, 5000 + 300 * n, 290, name="eval"), work("fusion", 5050 + 300 * n, 200)] for n in range(9)]
    summary = summarize(profile(trace(flat(*train, *behind))))
    assert lengths(summary) == [(0, 1000), (1, 1000), (2, 1000), (3, 1000), (4, 990)]
    assert not warnings(summary, "other marks")


def test_an_evaluation_between_two_steps_belongs_to_neither():
    events, at = [], 0
    for n in range(6):
        events += [marked(n, at, 990), work("fusion", at + 100, 800)]
        at += 1000
        if n % 2:
            events += [marked(100 + n, at, 290, name="eval"), work("fusion", at + 50, 200)]
            at += 300
    summary = summarize(profile(trace(events)))
    assert lengths(summary) == [(0, 1000), (1, 1000), (2, 1000), (3, 1000), (4, 1000), (5, 990)]
    assert len(warnings(summary, "other marks stand among those of the steps (eval)")) == 1


def test_epochs_that_count_anew_and_marks_that_stand_twice():
    events = flat(*[[marked(n % 3, 1000 * n, 1000), marked(n % 3, 1000 * n + 1, 990), work("fusion", 1000 * n, 800)] for n in range(6)])
    assert lengths(summarize(profile(trace(events)))) == [(n, 1000) for n in range(6)]


def test_ranks_without_a_common_step_number_are_compared_in_order():
    def rank(first):
        return flat(*[[step(first + n, 1000 * n, 1000), *launched("gemm", 1000 * n + 50, 1000 * n + 99, 800, n + 1)] for n in range(4)])

    summary = summarize(ranks(rank(0), rank(4)))
    assert lengths(summary) == [(n, 1000) for n in range(4)] and summary.step_time.basis == "step_markers"
    assert len(warnings(summary, "no step number in common")) == 1


def test_steps_as_begin_and_end_are_steps():
    events = []
    for n in range(5):
        events.append({"ph": "B", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1, "ts": 1000 * n})
        events.append({"ph": "E", "pid": 1, "tid": 1, "ts": 1000 * n + 1000})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000 * n + 10, "dur": 900})
    decoded = chrome.read([json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()], "trace.json")
    assert lengths(summarize(profile(decoded))) == [(n, 1000) for n in range(5)]


def test_calls_of_one_compiled_function_are_the_steps_where_nothing_marks_any():
    """Five calls behind seconds in which the profiler starts; smaller compiled functions are called inside and between."""
    events = [host("$profiler.py:101 start_trace", 0, 9_000_000, kind=Kind.PYTHON)]
    for n in range(5):
        at = 9_001_000 + n * 2_000
        events.append(host("PjitFunction(loss_fn)", at, 1_500, kind=Kind.ANNOTATION))
        events += [host("PjitFunction(add)", at + there, 20, kind=Kind.ANNOTATION) for there in (10, 1_600)]
        events += launched("gemm", at + 20, at + 40, 1_900, n + 1)
    summary = summarize(profile(trace(events)))
    assert summary.step_time.basis == "repeated_calls" and summary.step_time.all_steps.count == 5
    assert summary.time_breakdown.window_us <= 10_000 and any("loss_fn" in each for each in summary.trace_overview.quality_warnings)
    assert summary.optimization_candidates[0].finding == "compute"
