"""Causes and advice that a reader of traces would sign: what is queued, what is start-up, which copies count, what is a bound."""

from __future__ import annotations

import pytest
from profile_scenarios import call, flat, host, launched, profile, step, trace, work

from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Kind


def causes(summary):
    return {each.cause: each.total_us for each in summary.idle.causes}


def findings(summary):
    return {each.finding: each for each in summary.optimization_candidates}


def steady(steps=4, kernels=8, *, length=10_000, first=1):
    """Steps of short kernels, one after another, each launched in time."""
    events, correlation = [], 1000
    for number in range(steps):
        begin = number * length
        events.append(step(number + first, begin, length))
        for place in range(kernels):
            at = begin + place * length / kernels
            events += launched("gemm", at, at + 10, length / kernels - 20, correlation)
            correlation += 1
    return events


def copied(name, call_at, call_us, start, duration, correlation, size):
    """A copy and the call that made it."""
    return [
        call("cudaMemcpyAsync", call_at, call_us, correlation),
        work(name, start, duration, correlation, kind=Kind.MEMCPY, bytes=size),
    ]


def test_what_was_launched_before_is_queued_whatever_the_host_does_meanwhile():
    """In each step the host stands in a copying call of a few bytes for 6 ms; the next kernel was launched before."""
    events = []
    for n in range(6):
        at = n * 10_000
        events.append(step(5 + n, at, 10_000))
        events += launched("gemm", at, at + 10, 2_000, 3 * n + 1) + launched("gemm", at + 20, at + 8_000, 1_990, 3 * n + 2)
        events += copied("Memcpy HtoD (Pageable -> Device)", at + 2_000, 6_000, at + 9_992, 1, 3 * n + 3, 4096)
    summary = summarize(profile(trace(events)))
    assert causes(summary)["queued"] == pytest.approx(6 * 5_990, rel=0.01)
    assert summary.optimization_candidates[0].finding == "stream_wait" and "h2d" not in findings(summary)


def test_work_launched_in_mid_gap_is_queued_from_its_call_on():
    events = flat(launched("gemm", 0, 10, 100, 1), launched("gemm", 300, 5_000, 100, 2))
    found = causes(summarize(profile(trace(events))))
    assert found["queued"] == 5_000 - 305 and found["launch_bound"] == pytest.approx(10 + 195)


def test_a_copy_explains_no_more_than_its_bytes_take():
    """1 MB to the device stages for 1 ms at a slow host's rate; the call blocks for 5."""
    events = []
    for n in range(6):
        at = n * 10_000
        events += [step(5 + n, at, 10_000), host("aten::to", at + 10, 5_100)]
        events += copied("Memcpy HtoD (Pageable -> Device)", at + 20, 5_000, at + 4_900, 100, 2 * n + 1, 1_000_000)
        events += launched("gemm", at + 5_200, at + 5_210, 4_780, 2 * n + 2)
    assert causes(summarize(profile(trace(events))))["copy"] == pytest.approx(6_000, rel=0.01)


def test_a_read_of_a_result_is_a_sync_point():
    events = []
    for at in range(0, 10_000, 1000):
        events += launched("gemm", at, at + 10, 100, at + 1)
        events += copied("Memcpy DtoH (Device -> Pageable)", at + 20, 200, at + 210, 2, at + 2, 4)
        events.append(host("aten::item", at + 15, 210))
    summary = summarize(profile(trace(events)))
    assert summary.optimization_candidates[0].finding == "sync_point" and "h2d" not in findings(summary)


def test_a_first_use_is_start_up_and_no_advice_to_fuse():
    loading = flat(host("aten::conv2d", 5, 400_000), launched("first_conv", 100, 400_000, 100, 1, call_us=399_000))
    going = [launched("gemm", 401_000 + 200 * n, 401_010 + 200 * n, 180, n + 10) for n in range(50)]
    summary = summarize(profile(trace(flat(launched("fill", 0, 10, 5, 2), loading, *going))))
    assert [each.finding for each in summary.optimization_candidates] == ["startup"]
    assert summary.optimization_candidates[0].ceiling_speedup is None
    assert next(each for each in summary.idle.causes if each.cause == "startup").per_step_us is None


def test_one_stall_of_many_steps_is_none_of_their_parts():
    calm = steady(4, first=5)
    stalled = flat(step(9, 40_000, 60_000), host("aten::add", 41_000, 48_000), launched("gemm", 90_000, 90_010, 9_000, 1))
    summary = summarize(profile(trace(flat(calm, stalled))))
    assert "startup" in causes(summary)
    repeated = flat(
        *[[step(5 + n, n * 10_000, 10_000), *launched("gemm", n * 10_000 + 5_000, n * 10_000 + 5_010, 4_900, n + 1)] for n in range(6)]
    )
    assert "startup" not in causes(summarize(profile(trace(repeated))))


