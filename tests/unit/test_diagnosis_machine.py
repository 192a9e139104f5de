"""Rules about device, ranks, machine and interpreter: what each rests on, and programs that it must leave alone."""

from __future__ import annotations

from dataclasses import replace

import compute_scenarios as c
import machine_scenarios as m
import pytest
import scenarios as s

from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.schema import Finding, InputTail, LineCost, Location, SlowSample, Summary, SyncPoint, Telemetry


def kinds(summary: Summary) -> list[str]:
    return [finding.kind for finding in diagnose(summary).findings]


def first(summary: Summary) -> Finding:
    return diagnose(summary).findings[0]


def evidence(finding: Finding) -> str:
    return "; ".join(f"{row.name} {row.value}" for row in finding.evidence)


def test_reading_tensors_is_named_by_its_line_and_cost():
    finding = first(m.reading_tensors())
    assert finding.location == m.METRIC
    assert "calls of item 40000" in evidence(finding)


def test_a_line_that_feeds_such_calls_counts_as_a_whole():
    found = m.reading_tensors(0.4)
    some = replace(found, sync_points=(replace(found.sync_points[0], share=0.4 * DEFAULT.sync_of_line + 0.001),))
    assert kinds(some) == ["sync_point"]
    assert first(some).share == pytest.approx(0.4)


def test_a_line_that_reads_little_and_computes_much_is_the_programs_own_code():
    found = m.reading_tensors(0.4)
    little = replace(found, sync_points=(replace(found.sync_points[0], share=0.06),))
    assert kinds(little) == ["host_code", "sync_point"]
    assert first(little).share == pytest.approx(0.34)


@pytest.mark.parametrize(("phase", "whole"), [("Eval", "evaluation"), ("Log", "logging"), ("Data", "input_cpu")])
def test_reading_tensors_inside_an_interruption_stands_beside_it(phase, whole):
    assert kinds(m.reading_tensors(0.3, phase=phase)) == [whole, "sync_point"]


def test_waiting_for_a_busy_device_is_no_loss():
    waiting = m.reading_tensors(0.5, on_device=True)
    assert "sync_point" not in kinds(m.on_gpu(waiting, busy=0.97))
    idle = diagnose(m.on_gpu(waiting, busy=0.7)).findings
    assert next(finding for finding in idle if finding.kind == "sync_point").share == pytest.approx(0.3)


def test_without_device_times_waiting_is_mentioned_and_not_blamed():
    found = diagnose(m.on_gpu(m.reading_tensors(0.2, on_device=True), busy=None))
    assert "sync_point" not in [finding.kind for finding in found.findings]
    assert any("not known without device times" in note for note in found.notes)


def test_input_that_the_device_hides_is_no_bottleneck():
    assert kinds(m.on_gpu(s.slow_getitem(0.4), busy=0.98))[0] == "compute"
    assert kinds(m.on_gpu(s.slow_getitem(0.4), busy=0.6))[0] == "input_cpu"


def test_a_gpu_that_waits_for_launches():
    finding = first(m.launching())
    assert finding.kind == "launch_overhead"
    assert "kernels per step 3000" in evidence(finding)


@pytest.mark.parametrize(
    "healthy",
    [m.launching(lag=0.5), m.launching(waits=0.3), m.launching(operators=DEFAULT.launch_operators - 1)],
    ids=["the device lags", "the host waits for it", "few operators"],
)
def test_a_busy_gpu_is_not_accused_of_launching(healthy):
    assert "launch_overhead" not in kinds(healthy)


def test_full_power_overrules_a_lag_of_nothing():
    found = m.launching()
    assert "launch_overhead" not in kinds(replace(found, telemetry=Telemetry(0.5, m.host(), (m.gpu(),))))


def test_unpinned_copies_are_mended_at_the_loader_and_pinned_ones_at_the_copy():
    line = LineCost("main", "H2D", Location("train.py", 47, "main"), 0.4)
    copying = replace(s.run(H2D=0.4), device=m.GPU, lines=(line,))
    assert (first(copying).location, first(copying).knobs) == (s.LOADER, ("pin_memory",))
    pinned = replace(copying, loaders=(s.loader(pin_memory=True),))
    assert (first(pinned).location, first(pinned).knobs) == (line.location, ())


@pytest.mark.parametrize("phase", ["Data", "Fwd", "Bwd", "Opt", "Other"])
def test_a_late_rank_is_named_with_the_phase_that_makes_it_late(phase):
    finding = first(m.late_rank(1, phase=phase, ms=m.COMPUTE_MS[phase] + 6.0))
    assert (finding.kind, finding.phase) == ("rank_straggler", phase)
    assert finding.summary.startswith("rank 1 on node-a is 6.0 ms later")
    assert finding.share == pytest.approx(6.0 / max(15.0, sum(m.COMPUTE_MS.values()) + 6.0))


