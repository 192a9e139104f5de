"""From traces to summaries: steps, causes of idle time, gaps, regions, copies, launches, collectives, ops."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from profile_scenarios import LOADING, Event, call, flat, host, launched, profile, ranks, step, trace, training, work

from trainflash import knobs
from trainflash.diagnosis.rules import REPORTED, TRACED
from trainflash.errors import UsageError
from trainflash.profile.analysis import candidates, copies, words
from trainflash.profile.analysis.build import Options, digest, summarize
from trainflash.profile.events import Identity, Kind, Quality, TrackKind
from trainflash.schema import KINDS, dump_json, from_plain, to_plain
from trainflash.schema.profiles import ProfileSummary


def cause(summary, name):
    return next((each for each in summary.idle.causes if each.cause == name), None)


def test_steps_run_from_mark_to_mark_and_the_last_until_its_device_work_ends():
    events = [step(0, 0, 100), step(1, 150, 100), work("gemm", 160, 200)]
    summary = summarize(profile(trace(events)))
    assert [each.duration_us for each in summary.step_time.steps] == [150, 210]
    assert summary.step_time.basis == "step_markers" and summary.time_breakdown.window_us == 360


def test_a_slow_first_step_is_warm_up_and_stands_outside_of_the_window():
    summary = summarize(profile(trace(training(first=5000))))
    assert summary.step_time.warmup_steps_ignored == 1 and summary.step_time.steps[0].warmup
    assert summary.step_time.all_steps.count == 8 and summary.step_time.steady_state_steps.count == 7
    assert summary.time_breakdown.window_us == pytest.approx(7 * 810)
    assert summarize(profile(trace(training(first=5000))), Options(warmup_steps=3)).step_time.warmup_steps_ignored == 3
    assert summarize(profile(trace(training()))).step_time.warmup_steps_ignored == 0


def test_two_kinds_of_steps_and_how_often_they_come():
    light, heavy = summarize(profile(trace(training(16, heavy_every=4)))).step_time.classes
    assert (light.name, light.count, heavy.name, heavy.count) == ("light", 12, "heavy", 4)
    assert heavy.periodicity == 4 and heavy.representative_duration == pytest.approx(1710) and light.periodicity is None
    assert heavy.fraction_of_steady == 0.25


def test_noise_around_one_mean_is_no_second_kind():
    noise = random.Random(3)
    at, events = 0.0, []
    for number in range(40):
        length = 1000 + noise.gauss(0, 60)
        events += [step(number, at, length), work("gemm", at + 10, 500)]
        at += length
    assert summarize(profile(trace(events))).step_time.classes == ()


def test_the_optimizer_marks_steps_where_nothing_else_does():
    events = [event for event in training() if not event.name.startswith("ProfilerStep")]
    summary = summarize(profile(trace(events)))
    assert summary.step_time.basis == "optimizer_steps" and summary.step_time.all_steps.count == 7
    assert summary.step_time.all_steps.median == pytest.approx(810)


def test_loading_is_named_and_measured():
    summary = summarize(profile(trace(training())))
    first = summary.optimization_candidates[0]
    assert first.finding == "input_cpu" and "dataloader_workers" in first.knobs
    assert cause(summary, "data_loading").per_step_us == pytest.approx(summary.step_time.data_loading_mean_us)
    assert cause(summary, "data_loading").total_us == pytest.approx(8 * 300, rel=0.02)
    assert "data_loading" not in [each.candidate_id for each in summarize(profile(trace(training(loading=21)))).optimization_candidates]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (flat(host("aten::add", 10, 190)), "launch_bound"),
        (flat(call("cudaStreamSynchronize", 5, 100), host("aten::item", 110, 90)), "synchronization"),
        (flat(call("cudaMemcpyAsync", 12, 186, 77)), "copy"),
        (flat(host("c10d::allreduce_", 10, 190)), "collective_wait"),
        (flat(host(LOADING, 10, 190), host("aten::add", 20, 150)), "data_loading"),
    ],
)
def test_a_gap_is_blamed_on_what_the_host_did(events, expected):
    kernels = flat(launched("gemm", 0, 8, 4, 1, call_us=2), launched("gemm", 198, 212, 50, 2, call_us=2))
    summary = summarize(profile(trace([*kernels, *events])))
    assert summary.idle.causes[0].cause == expected, [(each.cause, each.total_us) for each in summary.idle.causes]


def test_a_gap_without_any_event_is_untraced_code():
    kernels = flat(launched("gemm", 0, 10, 100, 1), launched("gemm", 30_000, 30_010, 100, 2))
    summary = summarize(profile(trace(kernels)))
    assert summary.idle.causes[0].cause == "no_work" and "host_code" in [each.finding for each in summary.optimization_candidates]


def test_a_gap_whose_work_was_queued_is_the_devices_own():
    kernels = flat(launched("gemm", 0, 10, 100, 1), launched("gemm", 20, 115, 100, 2))
    assert cause(summarize(profile(trace(kernels))), "queued").total_us == 5


def test_waiting_in_a_collective_counts_as_idle_but_only_what_nothing_computes_beside():
    def rank(arrives, *more):
        mine = launched("ncclDevKernel_AllReduce", arrives - 10, arrives, 1000 - arrives, 1, stream="20")
        return flat(host("nccl:all_reduce", arrives - 12, 15, kind=Kind.ANNOTATION), mine, launched("gemm", 0, 10, 90, 2), *more)

    summary = summarize(ranks(rank(100, launched("gemm", 200, 300, 200, 3)), rank(900)))
    assert summary.idle.waiting_us == pytest.approx(800 - 200)
    in_calls = 12  # rank 1 is inside nccl:all_reduce while its device idles
    assert cause(summary, "collective_wait").total_us == pytest.approx(600 + in_calls)


def test_payload_and_marker_of_a_gap():
    events = flat(
        launched("gemm", 0, 10, 100, 1),
        host("aten::fill_", 500, 30),
        launched("iota_kernel", 510, 520, 2, 2),
        launched("fused_attention_kernel", 515, 530, 200, 3),
    )
    gap = summarize(profile(trace(events))).gap_before_ops[0]
    assert (gap.payload_op, gap.marker_op, gap.name) == ("fused_attention_kernel", "iota_kernel", "fused_attention_kernel")
    assert gap.total_gap_duration == 410 and gap.max_gap_duration == 410 and gap.count == 1
    assert gap.host_activity[0].name in {"aten::fill_", "cudaLaunchKernel"}
    assert sum(gap.causes.values()) == pytest.approx(gap.total_gap_duration)


def test_regions_are_a_tree_of_the_time_launched_inside():
    events = flat(
        host("model", 0, 100, kind=Kind.ANNOTATION),
        host("nn.Module: Attention_0", 10, 40, kind=Kind.PYTHON),
        host("aten::mm", 15, 10),
        launched("gemm", 20, 200, 60, 1),
        host("## head ##", 60, 30, kind=Kind.ANNOTATION),
        launched("gemm", 65, 300, 40, 2),
        launched("gemm", 150, 400, 7, 3),
    )
    rows = {each.path: each for each in summarize(profile(trace(events))).hierarchical_regions}
    assert rows["model"].inclusive_duration == 100 and rows["model"].exclusive_duration == 0 and rows["model"].depth == 0
    assert rows["model/Attention_0"].exclusive_duration == 60 and rows["model/Attention_0"].depth == 1
    assert rows["model/head"].exclusive_duration == 40 and rows["(no region)"].exclusive_duration == 7
    assert rows["model"].host_inclusive_us == 100 and rows["model"].basis == "device"


def test_scopes_of_the_compiler_make_the_same_tree():
    scopes = ["jit(step)/transformer/attention/dot_general", "jit(step)/transformer/mlp/dot_general", "jit(step)/loss/reduce_sum"]
    events = [work(f"fusion.{number}", 100 * number, 50, scope=scope) for number, scope in enumerate(scopes)]
    rows = {each.path: each for each in summarize(profile(trace(events, source="xplane"))).hierarchical_regions}
    assert rows["jit(step)"].inclusive_duration == 150 and rows["jit(step)/transformer"].inclusive_duration == 100
    assert rows["jit(step)/transformer/mlp"].exclusive_duration == 50 and rows["jit(step)/transformer/mlp"].depth == 2


def test_backward_work_belongs_to_the_module_whose_forward_it_is():
    events = flat(
        host("Optimizer.zero_grad#SGD.zero_grad", -20, 15),
        host("aten::zero_", -15, 5, sequence=7, forward_thread=0),
        host("nn.Module: Linear_0", 0, 40, kind=Kind.PYTHON),
        host("aten::addmm", 5, 20, sequence=7, forward_thread=0),
        launched("gemm", 10, 20, 30, 1),
        host("autograd::engine::evaluate_function: AddmmBackward0", 100, 50, thread="2", sequence=7, forward_thread=1),
        host("aten::mm", 110, 20, thread="2"),
        launched("gemm_backward", 115, 130, 60, 2, thread="2"),
    )
    rows = {each.path: each for each in summarize(profile(trace(events))).hierarchical_regions}
    assert rows["Linear_0"].inclusive_duration == 30 and rows["(backward)"].inclusive_duration == 60
    assert rows["(backward)/Linear_0"].exclusive_duration == 60 and "(no region)" not in rows


FRAMES = (
    host("train.py(9): <module>", -10, 260, kind=Kind.PYTHON),
    host("nets/model.py(5): forward", 0, 60, kind=Kind.PYTHON),
    host("torch/functional.py(1734): norm", 10, 40, kind=Kind.PYTHON),
)


def with_frames(*more, own: list[str] | None = None, backward_thread: str = "1"):
    events = flat(
        *FRAMES,
        host("aten::norm", 12, 30, sequence=7, forward_thread=0),
        host("autograd::engine::evaluate_function: NormBackward0", 100, 50, thread=backward_thread, sequence=7, forward_thread=1),
        host("NormBackward0", 102, 40, thread=backward_thread, sequence=7, forward_thread=1),
        *more,
    )
    recorded = trace(events)
    return summarize(profile(recorded if own is None else replace(recorded, provenance={"trainflash": {"own": own}})))


def test_a_function_of_the_owners_has_its_libraries_and_its_backward():
    main, model = with_frames(own=["train.py", "nets/model.py"]).source_sites
    assert (model.file, model.line, model.function, model.host_duration, model.backward_duration) == (
        "nets/model.py",
        5,
        "forward",
        110,
        50,
    )
    assert model.hottest_call == "torch/functional.py(1734): norm"
    assert main.function == "<module>" and main.host_duration == 260 - 110 and main.backward_duration == 0
    assert model.host_share + main.host_share == pytest.approx(1.0, abs=1e-5)


def test_of_a_foreign_trace_only_files_beside_the_main_script_are_the_owners():
    (main,) = with_frames().source_sites
    assert (main.file, main.host_duration) == ("train.py", 260)
    assert not summarize(profile(trace(training()))).source_sites


def test_device_work_belongs_to_the_function_that_launched_it_and_to_the_forward_of_its_backward():
    launches = (
        *launched("gemm", 20, 30, 30, 1),
        *launched("gemm_backward", 110, 130, 60, 2, thread="2"),
        *launched("adam", 200, 210, 10, 3),
    )
    model, main = with_frames(*launches, own=["train.py", "nets/model.py"], backward_thread="2").source_sites
    assert (model.function, model.device_duration, main.device_duration) == ("forward", 90, 10)
    assert model.device_share == pytest.approx(0.9) and model.backward_duration == 0  # on a thread of its own it takes no host time of ours


def test_device_time_is_in_one_region_only():
    events = flat(
        host("PjitFunction(step)", 0, 100, kind=Kind.ANNOTATION),
        launched("fusion.1", 10, 20, 30, 1, scope="jit(step)/mlp/dot"),
        launched("fusion.2", 30, 60, 20, 2),
        launched("fusion.3", 200, 220, 5, 3),
    )
    rows = summarize(profile(trace(events, source="xplane"))).hierarchical_regions
    assert sum(each.exclusive_duration for each in rows) == 55
    assert {each.path: each.inclusive_duration for each in rows if each.depth == 0} == {
        "jit(step)": 30, "PjitFunction(step)": 20, "(no region)": 5,
    }  # fmt: skip


XPROF = {
    "overview_page": [
        {"p": {"remark_text": ""}},
        {
            "p": {"steptime_ms_average": "2.5", "infeed_time_ms_avg": "0.0", "input_conclusion": "Your program is <b>NOT</b> input-bound."},
            "cols": [{"id": "stepnum"}, {"id": "stepTimeMs"}],
            "rows": [{"c": [{"v": str(number)}, {"v": 2.0 + number}]} for number in range(3)],
        },
        {"p": {"bottleneck": "device", "statement": "Focus on the device.", "all_other_bottleneck": "no"}},
    ],
    "kernel_stats": {
        "cols": [{"id": "kernel_name"}, {"id": "occurrences"}, {"id": "total_duration_us"}],
        "rows": [{"c": [{"v": "gemm"}, {"v": 2.0}, {"v": 30.5}]}, {"c": [{"v": "gemm"}, {"v": 1.0}, {"v": 4.5}]}, {"c": [{}]}, {}],
    },
    "trace_viewer_events": 77,
}


def test_what_xprof_says_stands_beside_and_marks_steps_where_nothing_else_does():
    one = trace([work("gemm", 0, 10)], source="xplane")
    seen = summarize(replace(profile(one), tables=XPROF))
    assert seen.xprof.bottlenecks == ("Your program is NOT input-bound.", "bottleneck: device", "Focus on the device.")
    assert seen.xprof.averages == {"steptime_ms_average": 2.5} and seen.xprof.trace_events == 77
    assert [(each.name, each.total_us, each.occurrences) for each in seen.xprof.kernels] == [("gemm", 35.0, 3)]
    assert seen.step_time.basis == "xprof" and [each.duration_us for each in seen.step_time.steps] == [2000, 3000, 4000]
    assert summarize(replace(profile(one), tables={"overview_page": "odd", "kernel_stats": None})).xprof.bottlenecks == ()
    assert summarize(profile(one)).xprof is None


def test_lines_that_the_tracer_derived_are_not_added_to_the_work():
    derived = Event("XLA Op", Kind.KERNEL, 0, 100, ("0", "99"), {}, "", TrackKind.DERIVED)
    summary = summarize(profile(trace([work("fusion.1", 0, 100), derived])))
    assert summary.devices[0].kernels == 1 and summary.time_breakdown.compute.total_duration == 100


def test_a_trace_of_the_host_alone_says_so():
    events = [host("aten::mm", 0, 100), host("aten::add", 150, 50), host("aten::inner", 10, 30)]
    summary = summarize(profile(trace(events)))
    assert summary.idle is None and summary.launches is None and summary.devices == ()
    assert summary.time_breakdown.compute.total_duration == 150 and summary.time_breakdown.stall.total_duration == 50
    assert summary.hot_ops[0].name == "aten::mm" and summary.hot_ops[0].exclusive_duration == 70
    assert any("no device work" in each for each in summary.trace_overview.quality_warnings)


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("Memcpy HtoD (Pageable -> Device)", Kind.MEMCPY, ("H2D", False)),
        ("Memcpy DtoH (Device -> Pinned)", Kind.MEMCPY, ("D2H", True)),
        ("Memcpy DtoD (Device -> Device)", Kind.MEMCPY, ("D2D", None)),
        ("Memset (Device)", Kind.MEMSET, ("set", None)),
        ("MemcpyH2D", Kind.MEMCPY, ("H2D", None)),
        ("CopyHostToDevice", Kind.MEMCPY, ("H2D", None)),
        ("CopyDeviceToHost", Kind.MEMCPY, ("D2H", None)),
        ("Memcpy S2D (SHARED -> DEVICE)", Kind.MEMCPY, ("H2D", None)),
        ("Copy (Memory -> Device)", Kind.MEMCPY, ("H2D", None)),
        ("CopyElsewhere", Kind.MEMCPY, ("other", None)),
    ],
)
def test_directions_of_copies(name, kind, expected):
    assert copies.direction(name, kind) == expected


def test_copies_by_direction_with_what_they_moved():
    events = [work("Memcpy HtoD (Pageable -> Device)", at, 10, kind=Kind.MEMCPY, bytes=1_000_000) for at in (0, 100)]
    events += [work("gemm", 5, 50, stream="8")]
    (found,) = summarize(profile(trace(events))).copies
    assert (found.direction, found.pinned, found.count, found.bytes_total) == ("H2D", False, 2, 2_000_000)
    assert found.bandwidth_gb_s == 100 and found.exposed_us == 15
    assert "h2d" in [each.finding for each in summarize(profile(trace(events))).optimization_candidates]


def test_cuda_graphs():
    events = [
        call("cudaGraphLaunch", 0, 20, 7),
        *[work(f"gemm_{number}", 30 + 10 * number, 10, 7) for number in range(5)],
        work("other", 100, 50, 8),
    ]
    found = summarize(profile(trace(events))).cuda_graphs
    assert (found.launches, found.kernels, found.kernels_per_launch, found.device_share) == (1, 5, 5, 0.5)
    assert summarize(profile(trace([work("gemm", 0, 10, graph_node_id=0)]))).cuda_graphs is None


def test_launch_latency_and_queue_delay_are_two_things():
    events = flat(launched("gemm", 0, 12, 100, 1), launched("gemm", 20, 112, 100, 2))
    found = summarize(profile(trace(events))).launches
    assert found.launch_latency.median == 12 and found.launch_latency.count == 1
    assert found.queue_delay.median == 92 and found.queue_delay.count == 1


@pytest.mark.parametrize(
    ("collective", "elements", "factor"),
    [
        ("allreduce", 1_000_000, 1.5),
        ("_allgather_base", 4_000_000, 0.75),
        ("_reduce_scatter_base", 1_000_000, 0.75),
        ("broadcast", 4_000_000, 1.0),
    ],
)
def test_bandwidth_as_nccl_tests_define_it(collective, elements, factor):
    side = {"collective": collective, "in_elements": 1_000_000, "out_elements": 4_000_000, "dtype": "Float", "group_size": 4}
    found = summarize(profile(trace([work("ncclDevKernel_Generic", 0, 1000, **side)]))).communication_ops[0]
    assert found.bytes_total == elements * 4 and found.algorithm_bandwidth_gb_s == round(elements * 4 / 1e6, 3)
    assert found.bus_bandwidth_gb_s == round(elements * 4 / 1e6 * factor, 3)


def test_bandwidth_is_of_the_transfer_where_waiting_is_known():
    side = {"collective": "allreduce", "in_elements": 1_000_000, "out_elements": 1_000_000, "dtype": "Float", "group_size": 2}
    early, late = ([work("ncclDevKernel_AllReduce", at, 1000 - at, **side)] for at in (0, 900))
    found = summarize(ranks(early, late)).communication_ops[0]
    assert found.waiting_us == 900 and found.transfer_us == 200 and found.algorithm_bandwidth_gb_s == 40


def test_clocks_that_differ_are_laid_over_one_another():
    def rank(offset, arrives):
        return [work("ncclDevKernel_AllReduce", offset + 1000 * n + at, 1000 * n + 900 - (1000 * n + at)) for n, at in enumerate(arrives)]

    together = summarize(ranks(rank(0, (100, 100, 100)), rank(0, (500, 600, 700)))).alignment
    apart = summarize(ranks(rank(0, (100, 100, 100)), rank(7_000_000, (500, 600, 700)))).alignment
    assert together.clock == "aligned" and apart.clock == "shifted"
    assert apart.stragglers[0].rank == together.stragglers[0].rank == 1
    assert apart.waiting_us == together.waiting_us == 1500


def test_a_rank_that_saw_more_collectives_is_laid_in_step():
    def rank(numbers, arrives):
        return flat(*[[work("ncclDevKernel_AllReduce", 1000 * n + arrives, 900 - arrives)] for n in numbers])

    found = summarize(ranks(rank((1, 2, 3), 100), rank((0, 1, 2, 3), 500))).alignment
    assert found.collectives == 3 and found.unmatched == 1 and found.waiting_us == 1200


def test_ops_know_what_launched_them_their_shapes_and_lines():
    op = next(each for each in summarize(profile(trace(training()))).hot_ops if "sgemm" in each.name)
    assert (op.launched_by, op.family, op.category) == ("aten::mm", "matmul", "compute")
    assert op.shape_signature == "[[128,64],[64,32]]" and op.source_file == "train.py:12"
    assert op.flop_proxy_per_invocation == 2 * 128 * 64 * 32


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "attention"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32", "convolution"),
        ("Cijk_Ailk_Bljk_HHS_BH", "matmul"),
        ("void at::native::layer_norm_kernel", "normalization"),
        ("triton_poi_fused_add_0", "elementwise"),
        ("void cutlass::Kernel<cutlass::gemm::kernel::Gemm<float, cutlass::layout::NoPermute>>", "matmul"),
        ("void permute_kernel<float>", "layout"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::threshold_kernel_impl<float>::{lambda(float)#1}>", "elementwise"),
        ("void multi_tensor_apply_kernel<FusedAdam>", "optimizer"),
        ("mystery", "other"),
    ],
)
def test_families(name, expected):
    assert words.family((name,)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclDevKernel_AllGather_RING_LL", "all_gather"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_float", "reduce_scatter"),
        ("nccl:_all_gather_base", "all_gather"),
        ("all-reduce.12", "all_reduce"),
        ("void vllm::cross_device_reduce_1stage<__half, 2>", "all_reduce"),
        ("record_param_comms", None),
        ("gemm", None),
    ],
)
def test_collectives_by_name(name, expected):
    assert words.collective(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("copy.564", "copy"),
        ("fusion.12.remat3", "fusion"),
        ("void at::native::elementwise_kernel<128, 4, foo<bar<int>>>(int, foo)", "at::native::elementwise_kernel"),
        ("triton_red_fused_add_mean_0", "triton_red_fused_add_mean"),
    ],
)
def test_canonical_names(name, expected):
    assert words.canonical(name) == expected


def test_candidates_name_findings_and_knobs_that_diagnose_knows():
    answers = {knob.name: knob.answers for knob in knobs.catalogue()}
    made = [
        summarize(profile(trace(events)))
        for events in (training(), training(loading=21), exposed_copies(), [work("gemm", 0, 100), work("nchwToNhwcKernel", 100, 100)])
    ]
    found = [each for summary in made for each in summary.optimization_candidates]
    assert {"data_loading", "pageable_copies", "layout"} <= {each.candidate_id for each in found}
    for each in found:
        assert each.finding in (*REPORTED, *TRACED), "trainflash explain knows it"
        assert all(each.finding in answers[name] for name in each.knobs), (each.candidate_id, each.knobs)
    text = Path(candidates.__file__).read_text(encoding="utf-8")
    assert {name for name in KINDS if f'"{name}"' in text} <= {*REPORTED, *TRACED}


def exposed_copies():
    return [work("Memcpy HtoD (Pageable -> Device)", at, 50, kind=Kind.MEMCPY, bytes=500_000) for at in range(0, 1000, 100)]


def test_quality_is_said():
    bad = Quality(
        total_events=1_000_000, complete_events=2, truncated=True, cut_at=10, unparsed=3, event_cap=1_000_000, notes=("odd names",)
    )
    seen = summarize(profile(trace([work("gemm", 0, 10), work("gemm", 20, 10)], quality=bad))).trace_overview
    assert seen.suspected_truncation and seen.num_events_total == 1_000_000
    assert any("cut short" in each for each in seen.quality_warnings) and any("cap" in each for each in seen.quality_warnings)
    clean = summarize(profile(trace([work("gemm", 0, 10)]))).trace_overview
    assert not clean.suspected_truncation


def test_readability_runs_are_marked():
    flags = {"XLA_FLAGS": "--xla_foo=1 --xla_gpu_enable_command_buffer=''"}
    marked = summarize(profile(trace([work("gemm", 0, 10)], provenance=flags))).trace_provenance
    assert marked.readability_run and marked.xla_flags == flags["XLA_FLAGS"]
    assert summarize(profile(trace([work("gemm", 0, 10)])), Options(readability_run=True)).trace_provenance.readability_run
    assert not summarize(profile(trace([work("gemm", 0, 10)], provenance={"XLA_FLAGS": "--xla_foo=1"}))).trace_provenance.readability_run


def test_nothing_to_look_at_is_bad_input():
    with pytest.raises(UsageError, match="its list of events is empty"):
        summarize(profile(trace([])))


def test_summaries_survive_their_file():
    summary = summarize(ranks(training(), training(loading=21)))
    again = from_plain(ProfileSummary, json.loads(dump_json(summary)))
    assert again == summary and digest(to_plain(again)) == summary.digest


def test_order_of_events_path_and_time_change_no_figure():
    events = training()
    shuffled = events.copy()
    random.Random(5).shuffle(shuffled)
    one = summarize(profile(trace(events), origin="/a/b.json"), generated_at_utc="2026-01-01T00:00:00Z")
    other = summarize(profile(trace(shuffled), origin="/c.json.gz"), generated_at_utc="2026-02-02T00:00:00Z")
    assert one.digest == other.digest
    kept = [{**to_plain(each), "generated_at_utc": "", "source_path": ""} for each in (one, other)]
    assert kept[0] == kept[1]
    assert summarize(profile(trace(training(loading=301)))).digest != one.digest


PROGRAM = """
import sys
sys.path[:0] = {paths!r}
from profile_scenarios import ranks, training
from trainflash.profile.analysis.build import summarize
from trainflash.profile.compare import compare
from trainflash.report import profiles
from trainflash.schema import KINDS, dump_json
before, after = summarize(ranks(training(), training(loading=200))), summarize(ranks(training(loading=21), training(loading=22)))
print(dump_json(before), dump_json(compare(before, before)), dump_json(compare(before, after)), profiles.markdown(before))
"""


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_the_same_bytes_whatever_the_hash_seed():
    here = Path(__file__).resolve().parent
    code = PROGRAM.format(paths=[str(here)])
    seen = set()
    for seed in range(20):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": "1"}
        seen.add(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
    assert len(seen) == 1 and len(seen.pop()) > 10_000


def test_identity_of_ranks():
    traces = [trace(training(), identity=Identity(rank=rank, world_size=4)) for rank in (2, 0)]
    assert [each.rank for each in summarize(profile(*traces)).ranks] == [2, 0]
    twice = [trace(training(), identity=Identity(rank=0)), trace(training(), identity=Identity(rank=0))]
    assert [each.rank for each in summarize(profile(*twice)).ranks] == [0, 1]
