"""Whatever is in a trace, a summary comes out, its parts add up, and it can be written, read, reported and compared."""

from __future__ import annotations

import json
import random

import pytest
from profile_scenarios import Event, profile, trace

from trainflash import report
from trainflash.errors import UsageError
from trainflash.profile import query
from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.compare import compare
from trainflash.profile.events import Identity, Kind, TrackKind
from trainflash.schema import dump_json, from_plain
from trainflash.schema.profiles import ProfileSummary

NAMES = (
    "gemm", "ncclDevKernel_AllReduce", "ncclDevKernel_SendRecv", "nccl:all_to_all", "Memcpy HtoD (Pageable -> Device)", "Memset (Device)",
    "copy.5", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaGraphLaunch", "aten::mm", "aten::item",
    "c10d::allreduce_",
    "enumerate(DataLoader)#X.__next__", "Optimizer.step#Adam.step", "ProfilerStep#3", "ProfilerStep#4", "nn.Module: A_0", "forward", "",
    "🙂 |<", "autograd::engine::evaluate_function: MmBackward0", "a/b/c", "void f<int>(int)",
)  # fmt: skip
TEXTS = {
    "collective": ["allreduce", "_allgather_base", "barrier", "unheard of"],
    "dtype": ["Float", "BFloat16", "Strange"],
    "group_ranks": ["[0, 1]", "[0]", ""],
    "input_dims": ["[[2,3],[3,4]]", "[]", "[[", "null", "[[1,[2]],3]"],
    "input_types": ['["float","float"]', "[]", "x"],
    "call_stack": ["train.py(3): f;torch/nn.py(9): g", ";;", ""],
    "scope": ["jit(f)/a/dot", "/", "", "a//b:"],
    "hlo_category": ["all-reduce", "convolution"],
}
NUMBERS = {
    **dict.fromkeys(("correlation", "external_id", "sequence", "forward_thread", "graph_node_id", "collective_sequence"), (-2, 6)),
    **dict.fromkeys(("in_elements", "out_elements"), (0, 10**9)),
    "step": (-1, 4),
    "bytes": (-1, 10**12),
    "group_size": (-1, 8),
}


def events(chance: random.Random) -> list[Event]:
    """Events that no sane tracer writes: any kind on any track with any side columns, overlapping, empty, without a time."""
    made = []
    for _ in range(chance.randint(0, 40)):
        side = {name: chance.choice(words) for name, words in TEXTS.items() if chance.random() < 0.3}
        side |= {name: chance.randint(*limits) for name, limits in NUMBERS.items() if chance.random() < 0.3}
        side |= {"flops": chance.random() * 1e15} if chance.random() < 0.1 else {}
        track = chance.choice(list(TrackKind))
        start = chance.choice([0, chance.randint(0, 300), chance.random() * 300])
        place = (chance.choice(["0", "1", "python", ""]), f"{chance.choice('17x')}{int(track)}")
        kind, duration = chance.choice(list(Kind)), chance.choice([0, chance.randint(0, 90)])
        made.append(Event(chance.choice(NAMES), kind, start, duration, place, side, chance.choice(["", "kernel"]), track))
    return made


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 2000), marks=pytest.mark.full)], ids=["60", "all"])
def test_any_trace_gives_a_sound_summary(seeds):
    for seed in seeds:
        chance = random.Random(seed)
        per_rank = [events(chance) for _ in range(chance.randint(1, 3))]
        check(per_rank, chance.choice(["exclusive_global", "exclusive_per_track", "inclusive"]), chance.choice([None, 0, 3]))


def check(per_rank, mode, warmup):
    traces = [trace(mine, identity=Identity(rank=place, world_size=len(per_rank))) for place, mine in enumerate(per_rank)]
    try:
        summary = summarize(profile(*traces), Options(mode, warmup))
    except UsageError as refused:
        assert "no event" in refused.message or "is empty" in refused.message
        return
    text = dump_json(summary)
    assert from_plain(ProfileSummary, json.loads(text)) == summary
    parts = summary.time_breakdown
    total = sum(getattr(parts, name).total_duration for name in ("compute", "communication", "copy", "host", "stall", "other"))
    if mode != "inclusive":
        assert abs(total - parts.total_duration) < 0.01
    if summary.idle:
        assert abs(sum(each.total_us for each in summary.idle.causes) - summary.idle.idle_us - (summary.idle.waiting_us or 0)) < 0.01
    for device in summary.devices:
        assert 0 <= device.kernel_busy_us <= device.busy_us <= device.span_us + 0.001
        assert device.kernel_busy_us <= device.kernel_sum_us + 0.001
    for op in (*summary.hot_ops, *summary.host_ops):
        assert -0.001 <= op.exclusive_duration <= op.total_duration + 0.001
    for rank in summary.ranks:
        assert rank.waiting_us is None or 0 <= rank.waiting_us <= rank.communication_us + 0.001
    if summary.overlap and summary.overlap.blocking_us is not None:
        assert summary.overlap.blocking_us <= summary.overlap.exposed_us + 0.001
    assert report.profiles.markdown(summary)
    for known in query.QUESTIONS:
        query.ask(summary, known.example)
    if not summary.trace_provenance.readability_run:
        same = compare(summary, summary)
        assert not same.changed and same.regressed_ops == same.improved_ops == ()
        assert report.profiles.markdown(same)