def test_a_late_rank_is_located_by_its_own_lines():
    where = Location("train.py", 70, "backward_hook")
    found = m.late_rank(1)
    stats = (found.rank_stats[0], replace(found.rank_stats[1], hottest={"Bwd": where}))
    assert first(replace(found, rank_stats=stats)).location == where


def test_one_of_many_ranks_is_late():
    assert first(m.late_rank(3, ranks=8, ms=12.0)).summary.startswith("rank 3")


def test_equal_ranks_are_left_alone():
    assert "rank_straggler" not in kinds(m.talking_ranks())


def test_slow_input_of_rank_0_alone_is_a_straggler_and_not_the_input_of_all():
    found = m.late_rank(0, phase="Data", ms=6.9)
    assert kinds(found)[0] == "rank_straggler"
    assert "input_cpu" not in kinds(found)
    assert first(found).bound_by == "input"


def test_an_evaluation_on_rank_0_keeps_its_name():
    assert kinds(m.late_rank(0, phase="Eval", ms=8.0))[:2] == ["evaluation", "rank_straggler"]


def test_a_late_rank_0_is_located():
    where = Location("train.py", 66, "main")
    late = replace(m.late_rank(0, phase="Other", ms=7.0), lines=(LineCost("main", "Other", where, 0.44),))
    assert (first(late).kind, first(late).location) == ("rank_straggler", where)


def test_communication_names_wrapper_and_figures():
    finding = first(m.talking_ranks())
    assert (finding.bound_by, finding.location) == ("communication", m.WRAP)
    assert "by DDP over gloo" in evidence(finding) and "exchanged per step 40" in evidence(finding)


def test_waiting_for_a_later_rank_is_no_communication():
    assert "communication" not in kinds(m.talking_ranks(wait_share=0.9))
    late = replace(m.talking_ranks(wait_share=None), rank_stats=m.late_rank(ms=11.0).rank_stats)
    assert kinds(late)[0] == "rank_straggler"
    assert "communication" not in kinds(late)


def test_a_line_that_calls_collectives_waits_and_does_not_compute():
    where = Location("train.py", 37, "average")
    by_hand = m.talking_ranks(share=0.4, wrapper="collectives", location=where).communication
    busy = s.busy_callback(0.5)
    lines = tuple(replace(line, location=where) if line.phase == "Other" else line for line in busy.lines)
    assert kinds(replace(busy, lines=lines, ranks=2, communication=by_hand)) == ["communication", "host_code"]
    elsewhere = replace(by_hand, location=Location("train.py", 99, "other"))
    assert kinds(replace(busy, lines=lines, ranks=2, communication=elsewhere))[0] == "host_code"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"syncs_per_step": 4.0}, "no_sync() is missing"),
        ({"find_unused_parameters": True}, "find_unused_parameters"),
        ({"bucket_cap_mb": 1.0}, "buckets of 1 MB"),
    ],
)
def test_what_breaks_overlap_is_said(changes, said):
    assert said in evidence(first(m.talking_ranks(**changes)))


def test_a_static_graph_walks_nothing():
    assert "breaks overlap" not in evidence(first(m.talking_ranks(find_unused_parameters=True, static_graph=True)))


def test_several_reductions_of_several_backwards_are_reported_only_with_accumulation():
    twice = m.talking_ranks(syncs_per_step=2.0)
    assert "no_sync" in evidence(first(replace(twice, updates=c.updates(backwards_per_step=2.0))))
    assert "no_sync" not in evidence(first(replace(twice, updates=c.updates(backwards_per_step=1.0))))


def test_gradients_that_are_reduced_too_often_are_placed_at_their_backward():
    backward = Location("loop.py", 31, "gather")
    often = m.talking_ranks(syncs_per_step=8.0)
    lines = (*often.lines, LineCost("main", "Bwd", backward, 0.3))
    assert first(replace(often, lines=lines)).location == backward
    assert first(often).location == m.WRAP
    assert first(replace(m.talking_ranks(syncs_per_step=1.0), lines=lines)).location == m.WRAP


def test_a_quota_that_too_many_threads_run_into_stands_beside_them():
    crowded = replace(s.many_threads(), telemetry=m.stopped_by_quota(0.4).telemetry)
    assert kinds(crowded) == ["thread_oversubscription", "throttling"]
    assert "time stopped by the CPU quota 40" in evidence(first(crowded))


