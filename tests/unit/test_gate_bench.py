"""The benchmark's figures: statistics, operations and MFU, stalls, regions, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from trainflash.errors import Inconclusive, ProgramFailed, UsageError
from trainflash.gate.config import BenchConfig
from trainflash.gate.measure import counting, flops, metrics, peaks, program_bench, step_bench, traces, workload
from trainflash.gate.measure.bench import BenchTrain, _measurement
from trainflash.gate.measure.flops import Work
from trainflash.gate.measure.metrics import Measurement
from trainflash.schema import Accelerator, GateEnv, GateMetrics, Stall, StepTimes, from_plain, to_plain
from trainflash.workflow.gates import answers as gate_answers

PROGRAMS = Path(__file__).with_name("gate_workloads.py")
ENV = GateEnv(
    machine_profile="cpu-testx2_torch2.13", os="Linux", kernel="6", arch="x86_64", cpu="test", cpu_capability="AVX2", cores=2,
    cpu_budget=2.0, cpu_quota=None, memory_bytes=1 << 33, memory_limit_bytes=None, container=False, accelerators=(), driver=None,
    cuda=None, rocm=None, cudnn=None, nccl=None, python="3.11", torch="2.13", torch_commit=None, torch_threads=1, interop_threads=1,
    commit="c" * 40, dirty=False,
)  # fmt: skip
H100 = Accelerator("cuda", "NVIDIA H100 80GB HBM3", "sm90", 80 << 30)
STEPS = tuple(float(step) for step in range(10, 50))


def spec(name: str) -> str:
    return f"{PROGRAMS}:{name}"


def measurement(**changes) -> Measurement:
    base = Measurement(
        source="program",
        repeats=(StepTimes(STEPS, 1000, tuple((step, 3.0 - 0.01 * step) for step in range(0, 40, 4))),),
        processes=1,
        work=Work(tokens=512.0, parameters=1100, non_embedding=1000, multiplying=1000, attention=5e4),
        samples=8.0,
        device="cuda:NVIDIA H100 80GB HBM3",
        dtype="bfloat16",
        memory_of="device",
        tokens_from="the batches",
    )
    return replace(base, **changes)


def built(config: BenchConfig | None = None, env: GateEnv = ENV, **changes) -> GateMetrics:
    return metrics.build(measurement(**changes), config or BenchConfig(), env)


# --- defaults


def test_the_contract_of_the_config():
    config = BenchConfig()
    assert (config.warmup_steps, config.measure_steps, config.mode, config.world_size) == (200, 100, "e2e", 1)
    assert (config.profile, config.repeat, config.peak_tflops, config.mfu_estimator) == ("off", 1, None, "6ND")


@pytest.mark.parametrize(
    "wrong",
    [
        {"measure_steps": 0}, {"measure_steps": -1}, {"warmup_steps": -1}, {"repeat": 0}, {"world_size": 0}, {"world_size": -2},
        {"mode": "fast"}, {"profile": "yes"}, {"mfu_estimator": "7ND"}, {"peak_tflops": 0.0}, {"peak_tflops": math.nan},
        {"peak_tflops": math.inf}, {"measure_steps": 1.5}, {"measure_steps": True},
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_named(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        BenchTrain(BenchConfig(**wrong), spec("gpt"), env=ENV)


# --- figures


def test_throughput_comes_from_the_step_times():
    found = built()
    assert (found.step_time_p50_ms, found.step_time_mean_ms) == (29.5, 29.5)
    assert found.tokens_per_sec_p50 == pytest.approx(512 / 0.0295) and found.samples_per_sec_p50 == pytest.approx(8 / 0.0295)
    assert found.tokens_per_sec_p10 == pytest.approx(512 / (found.step_time_p90_ms / 1e3))
    assert found.tokens_per_sec_p10 < found.tokens_per_sec_p50


def test_all_processes_count():
    found = built(processes=4)
    assert (found.tokens_per_step, found.samples_per_step, found.world_size) == (2048, 32, 4)
    assert found.flops.per_step == 6 * 1000 * 2048


def test_given_tokens_win_and_are_said():
    found = built(tokens_given=100.0)
    assert (found.tokens_per_step, found.tokens_from, found.flops.per_step) == (100.0, "given", 6 * 1000 * 100)


def test_what_was_not_seen_is_none():
    found = built(work=Work(), samples=None, dtype=None, repeats=(StepTimes(STEPS),))
    absent = (
        "tokens_per_step",
        "tokens_from",
        "tokens_per_sec_p50",
        "samples_per_sec_p50",
        "memory_peak_bytes",
        "loss_slope",
        "mfu_p50",
        "stall",
    )
    assert {name: getattr(found, name) for name in absent} == dict.fromkeys(absent)
    assert any("--tokens-per-step" in note for note in found.notes)


def test_few_steps_have_no_percentile_and_it_is_said():
    found = built(repeats=(StepTimes(STEPS[:10]),))
    assert found.step_time_p90_ms is None and found.tokens_per_sec_p10 is None and any("too few for p90" in note for note in found.notes)


@pytest.mark.parametrize("steps", [(1.0, math.nan), (1.0, math.inf), (1.0, 0.0), (1.0, -2.0)])
def test_a_time_that_is_none_is_refused(steps):
    with pytest.raises(ProgramFailed):
        built(repeats=(StepTimes(steps),))


def test_no_step_and_no_finite_loss_never_make_a_document():
    with pytest.raises(Inconclusive):
        built(repeats=(StepTimes(()),))
    with pytest.raises(ProgramFailed, match="diverged"):
        built(repeats=(StepTimes(STEPS, None, ((3, math.nan),)),))


@given(st.floats(-1, 1), st.floats(-10, 10), st.integers(metrics.LEAST_FOR_SLOPE, 60))
@settings(max_examples=50, deadline=None)
def test_the_slope_of_a_line_is_its_slope(slope, start, count):
    losses = tuple((3 * step, start + slope * 3 * step) for step in range(count))
    assert metrics.slope([StepTimes(STEPS, None, losses)]) == pytest.approx(slope, abs=1e-9)


def test_few_losses_have_no_slope():
    assert metrics.slope([StepTimes(STEPS, None, ((0, 1.0), (1, 0.5)))]) is None


def test_the_document_round_trips():
    found = built(live_ms=((2.0, 2.1),) * 4, replayed_ms=((1.0, 1.1),) * 4)
    assert from_plain(GateMetrics, json.loads(json.dumps(to_plain(found)))) == found


# --- stalls


def test_a_stall_is_alerted_only_when_it_is_sure():
    steady = metrics.stall([(10.0, 10.1, 9.9)] * 6, [(5.0, 5.1, 4.9)] * 6)
    assert steady.alert and steady.share == pytest.approx(0.5, abs=0.01)
    assert not metrics.stall([(10.0,)] * 6, [(10.0,)] * 6).alert
    noisy = metrics.stall([(10.0,), (5.0,), (20.0,), (8.0,)], [(5.0,), (10.0,), (8.0,), (7.0,)])
    assert not noisy.alert and noisy.share_low < 0 < noisy.share_high


def test_a_stall_in_words():
    def said(low: float, high: float, alert: bool = False) -> str:
        found = replace(built(), stall=Stall(10.0, 9.0, 0.1, low, high, 0.05, alert))
        return next(line for line in gate_answers.bench_lines(found, Path("m.json")).splitlines() if line.startswith("stall"))

    assert "ALERT: 10.0% of a step" in said(0.06, 0.14, alert=True)
    assert "at most 4.0%" in said(-0.1, 0.04) and "not clear: between 0% and 90%" in said(-20.0, 0.9)


def test_few_blocks_say_nothing_about_stalls():
    assert metrics.stall([(10.0,)] * 3, [(5.0,)] * 3) is None and metrics.stall([], []) is None


# --- MFU


def test_mfu_of_an_h100():
    found = built(env=replace(ENV, accelerators=(H100,)))
    assert found.flops.peak_tflops == 989.4 and "NVIDIA" in found.flops.peak_source
    assert found.mfu_p50 == pytest.approx(6 * 1000 * 512 / 0.0295 / 989.4e12)


def test_a_given_peak_wins():
    found = built(BenchConfig(peak_tflops=100.0), replace(ENV, accelerators=(H100,)))
    assert (found.flops.peak_tflops, found.flops.peak_source) == (100.0, "given")


@pytest.mark.parametrize("name", ["NVIDIA Imaginary 9000", "NVIDIA A10G", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"])
def test_an_unknown_accelerator_has_no_mfu_and_it_is_said(name):
    found = built(env=replace(ENV, accelerators=(replace(H100, name=name),)))
    assert found.mfu_p50 is None and found.flops.achieved_tflops is not None
    assert any(name in note and "--peak-tflops" in note for note in found.notes)


def test_a_processor_has_no_peak():
    assert built(device="cpu", dtype="float32").mfu_p50 is None


def test_an_impossible_mfu_is_said():
    assert any("cannot be" in note for note in built(BenchConfig(peak_tflops=1e-9)).notes)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "bfloat16", 989.4), ("NVIDIA H100 PCIe", "bfloat16", 756.4), ("NVIDIA H100 NVL", "float16", 835.5),
        ("NVIDIA H200", "tfloat32", 494.7), ("NVIDIA A100-SXM4-80GB", "float32", 19.5), ("NVIDIA A100-PCIE-40GB", "bfloat16", 312.0),
        ("NVIDIA L4", "bfloat16", 121.0), ("NVIDIA L40S", "bfloat16", 362.05), ("NVIDIA L40", "bfloat16", 181.05),
        ("NVIDIA A10", "float16", 125.0),
        ("Tesla V100-SXM2-16GB", "float16", 125.0), ("Tesla V100-PCIE-32GB", "float16", 112.0),
        ("Tesla T4", "float16", 65.0),
        ("NVIDIA GeForce RTX 4090", "bfloat16", 165.2), ("NVIDIA B200", "bfloat16", 2250.0), ("AMD Instinct MI300X", "bfloat16", 1307.4),
        ("AMD Instinct MI250X", "bfloat16", 191.5), ("Tesla V100-SXM2-16GB", "bfloat16", None),
        ("NVIDIA GeForce RTX 4090 D", "bfloat16", None),
    ],
)  # fmt: skip
def test_the_registry(name, dtype, expected):
    found = peaks.peak(name, dtype)
    assert (found.tflops if found else None) == expected


def test_every_row_of_the_registry_names_its_source_and_is_dense():
    for board in peaks.BOARDS:
        assert any(maker in board.source for maker in ("NVIDIA", "AMD")), board.pattern
        assert set(board.rates) <= set(peaks.FORMATS.values())
        assert board.rates["fp32"] <= board.rates["fp16"]


def counted_by_torch(made) -> int:
    batch = next(iter(made.batches))
    with FlopCounterMode(display=False) as counter:
        made.loss(made.model(batch), batch).backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("tied", [False, True])
def test_the_transformer_aware_estimate_is_within_two_per_cent_of_torchs_count(tied):
    made = workload.load(spec("gpt"))(tied)
    batch = next(iter(made.batches))
    seen, attention, dtype = counting.count(lambda: made.loss(made.model(batch), batch), lambda value: value.backward())
    work = replace(counting.size(made.model), tokens=float(batch.numel()), attention=attention)
    estimate = flops.estimate(
        work, estimator="transformer_aware", processes=1, step_ms=(1.0, 1.0), accelerator=None, dtype=dtype, peak_tflops=1.0
    ).per_step
    assert seen == counted_by_torch(workload.load(spec("gpt"))(tied)) and dtype == "float32"
    assert estimate == pytest.approx(seen, rel=0.02)
    plain = flops.estimate(work, estimator="6ND", processes=1, step_ms=(1.0, 1.0), accelerator=None, dtype=dtype, peak_tflops=1.0).per_step
    assert plain < estimate and (not tied or plain < 0.9 * seen)  # 6ND leaves out attention, and the head that is an embedding


def test_fused_attention_on_a_processor_is_counted_too():
    made, plain = (workload.load(spec("gpt"))(False, fused) for fused in (True, False))
    batch = next(iter(made.batches))
    of_fused, of_plain = (
        counting.count(lambda each=each: each.loss(each.model(batch), batch), lambda value: value.backward())[1] for each in (made, plain)
    )
    assert of_fused == of_plain > 0


def test_parameters_are_counted_once_and_by_kind():
    made, tied = (counting.size(workload.load(spec("gpt"))(each).model) for each in (False, True))
    head = 96 * 32
    assert made.parameters - tied.parameters == head
    assert made.parameters - made.non_embedding == (96 + 32) * 32
    assert tied.multiplying == made.multiplying  # the shared matrix multiplies


# --- a step function, measured


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("profile")
    config = BenchConfig(warmup_steps=2, measure_steps=40, profile="trace", mfu_estimator="transformer_aware", peak_tflops=1.0)
    bench = BenchTrain(config, spec("gpt"), profile_dir=folder, env=ENV)
    return bench, bench.run(), folder


def test_a_step_function(measured, tmp_path):
    bench, found, _ = measured
    assert (found.tokens_per_step, found.samples_per_step, found.source, found.memory_of) == (64, 2, "step_function", "host")
    assert len(found.repeats[0].step_ms) == 40 and min(found.repeats[0].step_ms) > 0
    assert found.memory_peak_bytes > 1 << 20 and found.loss_slope < 0 and 0 < found.mfu_p50 < 1
    assert found.flops.per_step == pytest.approx(found.flops.counted_per_step, rel=0.02)
    assert found.stall is not None
    bench.save(tmp_path / "metrics.json")
    assert from_plain(GateMetrics, json.loads((tmp_path / "metrics.json").read_text())) == found


def test_its_traces_hold_all_six_regions(measured):
    _, found, folder = measured
    assert found.regions == step_bench.REGIONS
    names = [path.name for path in folder.iterdir()]
    assert names and all(name.endswith(".pt.trace.json") for name in names)  # what TensorBoard's plugin looks for


def test_accumulation_counts_every_batch():
    found = BenchTrain(BenchConfig(warmup_steps=0, measure_steps=2), spec("accumulating"), env=ENV).run()
    assert found.tokens_per_step == 128 and found.flops.counted_per_step == 2 * counted_by_torch(workload.load(spec("gpt"))())


def test_replayed_batches():
    found = BenchTrain(BenchConfig(warmup_steps=1, measure_steps=6, mode="synthetic"), spec("gpt"), env=ENV).run()
    assert found.mode == "synthetic" and found.step_time_p50_ms > 0


def test_a_whole_step_of_the_owners_is_timed_and_said_to_be_opaque():
    found = BenchTrain(BenchConfig(warmup_steps=0, measure_steps=2), spec("whole_step"), env=ENV).run()
    assert found.flops.counted_per_step is None and any("whole step" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("diverging", ProgramFailed, "loss is nan"), ("without_loss", UsageError, "no loss"),
        ("without_batches", ProgramFailed, "end at once"),
        ("no_workload", UsageError, "not Workload"), ("nothing_here", UsageError, "has no function"),
    ],
)  # fmt: skip
def test_a_wrong_workload_is_told_plainly(name, error, said):
    with pytest.raises(error, match=said):
        BenchTrain(BenchConfig(warmup_steps=1, measure_steps=2), spec(name), env=ENV).run()


@pytest.mark.parametrize("text", ["nocolon", "missing.py:f", "not_a_module_at_all:f"])
def test_a_workload_that_cannot_be_found(text):
    with pytest.raises(UsageError):
        workload.load(text)


def test_a_closure_cannot_train_on_several_processes():
    with pytest.raises(UsageError, match="other processes"):
        BenchTrain(BenchConfig(world_size=2), lambda: None, env=ENV).run()


# --- world size


def test_fewer_accelerators_than_processes():
    env = replace(ENV, accelerators=(H100,))
    with pytest.raises(UsageError, match="1 accelerator"):
        metrics.world_size(BenchConfig(world_size=2), env)
    assert metrics.world_size(BenchConfig(world_size=-1), replace(ENV, accelerators=(H100,) * 8)) == 8
    assert metrics.world_size(BenchConfig(world_size=2), ENV) == 2  # processes of a machine without any share its cores


def test_scaling_efficiency():
    one, two = built(), built(processes=2)
    found = metrics.scaling(one, two)
    assert (found.world_size, found.unit) == (2, "tokens") and found.efficiency == pytest.approx(1.0)
    nothing = built(work=Work(), samples=None)
    assert metrics.scaling(nothing, nothing).efficiency is None


def test_how_a_program_is_started_on_several_processes():
    start = program_bench.with_processes
    expected = ("python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py", "--lr", "1")
    assert start(["python", "train.py", "--lr", "1"], 2) == expected
    assert start(["torchrun", "--nproc-per-node", "4", "train.py"], 1) == ("torchrun", "--nproc-per-node=1", "train.py")
    assert start(["torchrun", "--nproc_per_node=4", "train.py"], 2) == ("torchrun", "--nproc-per-node=2", "train.py")
    assert start(expected, 1)[4] == "--nproc-per-node=1"
    with pytest.raises(UsageError, match=r"run\.sh"):
        start(["./run.sh"], 2)


# --- timed runs of unmodified programs


def ran(*walls_ms: list[float]) -> Any:
    ranks = [SimpleNamespace(rank=rank, wall_ns=np.array(walls) * 1e6) for rank, walls in enumerate(walls_ms)]
    return SimpleNamespace(ranks=ranks)


def test_of_several_ranks_each_steps_slowest_counts(tmp_path):
    found = program_bench.timed(ran([9.0, 1.0, 2.0, 3.0], [9.0, 2.0, 1.0, 4.0, 5.0]), tmp_path, 1, 10, losses=True)
    assert found.step_ms == (2.0, 2.0, 4.0) and found.losses == ()


def test_losses_are_those_of_measured_steps_of_the_first_rank(tmp_path):
    lines = [
        {"rank": rank, "step": step, "forwards": 1, "samples": 1, "elements": 1, "backwards": 1, "losses": [float(step).hex()]}
        for rank in (0, 1)
        for step in range(6)
    ]
    (tmp_path / "work-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    walls = [1.0] * 6
    assert program_bench.timed(ran(walls), tmp_path, 2, 3, losses=True).losses == ((0, 2.0), (1, 3.0), (2, 4.0))
    assert program_bench.timed(ran(walls), tmp_path, 2, 3, losses=False).losses == ()


def test_a_program_that_ends_in_its_warm_up_is_not_measured(tmp_path):
    with pytest.raises(UsageError, match="2 steps, and 2 of them are warm-up"):
        program_bench.timed(ran([1.0, 1.0]), tmp_path, 2, 10, losses=True)


# --- traces of unmodified programs


def test_regions_and_operations_of_a_trace(tmp_path):
    step = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "name": "ProfilerStep#4", "ts": 0, "dur": 100}
    base = {"ph": "X", "pid": 1, "tid": 1}
    events = [
        step,
        {**base, "cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "ts": 1, "dur": 5},
        {**base, "cat": "cpu_op", "name": "aten::addmm", "ts": 10, "dur": 5, "args": {"Input Dims": [[4], [8, 16], [16, 4], []]}},
        {**base, "cat": "cpu_op", "name": "aten::bmm", "ts": 20, "dur": 5, "args": {"Input Dims": [[2, 8, 4], [2, 4, 8]]}},
        {**base, "cat": "cpu_op", "name": "autograd::engine::evaluate_function: BmmBackward0", "ts": 40, "dur": 20},
        {**base, "cat": "cpu_op", "name": "aten::bmm", "ts": 45, "dur": 5, "args": {"Input Dims": [[2, 8, 8], [2, 8, 4]]}},
        {**base, "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "ts": 70, "dur": 9},
        {**base, "cat": "cpu_op", "name": "aten::mm", "ts": 500, "dur": 5, "args": {"Input Dims": [[9, 9], [9, 9]]}},
    ]
    source, copy = tmp_path / "a.json", tmp_path / "out" / "b.json"
    source.write_text(json.dumps({"traceEvents": events}))
    found = traces.mark(source, copy)
    assert set(found.regions) == {"data", "optimizer_step", "backward"} and found.steps == 1
    product = 2 * 2 * 8 * 4 * 8
    assert (found.operations, found.attention) == (2 * 8 * 16 * 4 + 2 * product, product)
    written = {event["name"]: event for event in json.loads(copy.read_text())["traceEvents"]}
    assert (written["backward"]["ts"], written["backward"]["dur"]) == (40, 20)


def test_a_trace_that_is_none(tmp_path):
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(UsageError, match="is no trace"):
        traces.mark(tmp_path / "x.json", tmp_path / "y.json")


def test_blocks_of_a_measurement_stay_apart():
    one = step_bench.Measured([1.0] * 6, [], 10, "host", 2.0, Work(), None, "cpu", [[2.0], [2.0]], [[1.0], [1.0]])
    assert _measurement([one, one], 1, "steps.py:small").live_ms == ((2.0,),) * 4