def test_without_steps_the_window_begins_with_the_first_work():
    events = flat(host("aten::empty", 0, 500_000), *[launched("gemm", 500_000 + n * 100, 500_010 + n * 100, 95, n + 1) for n in range(30)])
    summary = summarize(profile(trace([*events, host("stop_trace", 503_100, 90_000, kind=Kind.PYTHON)])))
    assert summary.time_breakdown.window_us < 4_000 and summary.optimization_candidates[0].finding == "compute"


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "h2d"),
        ("Memcpy DtoH (Device -> Pinned)", "h2d"),
        ("Memcpy DtoD (Device -> Device)", "slow_operator"),
        ("Memcpy PtoP (Device -> Device)", "communication"),
    ],
)
def test_exposed_copies_of_every_kind_are_found(name, finding):
    events = flat(
        *[
            [*launched("gemm", at, at + 10, 90, at + 1), *copied(name, at + 20, 2, at + 100, 890, at + 2, 50_000_000)]
            for at in range(0, 20_000, 1000)
        ]
    )
    first = summarize(profile(trace(events))).optimization_candidates[0]
    assert first.finding == finding and first.knobs == () and first.share == pytest.approx(0.89, abs=0.01)


def test_hidden_copies_are_told_and_are_no_finding():
    events = flat(
        steady(2, 4, first=5),
        *[copied("Memcpy HtoD (Pinned -> Device)", at, 2, at + 100, 800, at + 1, 1000) for at in range(0, 9000, 1000)],
    )
    events = [e if e.kind != Kind.MEMCPY else type(e)(**{**vars(e), "place": ("0", "22")}) for e in events]
    summary = summarize(profile(trace(events)))
    (copies,) = summary.copies
    assert copies.hidden_us > 20 * copies.exposed_us and "h2d" not in findings(summary)


def products(device, name="ampere_sgemm_128x64_tn", **side):
    """A step full of one product of 32-bit floats, 4096³."""
    events = []
    for n in range(20):
        events.append(host("aten::mm", n * 8000, 20, input_dims="[[4096, 4096], [4096, 4096]]", **side))
        events += launched(name, n * 8000 + 5, n * 8000 + 10, 7900, n + 1)
    return summarize(profile(trace(events, provenance={"deviceProperties": [{"id": 0, "name": device}]})))


def test_the_ceiling_of_full_precision_follows_from_shapes_and_the_cards_peak():
    found = findings(products("NVIDIA A100-SXM4-80GB"))["precision"]
    least = 2 * 4096**3 / 312e12 * 1e6
    assert found.ceiling_speedup == pytest.approx(1 / (1 - found.share * (1 - least / 7900)), rel=0.01)
    unknown = findings(products("Some Card 9000"))["precision"]
    assert unknown.ceiling_speedup is None or unknown.ceiling_speedup >= 1 / (1 - unknown.share) - 0.01
    assert any("unknown" in each for each in unknown.evidence)


def test_no_tf32_for_cards_without_it():
    assert any("TF32" in each for each in findings(products("NVIDIA A100-SXM4-80GB"))["precision"].suggestions)
    for card in ("Tesla V100-SXM2-32GB", "Tesla T4", "AMD Instinct MI210"):
        said = findings(products(card))["precision"].suggestions
        assert said and not any("TF32" in each for each in said), card


@pytest.mark.parametrize(
    ("name", "single"),
    [
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
            True,
        ),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>", False),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", False),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int)", True),
        ("Cijk_Alik_Bljk_BBS_BH_MT256x224x64_MI16x16x16x1_SN", False),
        ("volta_sgemm_128x32_nt", True),
    ],
)
def test_products_of_32_bit_floats_by_name(name, single):
    assert ("precision" in findings(products("NVIDIA H100 80GB HBM3", name))) is single


def test_many_small_collectives_are_a_finding_of_their_own():
    events = []
    for n in range(4):
        events.append(step(n + 5, n * 10_000, 10_000))
        for place in range(80):
            at = n * 10_000 + place * 120
            events += launched("gemm", at, at + 10, 60, n * 1000 + place * 2 + 1)
            events += launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 20, at + 75, 40, n * 1000 + place * 2 + 2, stream="20")
    found = findings(summarize(profile(trace(events))))["communication"]
    assert found.candidate_id == "small_collectives" and any("bucket" in each for each in found.suggestions)


def test_the_profilers_own_stop_is_no_step():
    events = flat(steady(4, first=1), step(5, 40_000, 40))
    summary = summarize(profile(trace(events)))
    assert summary.step_time.all_steps.count == 4
    assert any("profiler stops" in each for each in summary.trace_overview.quality_warnings)


def test_launches_without_kernels_are_explained():
    calls = [call("cudaLaunchKernel", n * 10, 5, n + 1) for n in range(100)]
    captured = summarize(profile(trace([*calls, call("cudaStreamBeginCapture", 0, 1), *launched("fill", 2000, 2010, 5, 900)])))
    assert any("captured into a graph" in each for each in captured.trace_overview.quality_warnings)
    assert [each.candidate_id for each in captured.optimization_candidates] == ["capture"]
    lost = summarize(profile(trace([*calls, host("aten::add", 0, 900)])))
    assert any("recorded calls, but not what ran" in each for each in lost.trace_overview.quality_warnings)