def rollouts_among_threads(threads: int, making: float | None) -> Summary:
    """Batches are made by small operators in the training process, which sleeps while their threads have no core."""
    made = s.hand_made_batches(0.6)
    facts = replace(made.threads, torch_threads=threads, cpus=2.0, runqueue_share=0.3, thread_cpu_share=0.2)
    return replace(made, threads=facts, operators=replace(c.operators(), making_share=making))


def test_batches_that_threads_without_cores_make_wait_for_no_disk():
    crowded = rollouts_among_threads(32, 0.58)
    found = first(crowded)
    assert (found.kind, "input_io" in kinds(crowded)) == ("thread_oversubscription", False)
    assert found.share > 0.85
    assert first(rollouts_among_threads(32, 0.05)).kind == "input_io", "outside operators they wait for something else"
    assert first(rollouts_among_threads(32, None)).kind == "input_io"
    few = kinds(rollouts_among_threads(3, 0.58))
    assert few[:2] == ["input_cpu", "thread_oversubscription"], "with a third of the cores missing making is still the larger cost"


def test_workers_that_take_the_cores_are_counted_only_where_cores_lack():
    workers = s.loader(num_workers=2, getitem_ms=s.spread(18.0), collate_ms=s.spread(1.0), persistent_workers=True)
    busy = replace(s.many_threads(2), loaders=(workers,))
    assert kinds(busy) == ["compute"]
    crowded = kinds(replace(s.many_threads(2, waiting=0.4), loaders=(workers,)))
    assert crowded[0] == "thread_oversubscription"


def test_a_hot_gpu_is_named_with_reason_and_clock():
    finding = first(m.hot_gpu())
    assert finding.kind == "throttling"
    assert "hw thermal" in finding.summary and "hottest 87" in evidence(finding)


@pytest.mark.parametrize(
    "fine", [m.hot_gpu(1900.0), m.hot_gpu(part=0.05), m.on_gpu(s.healthy())], ids=["clock is kept", "a short peak", "no telemetry"]
)
def test_a_gpu_at_its_clock_is_left_alone(fine):
    assert "throttling" not in kinds(fine)


def test_emptied_caches_are_named_by_line_and_no_code_of_the_programs():
    found = diagnose(m.emptying_the_cache())
    assert [finding.kind for finding in found.findings] == ["memory_pressure"]
    assert found.findings[0].location == Location("train.py", 60, "main")


def test_an_emptied_cache_is_no_sync_point():
    found = m.emptying_the_cache()
    at = found.memory.empty_cache_at
    assert "sync_point" not in kinds(replace(found, sync_points=(SyncPoint(at, "empty_cache", 400, 3.0, 0.3, True, "Other"),)))


def test_stalls_for_memory_are_those_that_the_kernel_reports():
    finding = first(m.stalled_for_memory())
    assert finding.kind == "memory_pressure" and "times at the memory limit 12" in evidence(finding)
    notes = diagnose(m.stalled_for_memory()).notes
    assert any("hit its memory limit 12 times" in note for note in notes) and any("97 % full" in note for note in notes)


def test_faults_of_a_mapped_file_are_no_lack_of_memory():
    faulting = replace(s.healthy(), memory=c.memory(0.2, major_faults=60.0))
    assert kinds(faulting) == ["compute"]
    assert kinds(replace(faulting, memory=replace(faulting.memory, swapped_bytes=10_000_000)))[0] == "memory_pressure"


def test_retried_allocations_are_charged_with_the_uneven_steps():
    memory = replace(m.emptying_the_cache().memory, empty_cache_calls=0, empty_cache_share=0.0, empty_cache_at=None, alloc_retries=40)
    uneven = replace(m.on_gpu(s.healthy()), memory=memory, step_ms=replace(s.spread(s.STEP_MS), p50_ms=0.7 * s.STEP_MS))
    assert first(uneven).kind == "memory_pressure"


def test_called_collections_are_named_by_line_and_counted_once():
    found = diagnose(m.collecting())
    assert [finding.kind for finding in found.findings] == ["garbage_collection"]
    assert found.findings[0].location == m.COLLECT
    assert found.together.speedup == pytest.approx(1 / 0.7, abs=0.01)


def test_collections_by_themselves_have_no_line():
    finding = first(m.collecting(called=0))
    assert (finding.kind, finding.location) == ("garbage_collection", None)


def test_code_beside_a_collection_is_still_found():
    found = m.collecting(0.2)
    other = LineCost("main", "Other", Location("metrics.py", 7, "confusion"), 0.25)
    both = replace(found, phases=s.run(Other=0.45).phases, lines=(*found.lines, other))
    assert kinds(both) == ["host_code", "garbage_collection"]


