"""Summaries of synthetic traces whose answer is known exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import traces as t

from trainflash.schema import Location, PaddedField, Setting, Summary, dump_json, from_plain, to_plain
from trainflash.summary import steady_part, summarize
from trainflash.trace import BatchTrace, CpuReading, DataFunction, EvalTrace, LogTrace, RankTrace, SaveTrace, ThreadFacts

COMPUTE = {"Fwd": 0.3, "Bwd": 0.4, "Opt": 0.1}


def summary_of(rank: RankTrace, *workers, **changes) -> Summary:
    return summarize(t.trace(rank, *workers, **changes), run="diagnose-1", project="/home/owner/project")


def steady(n: int = 100, **phases) -> RankTrace:
    return t.rank([10.0] * n, COMPUTE | phases)


def test_shares_and_other_add_up_to_one():
    found = summary_of(t.rank(list(np.random.default_rng(0).uniform(5, 15, 200)), {"Data": 0.13, "Fwd": 0.31, "Bwd": 0.37}))
    assert sum(stat.share for stat in found.phases.values()) == pytest.approx(1.0, abs=1e-12)
    assert found.phases["Other"].share == pytest.approx(0.19, abs=1e-4)
    assert found.coverage == pytest.approx(0.81, abs=1e-4)


def test_the_mean_of_the_phases_is_the_mean_step():
    found = summary_of(steady(Data=0.15))
    assert sum(stat.mean_ms for stat in found.phases.values()) == pytest.approx(found.step_ms.mean_ms)


def test_a_step_without_the_phase_counts_as_zero():
    rare = [0.0] * 100
    rare[60] = 5.0
    found = summary_of(t.rank([10.0] * 100, {"Fwd": 0.3, "Eval": rare}))
    stat = found.phases["Eval"]
    assert stat.share == pytest.approx(0.5 / 95 / 1.0, rel=1e-6)
    assert stat.mean_ms == pytest.approx(5 / 95)
    assert stat.p50_ms == 0.0
    assert (stat.per_occurrence.n, stat.per_occurrence.mean_ms) == (1, 5.0)


def test_warm_up_is_left_out_of_every_figure():
    found = summary_of(t.rank([40.0] * 30 + [10.0] * 170, {"Fwd": [40.0] * 30 + [5.0] * 170}))
    assert found.warmup_steps >= 30 and found.steady
    assert found.steps == 200 - found.warmup_steps
    assert found.step_ms.max_ms == 10.0
    assert found.phases["Fwd"].share == pytest.approx(0.5)
    assert found.steady_s == pytest.approx(found.steps * 0.01)


@pytest.mark.parametrize(("steps", "dropped", "settled"), [(3, 1, None), (8, 4, None), (12, 5, None), (39, 5, None), (40, 5, True)])
def test_short_programs_lose_five_steps_but_never_more_than_half(steps, dropped, settled):
    part = steady_part(steady(steps))
    assert (part.first, part.settled) == (dropped, settled)


def test_a_run_that_never_settles_is_judged_by_its_second_half():
    part = steady_part(t.rank([300.0] * 45 + [10.0] * 35, COMPUTE))
    assert (part.first, part.settled) == (40, False)


def test_wall_and_startup_are_of_the_whole_process():
    found = summary_of(steady())
    assert (found.startup_s, found.wall_s) == (2.0, pytest.approx(3.5))


def test_percentiles_that_the_steps_cannot_show_are_not_measured():
    found = summary_of(steady(40))
    assert found.phases["Fwd"].p50_ms is not None
    assert found.phases["Fwd"].p95_ms is None
    assert found.step_ms.p99_ms is None


def test_a_phase_that_never_happens_is_absent_and_one_outside_the_steady_part_is_zero():
    warm = [4.0] * 3 + [0.0] * 97
    found = summary_of(t.rank([10.0] * 100, {"Fwd": 0.3, "Ckpt": warm}))
    assert "Eval" not in found.phases
    assert found.phases["Ckpt"].share == 0.0
    assert found.phases["Ckpt"].per_occurrence is None


def test_lines_are_shares_of_the_sampled_steady_time():
    rank = steady()
    slow, loop = Location("data.py", 12, "get"), Location("train.py", 50, "main")
    rows = [(1, "Data", slow, 900.0), (50, "Data", slow, 30.0), (51, "Fwd", loop, 50.0), (52, "Bwd", None, 20.0)]
    found = summary_of(replace(rank, samples=t.samples(rank, rows)))
    assert [(line.phase, line.location, line.share) for line in found.lines] == [("Fwd", loop, 0.5), ("Data", slow, 0.3)]
    assert found.sampled_s == pytest.approx(0.1)


def test_lines_of_workers_are_of_their_own_role():
    rank = steady()
    line = Location("data.py", 12, "get")
    workers = [
        t.worker(t.fetches(rank.step_start_ns[:0], 1, 0, 1), pid, samples=t.samples(rank, [(50, "Data", line, 30.0)])) for pid in (200, 201)
    ]
    found = summary_of(rank, *workers)
    assert [(each.role, each.location, each.share) for each in found.lines] == [("worker", line, 1.0)]
    assert found.processes == 3
    assert found.sampled_s is None


def test_fetching_in_the_training_process():
    rank = steady(Data=0.2)
    made = t.fetches(rank.step_start_ns[:-1], 1.5, 0.5, cpu=0.9)
    found = summary_of(replace(rank, loaders=(t.loader([int(rank.step_start_ns[0])], made),))).loaders[0]
    assert (found.getitem_ms.mean_ms, found.collate_ms.mean_ms) == (1.5, 0.5)
    assert found.fetch_cpu_share == pytest.approx(0.9)
    assert found.getitem_ms.n == 95
    assert found.pass_ms is None


def test_fetching_in_workers_is_put_together():
    rank = steady(Data=0.2)
    none = t.fetches(rank.step_start_ns[:0], 0, 0, 0)
    loader = t.loader([int(rank.step_start_ns[0])], none, num_workers=2)
    made = [t.fetches(rank.step_start_ns[first:-1:2], ms, 0.0, cpu=0.5) for first, ms in ((0, 10.0), (1, 20.0))]
    strange = t.worker(t.fetches(rank.step_start_ns[:-1], 500.0, 0, 1), 300, parent=999)
    found = summary_of(replace(rank, loaders=(loader,)), t.worker(made[0], 200), t.worker(made[1], 201), strange).loaders[0]
    assert found.getitem_ms.mean_ms == pytest.approx(15.0, abs=0.1)
    assert found.fetch_cpu_share == pytest.approx(0.5)
    assert found.made_of_waited is None  # no wait was seen


@pytest.mark.parametrize(("workers", "waits", "part"), [(2, [900.0, 50.0, 10.0, 0.0], 0.75), (2, [900.0], None), (0, [15.0, 15.0], None)])
def test_the_making_of_a_batch_beside_the_wait_for_one(workers, waits, part):
    rank = steady(Data=0.2)
    made = t.fetches(rank.step_start_ns[:-1], 10.0, 5.0, cpu=0.5)
    loader = replace(t.loader([int(rank.step_start_ns[0])], made, num_workers=workers), wait_ns=np.array(waits) * t.MS)
    (found,) = summary_of(replace(rank, loaders=(loader,)), *([t.worker(made, 200)] if workers else [])).loaders
    assert found.made_of_waited == (part and pytest.approx(part))


def test_beginning_a_pass_costs_what_lies_above_usual_steps():
    data = [1.0] * 100
    for begin in (0, 25, 50, 75):
        data[begin], data[begin + 1] = 6.0, 3.0  # two workers: the first batch of each is late
    rank = t.rank([10.0] * 100, {"Data": data, "Fwd": 0.3})
    none = t.fetches(rank.step_start_ns[:0], 0, 0, 0)
    loader = t.loader([int(rank.step_start_ns[begin]) + 5 for begin in (0, 25, 50, 75)], none, num_workers=2)
    found = summary_of(replace(rank, loaders=(loader,))).loaders[0]
    assert (found.epochs, found.pass_ms.n, found.pass_ms.mean_ms) == (4, 3, 7.0)  # the first pass began in the warm-up


def test_activities_count_over_the_whole_run():
    early = t.START_NS + 15 * t.MS
    where = Location("train.py", 70, "validate")
    column = [0.0] * 100
    column[1] = 4.0
    rank = t.rank([10.0] * 100, {"Fwd": 0.3, "Eval": column})
    begin = int(rank.occurrences["Eval"].start_ns[0])
    rank = replace(
        rank,
        evaluations=(EvalTrace(begin, where, 12, 8, True),),
        saves=(SaveTrace(early, 3 * t.MS, where, 1000), SaveTrace(early + 40 * 10 * t.MS, 5 * t.MS, where, 3000)),
        logs=(LogTrace(where, "print", 50, 100 * t.MS), LogTrace(None, "logging", 0, 0)),
    )
    found = {activity.phase: activity for activity in summary_of(rank).activities}
    assert summary_of(rank).phases["Eval"].share == 0.0
    assert (found["Eval"].count, found["Eval"].mean_ms, found["Eval"].grad_enabled) == (1, 4.0, True)
    assert (found["Eval"].batches, found["Eval"].batch_size, found["Eval"].every_steps) == (12.0, 8, None)
    assert (found["Ckpt"].count, found["Ckpt"].mean_ms, found["Ckpt"].bytes, found["Ckpt"].every_steps) == (2, 4.0, 2000, 40.0)
    assert (found["Log"].count, found["Log"].mean_ms, found["Log"].every_steps) == (50, 2.0, 2.0)


def fetching(*calls, data: float = 0.5) -> RankTrace:
    """Nine tenths of `data` is spent in the dataset, in the training process."""
    rank = t.rank([10.0] * 100, {"Data": data, "Fwd": 0.3})
    made = t.fetches(rank.step_start_ns[:-1], 9 * data, data, cpu=1.0)
    return replace(rank, loaders=(t.loader([int(rank.step_start_ns[0])], made),), repeated=calls)


def test_the_share_of_repeated_work_is_its_part_of_what_the_windows_stand_for():
    found = summary_of(fetching(t.call())).repeated
    assert [(work.qualname, work.share) for work in found] == [("render", pytest.approx(0.8 * 0.45))]
    assert found[0].mean_ms == pytest.approx(0.8)


def test_repeats_that_are_far_cheaper_than_first_calls_tell_what_the_work_costs_from_now_on():
    kept = t.call(calls=100, repeats=80, inclusive_ns=90 * t.MS, repeat_ns=8 * t.MS)  # 4.1 ms once, then 0.1 ms
    (found,) = summary_of(fetching(kept)).repeated
    assert found.mean_ms == pytest.approx(0.1 - 0.0025)
    assert found.share == pytest.approx(9.75 / (10 + 9.75) * 0.45)


def test_what_is_a_look_up_already_costs_nothing():
    (found,) = summary_of(fetching(t.call(calls=100, repeats=80, inclusive_ns=90 * t.MS, repeat_ns=80 * 2_400))).repeated
    assert (found.mean_ms, found.share) == (0.0, 0.0)


def test_repeated_work_between_the_phases_stands_for_data_and_other():
    rank = t.rank([10.0] * 100, {"Data": 0.4, "Fwd": 0.4})
    found = summary_of(replace(rank, repeated=(t.call(where="gap"),))).repeated
    assert found[0].share == pytest.approx(0.8 * (0.4 + 0.2))


def test_repeated_work_in_workers_stands_for_the_waiting():
    rank = t.rank([10.0] * 100, {"Data": 0.4, "Fwd": 0.4})
    none = t.fetches(rank.step_start_ns[:0], 0, 0, 0)
    found = summary_of(rank, *(t.worker(none, pid, repeated=(t.call(role="worker"),)) for pid in (200, 201))).repeated
    assert [(work.role, work.calls, work.share) for work in found] == [("worker", 200, pytest.approx(0.8 * 0.4))]


def test_the_outermost_function_that_could_be_cached_wins():
    inner = t.call(caller="render", qualname="blur", location=Location("data.py", 50, "blur"), inclusive_ns=60 * t.MS)
    names = [work.qualname for work in summary_of(fetching(t.call(), inner)).repeated]
    assert names == ["render"]


@pytest.mark.parametrize("outer", [t.call(hashable=False), t.call(repeats=10)])
def test_an_outer_function_that_cannot_be_cached_or_rarely_repeats_hides_nothing(outer):
    inner = t.call(caller="render", qualname="blur", location=Location("data.py", 50, "blur"), inclusive_ns=60 * t.MS)
    names = [work.qualname for work in summary_of(fetching(outer, inner)).repeated]
    assert "blur" in names


def test_functions_that_call_each_other_do_not_hide_each_other_for_ever():
    first = t.call(caller="b", qualname="a", location=Location("data.py", 1, "a"), hashable=False)
    second = t.call(caller="a", qualname="b", location=Location("data.py", 5, "b"), hashable=False)
    assert len(summary_of(fetching(first, second)).repeated) == 2


def test_cpu_time_is_that_of_the_steady_part_where_it_was_read_there():
    rank = steady()
    part = steady_part(rank)
    half = (part.to_ns - part.from_ns) // 2
    readings = (CpuReading(part.from_ns - 8 * half, 0, 0, 0), CpuReading(part.from_ns, 0, 0, 0), CpuReading(part.to_ns, half, 0, half))

    def cpu_share(*chosen):
        return summary_of(replace(rank, threads=ThreadFacts(None, None, 1, 1, None, None, cpu=chosen))).threads.thread_cpu_share

    assert cpu_share(*readings) == pytest.approx(0.5)  # it slept before
    assert cpu_share(readings[0], readings[2]) == pytest.approx(0.1)
    assert cpu_share(readings[2]) is None


def test_facts_of_the_run():
    threads = ThreadFacts(
        affinity=8,
        cgroup_cpus=1.5,
        torch_threads=8,
        interop_threads=4,
        omp_num_threads=None,
        set_at=None,
        cpu=(CpuReading(0, 0, 0, 0), CpuReading(2000 * t.MS, 3000 * t.MS, 500 * t.MS, 1500 * t.MS)),
    )
    setting = Setting("anomaly_mode", "on", Location("trainer.py", 8, "fit"))
    rank = replace(
        steady(),
        threads=threads,
        settings=(setting, setting),
        batch=BatchTrace({(32, 16): 5, (32, 12): 1}, elements=1000, padding=250, common_padding=100, padded=(PaddedField(1, 0, 16),)),
        data_functions=(DataFunction(Location("train.py", 20, "get_batch"), "get_batch"),),
        swallowed={"batch": 2},
        dropped_events=3,
        epochs=4,
    )
    worker = t.worker(t.fetches(rank.step_start_ns[:0], 0, 0, 0), swallowed={"batch": 1, "fetch": 1}, dropped_events=1)
    found = summary_of(rank, worker, stopped=True)
    assert (found.threads.cpus, found.threads.cpu_seconds, found.threads.runqueue_share) == (1.5, 3.0, 0.25)
    assert (found.padding_share, found.common_padding_share, found.input_shapes) == (0.25, 0.1, 2)
    assert found.padded == (PaddedField(1, 0, 16),)
    assert (found.settings, found.data_function) == ((setting,), Location("train.py", 20, "get_batch"))
    assert (found.swallowed, found.dropped_events) == ({"batch": 3, "fetch": 1}, 4)
    assert (found.epochs, found.stopped, found.processes, found.ranks) == (4, True, 2, 1)


def test_what_was_not_recorded_is_none():
    found = summary_of(steady())
    assert (found.threads, found.padding_share, found.common_padding_share, found.input_shapes) == (None,) * 4
    assert (found.data_function, found.sampled_s) == (None, None)
    assert (found.lines, found.loaders, found.repeated, found.activities) == ((),) * 4


def test_a_summary_survives_its_file():
    rank = fetching(t.call())
    rank = replace(rank, samples=t.samples(rank, [(50, "Data", Location("data.py", 12, "get"), 30.0)]))
    found = summary_of(rank)
    assert dump_json(found)
    assert from_plain(Summary, to_plain(found)) == found
