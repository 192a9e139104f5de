"""A slimmed trace is summarized to the same figures, from whatever format; and is smaller."""

from __future__ import annotations

import io
import json

import profile_traces as made
import pytest
from test_profile_readers import pftrace, rocprof

from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Profile
from trainflash.profile.slimming import write_slim
from trainflash.profile.sources import Request, load
from trainflash.profile.sources.files import read_stream
from trainflash.schema import to_plain
from trainflash.workflow import exporting

SAME = (
    "step_time", "time_breakdown", "overlap", "idle", "devices", "hot_ops", "host_ops", "semantic_families", "copies", "launches",
    "cuda_graphs", "communication_ops", "gap_before_ops", "hierarchical_regions", "source_sites", "op_totals",
)  # fmt: skip


def figures(profile):
    plain = to_plain(summarize(profile))
    return {name: plain[name] for name in SAME}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("trace.json", made.text(made.kineto(steps=3, rank=1))),
        ("results.json", json.dumps(rocprof()).encode()),
        ("trace.pftrace", pftrace()),
    ],
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_slimmed_trace_has_the_same_figures(tmp_path, name, data, packed):
    trace = read_stream(io.BytesIO(data), name)
    written = write_slim(tmp_path / f"slim.json{packed}", trace)
    again = load(Request(trace_file=(tmp_path / f"slim.json{packed}",)))
    assert figures(again) == figures(Profile((trace,), name))
    assert written.events == len(trace.events) == len(again.traces[0].events)
    assert (again.traces[0].events.start_ns == trace.events.start_ns).all()
    assert again.traces[0].identity.rank == trace.identity.rank


def test_ranks_get_a_file_each_and_stay_ranks(tmp_path):
    traces = [read_stream(io.BytesIO(made.text(made.kineto(steps=3, rank=rank))), f"rank{rank}.json") for rank in (0, 1)]
    before = Profile(tuple(traces), "somewhere")
    files = exporting.slim(before, tmp_path / "slim.json.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slim-rank0.json.gz", "slim-rank1.json.gz"]
    again = load(Request(profile_dir=tmp_path))
    assert figures(again) == figures(before) and [each.rank for each in files] == [0, 1]


def test_what_nobody_reads_is_gone(tmp_path):
    data = made.text(made.kineto(steps=3))
    written = write_slim(tmp_path / "slim.json", read_stream(io.BytesIO(data), "trace.json"))
    assert b'"grid"' in data and '"grid"' not in (tmp_path / "slim.json").read_text()
    assert written.bytes < len(data)