def test_one_full_collection_says_nothing_about_how_often_they_come():
    run = m.collecting()
    assert "garbage_collection" not in kinds(replace(run, collections=replace(run.collections, count=14, full=1, called=0)))
    assert "garbage_collection" in kinds(replace(run, collections=replace(run.collections, count=14, full=2, called=0)))
    assert "garbage_collection" in kinds(replace(run, collections=replace(run.collections, count=400, full=1, called=0)))


def test_collections_in_the_dataset_are_taken_out_of_the_input():
    slow = s.slow_getitem(0.5)
    collecting = replace(m.collecting(0.3).collections, location=s.GETITEM)
    shares = {finding.kind: finding.share for finding in diagnose(replace(slow, collections=collecting)).findings}
    assert shares == {"garbage_collection": pytest.approx(0.3), "input_cpu": pytest.approx(0.2)}


def slow_samples(late_share: float = 0.3) -> Summary:
    """Two samples take a second; every other batch is there in time."""
    found = s.late_batches(usual=0.1)
    tail = InputTail(replace(s.spread(4.0), p50_ms=1.0), 12, late_share)
    samples = (SlowSample(1234, "img/1234.png", 1000.0, 2.0, 3), SlowSample(77, None, 900.0, 2.0))
    return replace(found, input_tail=tail, loaders=(replace(found.loaders[0], slow_samples=samples),))


def test_slow_samples_are_named_by_index_and_file():
    finding = first(slow_samples())
    assert finding.kind == "input_tail"
    assert "slow sample 1234 1000.0 ms, usually 2.0 ms, img/1234.png" in evidence(finding)


def test_known_slow_samples_need_make_no_more_than_the_larger_part_of_the_wait():
    part = slow_samples().phases["Data"].share * 0.5 * (DEFAULT.tail_part + DEFAULT.tail_part_known)
    found = slow_samples(part)
    assert kinds(found)[0] == "input_tail"
    assert kinds(replace(found, loaders=(replace(found.loaders[0], slow_samples=()),)))[0] == "input_cpu"


def test_late_batches_beside_input_that_is_slow_as_a_whole():
    found = slow_samples(0.15)
    assert kinds(found) == ["input_cpu", "input_tail"]


def test_workers_without_a_core_are_busy_all_the_same():
    waiting = s.loader(num_workers=4, fetch_cpu_share=0.2, runqueue_share=0.75)
    assert kinds(replace(s.slow_getitem(), loaders=(waiting,)))[0] == "input_cpu"
    assert kinds(replace(s.slow_getitem(), loaders=(replace(waiting, runqueue_share=0.1),)))[0] == "input_io"


def test_the_parts_of_making_a_batch_are_located_apart():
    pad = Location("data.py", 30, "pad")
    lines = (
        LineCost("main", "Data", s.GETITEM, 0.2, "getitem"),
        LineCost("main", "Data", pad, 0.3, "collate"),
        LineCost("main", "Data", Location("data.py", 3, "idle"), 0.4, "waiting"),
    )
    samples = replace(s.slow_getitem(), lines=lines)
    assert first(samples).location == s.GETITEM
    assert first(replace(s.slow_collate(), lines=lines)).location == pad


def test_work_repeated_in_an_evaluation_stands_beside_it():
    slow = s.evaluating(0.5)
    render = Location("data.py", 30, "render")
    lines = (LineCost("main", "Eval", Location("data.py", 31, "render"), 0.4),)
    assert kinds(replace(slow, lines=lines, repeated=(s.repeated(0.4, location=render),))) == ["evaluation", "repeated_work"]


@pytest.mark.parametrize("summary", [s.evaluating(), s.saving(), s.printing()], ids=["Eval", "Ckpt", "Log"])
def test_an_interruption_says_what_a_rarer_one_would_bring(summary):
    finding = first(summary)
    assert f"10 times less often it would bring at most {1 / (1 - 0.9 * finding.share):.2f}" in evidence(finding)


@pytest.mark.parametrize(("workers", "fetching"), [(0, 0.5), (2, 2)])
def test_copying_files_from_the_page_cache_is_input_and_output_though_it_computes(workers, fetching):
    def of(rate: float) -> str:
        loader = s.loader(num_workers=workers, fetch_cpu_share=1.0)
        machine = Telemetry(0.5, m.host(read_mb_s=rate))
        return kinds(replace(s.slow_getitem(0.5), loaders=(loader,), telemetry=machine))[0]

    most = DEFAULT.copied_mb_s * fetching
    assert (of(1.01 * most), of(0.99 * most)) == ("input_io", "input_cpu")
