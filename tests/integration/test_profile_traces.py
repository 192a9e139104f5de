"""Real traces of GPUs with known answers (see the README beside them): every figure is reproduced, through the command line too."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from trainflash.cli import main
from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.compare import compare
from trainflash.profile.sources import Request, load

TRACES = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
KINETO = TRACES / "kineto"
pytestmark = pytest.mark.skipif(not KINETO.is_dir(), reason=f"the public traces are not at {TRACES}")

WORKERS_0, WORKERS_4 = (f"resnet50_v100_workers{count}.json.gz" for count in (0, 4))
DLRM = "dlrm_8rank_v100.tar.gz"


@functools.cache
def decoded(name):
    return load(Request(trace_file=(KINETO / name,)))


@functools.cache
def summary(name, warmup=None):
    return summarize(decoded(name), Options(warmup_steps=warmup))


@pytest.mark.parametrize(
    ("name", "events", "kernels", "kernel_ms", "busy_ms", "span_ms"),
    [
        (WORKERS_0, 44_666, 8_772, 591.532, 603.558, 996.477),
        (WORKERS_4, 41_906, 8_868, 594.868, 614.413, 801.55),
        ("a100_nccl_3steps.json.gz", None, 2_700, 162.532, 157.500, 660.551),
        ("h100_bert_small.json.gz", None, 60, 0.307, None, None),
        ("torch_compile_triton.json.gz", None, 12, 12.549, 12.549, 12.549),
    ],
)
def test_counts_and_unions(name, events, kernels, kernel_ms, busy_ms, span_ms):
    seen = summary(name)
    (device,) = seen.devices
    assert events is None or seen.trace_overview.num_complete_events == events
    assert device.kernels == kernels and round(device.kernel_sum_us / 1000, 3) == kernel_ms
    assert busy_ms is None or round(device.busy_us / 1000, 3) == pytest.approx(busy_ms, abs=0.0011)
    assert span_ms is None or round(device.span_us / 1000, 3) == pytest.approx(span_ms, abs=0.0011)


@pytest.mark.parametrize(
    ("name", "step_ms", "loading_ms", "utilization"), [(WORKERS_0, 177.6, 59.3, 0.555), (WORKERS_4, 141.1, 1.2, 0.703)]
)
def test_resnet_steps_loading_and_utilization(name, step_ms, loading_ms, utilization):
    seen = summary(name, 0)
    assert round(seen.step_time.all_steps.mean / 1000, 1) == step_ms
    assert round(seen.devices[0].utilization, 3) == utilization
    assert seen.step_time.data_loading_mean_us / 1000 == pytest.approx(loading_ms, abs=0.06)


def test_nccl_time_of_one_rank():
    seen = summary("a100_nccl_3steps.json.gz")
    assert round(seen.devices[0].communication_sum_us / 1000, 3) == pytest.approx(46.876, abs=0.0011)
    assert sum(each.count for each in seen.communication_ops) == 21 and seen.step_time.all_steps.count == 3
    assert all(each.bus_bandwidth_gb_s > 0 and each.group_size == 2 and each.waiting_us is None for each in seen.communication_ops)


def test_triton_kernels_of_a_compiled_model():
    seen = summary("torch_compile_triton.json.gz")
    assert sum(op.count for op in seen.hot_ops if op.name.startswith("triton_")) == 4
    assert seen.step_time.basis == "none" and seen.optimization_candidates[0].finding == "compute"


def test_dlrm_waits_for_late_ranks():
    seen = summary(DLRM)
    figures = [5.798, 11.336, 3.492, 9.774, 6.587, 6.251, 3.558, 1.746]
    assert [round(each.communication_us / 1000, 3) for each in seen.ranks] == figures
    assert seen.alignment.collectives == 8 and seen.alignment.unmatched == 0 and seen.alignment.clock == "aligned"
    assert all(each.transfer_us == 217 for each in seen.ranks)
    assert seen.ranks[1].waiting_share >= 0.95
    assert 1 <= seen.alignment.end_spread_us <= 7 and seen.alignment.first_arrival_spread_us == 7624
    late = seen.alignment.stragglers[0]
    assert late.rank == 7 and late.last_to_arrive == 5 and [name.split()[1] for name in late.collectives] == ["1", "2", "3", "4", "5"]
    found = next(each for each in seen.optimization_candidates if each.finding == "rank_straggler")
    assert "Rank 7" in found.rationale and "communication" not in [each.finding for each in seen.optimization_candidates]


def test_resnet_pair_names_loading_then_says_that_it_is_gone():
    before, after = summary(WORKERS_0), summary(WORKERS_4)
    assert before.optimization_candidates[0].finding == "input_cpu" and "dataloader_workers" in before.optimization_candidates[0].knobs
    changed = compare(before, after, strict=True)
    assert "data_loading" in changed.findings_gone and "data_loading" not in [each.candidate_id for each in after.optimization_candidates]
    assert changed.step_time.speedup > 1.2 and changed.normalized_by == "step"


@pytest.mark.parametrize("name", [WORKERS_0, "a100_nccl_3steps.json.gz", "h100_bert_small.json.gz", DLRM])
@pytest.mark.parametrize("mode", ["exclusive_global", "exclusive_per_track"])
def test_exclusive_breakdowns_add_up_to_the_microsecond(name, mode):
    parts = summarize(decoded(name), Options(breakdown_mode=mode)).time_breakdown
    total = sum(getattr(parts, part).total_duration for part in ("compute", "communication", "copy", "host", "stall", "other"))
    assert abs(total - parts.total_duration) < 1


def test_modules_of_bert_are_regions():
    paths = [each.path for each in summary("h100_bert_small.json.gz").hierarchical_regions]
    assert any(path.endswith("BertEncoder_0/BertLayer_0/BertAttention_0") for path in paths)


def test_an_xplane_file():
    seen = summarize(load(Request(xplane_file=(TRACES / "xplane" / "mi300_jax_gemm.xplane.pb",))))
    assert seen.source_format == "xplane" and seen.devices and seen.devices[0].kernels > 0
    assert seen.hot_ops[0].family in {"matmul", "fused", "other"}


def run(capsys, *words):
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_pair_as_a_bundle_end_to_end(tmp_path, capsys):
    out, history = tmp_path / "bundle", tmp_path / "history.jsonl"
    code, made = run(
        capsys, "profile", "bundle", "--before-trace-file", KINETO / WORKERS_0, "--after-trace-file", KINETO / WORKERS_4,
        "--output-dir", out, "--history", history, "--label", "workers 4", "--strict-provenance",
    )  # fmt: skip
    assert (
        code == 0
        and made["status"] == "ok"
        and made["result"] == "pass"
        and any("gone: The device waits for batches" in each for each in made["said"])
    )
    assert sorted(path.name for path in out.iterdir()) == sorted(["bundle.json", *made["files"].values()])
    code, answer = run(capsys, "profile", "query", "--summary", out / "before.json", "--question", "What should we try next?")
    assert code == 0 and answer["results"][0]["finding"] == "input_cpu"
    code, back = run(capsys, "profile", "track", "--before", out / "after.json", "--after", out / "before.json", "--history", history)
    assert code == 4 and back["status"] == "rejected" and back["result"] == "fail"
    code, found = run(capsys, "profile", "history", "--history", history, "--output", tmp_path / "history.html")
    assert code == 0 and found["status_counts"] == {"fail": 1, "pass": 1} and "<svg" in (tmp_path / "history.html").read_text()
    assert "data loading" in (out / "comparison.md").read_text() and "<svg" in (out / "comparison.html").read_text()
