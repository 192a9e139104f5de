"""What an expert would say first, and what never: launches that hide nothing, first uses, uploads, kernels in full precision."""

from __future__ import annotations

import pytest
from profile_scenarios import call, host, launched, profile, step, trace, work

from trainflash.profile.analysis import words
from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Kind


def told(events, **given):
    """(finding → candidate, in order; cause → µs)."""
    summary = summarize(profile(trace(events, **given)))
    idle = {each.cause: each.total_us for each in summary.idle.causes} if summary.idle else {}
    first = {}
    for each in summary.optimization_candidates:
        first.setdefault(each.finding, each)
    return first, idle, summary


def named(name):
    return {"deviceProperties": [{"id": 0, "name": name}]}


def copied(way, at, duration, correlation, size=1 << 20):
    return [
        call("cudaMemcpyAsync", at, duration, correlation),
        work(f"Memcpy {way}", at + 1, duration - 1, correlation, kind=Kind.MEMCPY, bytes=size),
    ]


# Launches


def test_a_launch_that_comes_too_late_to_hide_its_own_latency_is_not_queued():
    """Each call begins 5 µs before the device runs dry, and its kernel 25 µs after the call."""
    events = []
    for n in range(50):
        events += launched("gemm", n * 100 + 95, n * 100 + 120, 80, n + 1, call_us=4)
    _, idle, _ = told(events)
    assert idle["launch_bound"] == pytest.approx(49 * 20, abs=30) and "queued" not in idle


def test_what_was_launched_long_before_is_queued_from_the_gap_s_begin():
    events = []
    for n in range(50):
        events += launched("gemm", n, 200 + n * 100, 80, n + 1, call_us=0.5)
    _, idle, _ = told(events)
    assert idle["queued"] == pytest.approx(49 * 20 + 199.5, abs=1)


def test_operators_that_are_dispatched_one_by_one_are_launch_overhead_not_other_work():
    """3 ms without a call in each step: 150 views of 20 µs; or one operator on the host."""
    for operators, finding in (([("aten::view", 20)] * 150, "launch_overhead"), ([("aten::sort", 3_000)], "host_code")):
        events, correlation = [], 1
        for n in range(6):
            at = n * 5_000
            events.append(step(5 + n, at, 5_000))
            for name, length in operators:
                events.append(host(name, at, length))
                at += length
            events += launched("gemm", at, at + 10, 1_900, correlation)
            correlation += 1
        assert next(iter(told(events)[0])) == finding


@pytest.mark.parametrize(("streams", "findings"), [(("7",), ["launch_overhead"]), (("7", "8"), ["stream_wait"])])
def test_a_device_of_one_stream_waits_for_no_other(streams, findings):
    """Queued kernels 40 µs apart: the driver's own pace where there is one stream, else perhaps another stream's event."""
    events = []
    for n in range(60):
        events += launched("gemm", n, 1000 + n * 100, 60, n + 1, call_us=0.5, stream=streams[n % len(streams)])
    assert list(told(events)[0]) == findings


def test_late_launches_and_pauses_between_queued_kernels_are_one_advice():
    events = []
    for n in range(40):
        events += launched("gemm", n, 1000 + n * 100, 60, n + 1, call_us=0.5)
    for n in range(40, 80):
        events += launched("gemm", 1000 + n * 100 - 10, 1000 + n * 100, 60, n + 1)
    found, idle, summary = told(events)
    together = idle["launch_bound"] + idle["queued"]
    assert list(found) == ["launch_overhead"] and len(summary.optimization_candidates) == 1
    assert found["launch_overhead"].share == pytest.approx(together / summary.time_breakdown.window_us, abs=0.001)


# Start-up


def test_where_the_device_is_set_up_in_the_trace_all_that_is_shorter_is_a_first_use():
    """The context takes 200 ms; then the device works for 2 ms, with waits for events in between, as cuDNN tries its algorithms."""
    events = [call("cudaMalloc", 0, 200_000)]
    for n in range(10):
        at = 200_010 + n * 200
        events += [*launched("conv", at, at + 10, 40, n + 1), call("cudaEventSynchronize", at + 20, 100)]
    found, idle, _ = told(events)
    assert list(found) == ["startup"] and set(idle) == {"startup"}


def test_after_a_short_setting_up_a_run_is_judged_as_one():
    events = [call("cudaMalloc", 0, 200_000)]
    for n in range(1000):
        at = 200_010 + n * 400
        events += launched("conv", at, at + 10, 100, n + 1)
    assert next(iter(told(events)[0])) == "launch_overhead"