def test_a_trace_of_the_host_says_nothing_of_a_device():
    ops = [host("aten::convolution", n * 100, 90) for n in range(20)]
    optimizer = [host("Optimizer.step#SGD.step", 2000 + n * 900, 800) for n in range(3)]
    summary = summarize(profile(trace([*ops, *optimizer])))
    said = " ".join(text for each in summary.optimization_candidates for text in (each.title, each.rationale, *each.suggestions)).lower()
    assert said and "kernel" not in said and "the device" not in said


def test_ranges_with_running_numbers_are_one_region():
    events = []
    for n in range(50):
        events.append(host(f"record_param_comms, seq = {n}, op_id = {999_000 + n}", n * 100, 50, kind=Kind.ANNOTATION))
        events += launched("k", n * 100 + 5, n * 100 + 10, 20, n + 1)
    layers = [host(f"layer_{n}", 5000 + n * 100, 50, kind=Kind.ANNOTATION) for n in range(3)]
    regions = {each.path: each.count for each in summarize(profile(trace([*events, *layers]))).hierarchical_regions}
    assert regions["record_param_comms"] == 50 and {"layer_0", "layer_1", "layer_2"} <= set(regions)


def test_the_host_that_computes_between_launches_is_told_as_such():
    events = flat(
        *[[host("aten::normal_", at, 4_000), *launched("matmul", at + 4_010, at + 4_020, 5_900, at + 1)] for at in range(0, 60_000, 10_000)]
    )
    first = summarize(profile(trace(events))).optimization_candidates[0]
    assert first.finding == "host_code" and any("aten::normal_" in each for each in first.evidence)


@pytest.mark.parametrize(
    ("optimizer", "kernel", "knobs"),
    [
        ("SGD", "vectorized_elementwise_kernel", ("optimizer_fused", "optimizer_foreach")),
        ("AdamW", "multi_tensor_apply_kernel", ("optimizer_fused",)),
        ("RMSprop", "vectorized_elementwise_kernel", ("optimizer_foreach",)),
        ("Shampoo", "vectorized_elementwise_kernel", ()),
        ("Adam", "FusedAdamMathFunctor", ()),
    ],
)
def test_no_setting_is_advised_that_the_optimizer_lacks_or_has_already(optimizer, kernel, knobs):
    events = []
    for n in range(6):
        at = n * 10_000
        events += [step(5 + n, at, 10_000), host(f"Optimizer.step#{optimizer}.step", at, 8_000, kind=Kind.ANNOTATION)]
        for place in range(40):
            events += launched(kernel, at + place * 200, at + place * 200 + 10, 20, n * 100 + place + 1)
    assert findings(summarize(profile(trace(events))))["optimizer"].knobs == knobs


def test_pinning_is_advised_as_a_setting_only_where_there_is_a_loader():
    def run(*more):
        events = []
        for at in range(0, 20_000, 1000):
            events += launched("gemm", at, at + 10, 490, at + 1)
            events += copied("Memcpy HtoD (Pageable -> Device)", at + 20, 400, at + 500, 490, at + 2, 10**6)
        return findings(summarize(profile(trace([*events, *more]))))["h2d"].knobs

    assert run() == ()
    loading = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert run(host(loading, 1, 5)) == ("pin_memory",)


def test_what_lies_before_the_first_work_of_a_device_is_start_up():
    """Two devices of one process: the second begins 30 ms later, and never again waits so."""
    first = [launched("gemm", n * 1000, n * 1000 + 10, 980, n + 1) for n in range(50)]
    second = [launched("gemm", n * 1000 + 5, n * 1000 + 15, 980, n + 101, stream="9") for n in range(30, 50)]
    events = flat(*first, *second)
    events = [type(e)(**{**vars(e), "place": ("1", "9")}) if e.place == ("0", "9") else e for e in events]
    summary = summarize(profile(trace(events)))
    assert len(summary.devices) == 2 and causes(summary)["startup"] == pytest.approx(30_000, rel=0.01)


@pytest.mark.parametrize("stacks", [True, False])
def test_stacks_are_not_asked_for_where_the_trace_has_them(stacks):
    events = [launched("gemm", at, at + 10, 4_000, at + 1) for at in range(0, 60_000, 10_000)]
    frames = [host("torch/nn/modules/module.py(1779): _call_impl", at, 20, kind=Kind.PYTHON) for at in range(4_020, 60_000, 10_000)]
    (found,) = [
        each
        for each in summarize(profile(trace(flat(*events, frames if stacks else [])))).optimization_candidates
        if each.finding == "host_code"
    ]
    assert ("profile with stacks" in found.suggestions[0]) is not stacks
