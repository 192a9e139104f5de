"""What lies outside of the analysed window is in no sum: warm-up's work, its regions and its waiting."""

from __future__ import annotations

from profile_scenarios import call, flat, host, launched, profile, ranks, step, trace

from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Kind
from trainflash.profile.query import ask


def warmed_up():
    """A warm-up step of 20 ms whose kernel reaches 10 µs into six steps of 1 ms."""
    steady = [launched("gemm", at + 20, at + 100, 800, at) for at in range(20_000, 26_000, 1000)]
    marks = [step(number, 20_000 + 1000 * (number - 1), 1000) for number in range(1, 7)]
    return flat(step(0, 0, 20_000), marks, launched("autotune_kernel", 50, 100, 19_910, 1), *steady)


def test_work_that_crosses_the_windows_edge_counts_for_its_part_inside():
    summary = summarize(profile(trace(warmed_up())))
    assert summary.step_time.warmup_steps_ignored == 1 and summary.time_breakdown.window_us == 6000
    assert [(op.name, op.exclusive_duration, op.total_duration) for op in summary.hot_ops] == [
        ("gemm", 4800, 4800),
        ("autotune_kernel", 10, 10),
    ]
    assert summary.semantic_families[0].family == "matmul" and summary.semantic_families[0].share_of_total > 0.99


def test_a_region_and_an_operator_around_all_steps_count_for_their_part_inside():
    events = flat(warmed_up(), host("train_loop", 0, 26_000, kind=Kind.ANNOTATION), host("aten::loop", 5, 25_990))
    summary = summarize(profile(trace(events)))
    (region,) = summary.hierarchical_regions
    assert (region.path, region.inclusive_duration, region.host_inclusive_us) == ("train_loop", 4810, 6000)
    assert [(op.name, op.exclusive_duration) for op in summary.host_ops] == [("aten::loop", 5995)]


def test_a_wait_for_the_device_counts_for_its_part_inside():
    events = flat(warmed_up(), call("cudaDeviceSynchronize", 1000, 19_300))
    launches = summarize(profile(trace(events))).launches
    assert launches.synchronizing_calls == 1 and launches.synchronizing_us == 300


def test_waiting_of_warm_up_steps_is_nobodys_lateness():
    """Rank 1 comes 990 ms late in step 0, and with all others in the six that follow."""

    def rank(late):
        reduces = [launched("ncclDevKernel_AllReduce", late - 10, late, 999_900 - late, 1, stream="20")]
        reduces += [launched("ncclDevKernel_AllReduce", at + 90, at + 100, 400, at, stream="20") for at in range(10**6, 1_006_000, 1000)]
        marks = [step(number, 10**6 + 1000 * (number - 1), 1000) for number in range(1, 7)]
        return flat(step(0, 0, 10**6), marks, *reduces)

    summary = summarize(ranks(rank(100), rank(990_000)))
    found = summary.alignment
    assert summary.step_time.warmup_steps_ignored == 1 and found.collectives == 6
    assert found.waiting_us == 0 and found.stragglers == () and summary.ranks[1].caused_waiting_us == 0
    assert ask(summary, "Which rank is late?").said.startswith("0.0 % of the time in 6 shared collectives")


def test_waiting_across_the_windows_edge_counts_for_its_part_inside():
    """An all-reduce of the warm-up step ends 100 µs into the window; rank 0 has waited in it for long."""

    def rank(arrives):
        marks = [step(number, 20_000 + 1000 * (number - 1), 1000) for number in range(1, 7)]
        return flat(step(0, 0, 20_000), marks, launched("ncclDevKernel_AllReduce", arrives - 9, arrives, 20_100 - arrives, 1, stream="20"))

    summary = summarize(ranks(rank(1000), rank(20_050)))
    assert summary.alignment.waiting_us == 50 and summary.ranks[0].waiting_us == 50 and summary.ranks[0].communication_us == 100
    (collective,) = summary.communication_ops
    assert (collective.total_duration, collective.waiting_us, collective.transfer_us) == (150, 50, 100)