def test_what_a_short_window_waits_for_before_its_first_work_is_no_advice():
    """0.4 ms of host before 6 ms of work without a gap: one inference that is busy."""
    events = [host("ExecutionContext::execute", 0, 500)]
    for n in range(60):
        events += launched("conv", 380 + n, 400 + n * 100, 100, n + 1, call_us=0.5)
    found, _, _ = told(events)
    assert list(found) == ["compute"] and found["compute"].share > 0.98


def test_what_is_left_beside_start_up_is_told_behind_it():
    """One load of 60 ms, then 40 ms in which nothing computes beside all-reduces."""
    events = [call("cudaLaunchKernel", 10, 60_000, 1), work("gemm", 60_020, 100, 1)]
    for n in range(20):
        at = 60_200 + n * 2_000
        events += launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at - 60, at, 1_800, 2 * n + 2)
        events += launched("gemm", at - 50, at + 1_800, 190, 2 * n + 3)
    events = [*launched("gemm", 0, 5, 3, 999), *events]
    assert list(told(events)[0])[:2] == ["startup", "communication"]


def test_a_few_launches_without_any_work_of_a_device_are_explained():
    events = [host("aten::square", 0, 100), call("cudaLaunchKernel", 10, 20, 1), call("cudaLaunchKernel", 40, 20, 2)]
    assert any("have no kernel in the trace" in each for each in told(events)[2].trace_overview.quality_warnings)


# Batches

LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_a_batch_that_is_fetched_before_the_first_work_belongs_to_the_window():
    """One batch takes 60 ms, moving the model 20, its forward 10."""
    events = [host(LOADING, 5_000, 60_000, kind=Kind.ANNOTATION), host("aten::randperm", 0, 100)]
    for n in range(100):
        events += launched("gemm", 85_000 + n, 85_010 + n * 100, 100, n + 1, call_us=0.5)
    found, idle, _ = told(events)
    assert idle["data_loading"] == pytest.approx(60_000, rel=0.01) and idle["startup"] == pytest.approx(20_010, rel=0.01)
    assert next(iter(found)) == "input_cpu" and "startup" in found


def test_without_device_and_steps_the_fetching_of_batches_is_told():
    events = [host(LOADING, 0, 800, kind=Kind.ANNOTATION), host("aten::mm", 800, 200)]
    found = told(events)[0]["input_cpu"]
    assert found.share == pytest.approx(0.8, abs=0.01) and found.knobs == ("dataloader_workers",)


# Copies


def test_weights_that_are_loaded_once_are_no_batches():
    """20 copies before the first step of a window without marks, then none; the same copies all over it."""
    for apart, recurs in ((100, False), (2_000, True)):
        events = []
        for n in range(20):
            events += copied("HtoD (Pageable -> Device)", n * apart, 90, n + 1)
        for n in range(400):
            at = 2_000 + n * 100 if not recurs else n * 100 + (90 if n % 20 == 0 else 0)
            events += launched("gemm", at - 40, at, 95 if at % 100 == 0 else 5, 100 + n)
        found, _, summary = told(events)
        assert next(each for each in summary.copies if each.direction == "H2D").recurs is recurs
        assert ("h2d" in found) is recurs


@pytest.mark.parametrize(("parameters", "window_us"), [(20, 40_000), (4, 60_000)], ids=["a model", "a batch"])
def test_a_window_without_marks_begins_where_a_model_that_was_brought_to_the_device_computes(parameters, window_us):
    events = []
    for n in range(parameters):
        events += copied("HtoD (Pageable -> Device)", n * 20_000 // parameters, 900, n + 1)
    for n in range(400):
        events += launched("gemm", 19_960 + n * 100, 20_000 + n * 100, 95, 100 + n)
    assert told(events)[2].time_breakdown.window_us == pytest.approx(window_us, rel=0.01)


def test_a_copy_in_one_step_of_several_does_not_recur_and_one_step_tells_nothing():
    for steps, every, recurs in ((6, 1, True), (6, 99, False), (1, 1, None)):
        events = []
        for n in range(steps):
            at = n * 1_000
            events.append(step(7 + n, at, 1_000))
            events += launched("gemm", at, at + 10, 700, 10 * n + 1)
            if n % every == 0:
                events += copied("HtoD (Pageable -> Device)", at + 720, 200, 10 * n + 2)
        assert next(each for each in told(events)[2].copies if each.direction == "H2D").recurs is recurs


# Kernels


def busy(*kernels):
    """Queued kernels without a gap: (name, operator, µs)."""
    events, at = [], 10.0
    for number, (name, operator, length) in enumerate(kernels * 10):
        events += [host(operator, number * 10, 9), *launched(name, number * 10 + 1, at + 100, length, number + 1)]
        at += length
    return events


def test_a_busy_device_that_multiplies_in_full_precision_is_told_so_first():
    found, _, _ = told(busy(("ampere_sgemm_128x64_tn", "aten::mm", 700), ("vectorized_elementwise_kernel", "aten::add", 300)))
    assert list(found) == ["precision", "compute", "slow_operator"]


def test_where_full_precision_is_the_smaller_part_computing_stays_first():
    found, _, _ = told(busy(("ampere_sgemm_128x64_tn", "aten::mm", 200), ("vectorized_elementwise_kernel", "aten::add", 800)))
    assert next(iter(found)) == "compute" and "precision" in found


def test_fused_attention_in_32_bit_floats_counts_as_full_precision():
    kernels = [("fmha_cutlassF_f32_aligned_64x64_rf_sm80(Params)", "aten::_efficient_attention_forward", 500)]
    found, _, _ = told(busy(*kernels, ("ampere_bf16_s16816gemm_bf16_128x64", "aten::mm", 500)))
    assert found["precision"].share == pytest.approx(0.5, abs=0.02)


def test_a_ceiling_of_products_counts_what_is_not_known_as_gone():
    """Half of the time is in products whose operations are known: 2·1024³ take 6.9 µs at 312 TFLOP/s, the others nothing."""
    dims = "[[1024, 1024], [1024, 1024]]"
    events, at = [], 100.0
    for n in range(20):
        side = {"input_dims": dims} if n % 2 else {}
        name = "ampere_sgemm_128x64_tn" if n % 2 else "_5x_cudnn_volta_scudnn_128x32_relu_small_nn_v1"
        events += [host("aten::mm" if n % 2 else "aten::conv2d", n * 10, 9, **side), *launched(name, n * 10 + 1, at + 100, 200, n + 1)]
        at += 200
    found, _, _ = told(events, provenance=named("NVIDIA A100-SXM4-80GB"))
    assert found["precision"].ceiling_speedup == pytest.approx(1 / (1 - found["precision"].share * (1 - 10 * 6.883 / 4000)), rel=0.01)
    assert any("of their time this is known of: 50.0 %" in each for each in found["precision"].evidence)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("triton_poi_fused__unsafe_view_addmm_cat_clone_gelu_transpose_view_34", "elementwise"),
        ("triton_poi_fused_gelu_view_9", "elementwise"),
        ("triton_poi_fused_clone_transpose_3", "layout"),
        ("triton_per_fused_add_clone_native_layer_norm_transpose_0", "normalization"),
    ],
)
def test_a_fused_kernel_is_what_it_computes_not_what_it_moves(name, family):
    assert words.family([name]) == family


def test_channels_last_is_advised_where_there_are_convolutions_alone():
    for other, advised in (("ampere_bf16_gemm", False), ("cudnn_implicit_convolve", True)):
        found, _, _ = told(busy((other, "aten::x", 800), ("batched_transpose_16x32_half", "aten::contiguous", 200)))
        assert ("channels_last" in found["memory_format"].suggestions[0]) is advised


# The words of other frameworks and tools


def test_a_program_of_jax_is_told_of_jit_and_its_runtime_is_no_unknown_code():
    """XLA's runtime marks 4 ms of its own work before each launch, on another thread than the calls."""
    events = []
    for n in range(6):
        at = n * 5_000
        events.append(host("PjRtStreamExecutorLoadedExecutable::ExecuteHelper", at, 4_000, kind=Kind.ANNOTATION, thread="2"))
        events += launched("fusion", at + 4_000, at + 4_010, 900, n + 1)
    found, _, _ = told(events, source="xplane")
    assert list(found) == ["launch_overhead"]
    assert "jax.jit" in found["launch_overhead"].suggestions[0] and "torch" not in "".join(found["launch_overhead"].suggestions)


@pytest.mark.parametrize(("source", "word"), [("kineto", "torch.profiler"), ("nsys", "nsys profile"), ("xplane", "jax.profiler")])
def test_start_up_is_left_out_with_the_recorder_s_own_means(source, word):
    events = [call("cudaLaunchKernel", 0, 60_000, 1), work("gemm", 60_010, 100, 1)]
    assert word in told([*launched("gemm", -20, -10, 3, 9), *events], source=source)[0]["startup"].suggestions[0]


@pytest.mark.parametrize(("operator", "finding"), [("gloo:recv", "communication"), ("aten::conv2d", "compute")])
def test_what_takes_most_of_a_host_without_a_device_is_told_as_what_it_is(operator, finding):
    found, _, _ = told([host(operator, 0, 900), host("aten::add", 900, 50)])
    assert list(found) == [finding]
