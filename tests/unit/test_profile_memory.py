"""Memory of a profile: allocator events of Kineto, and torch's snapshots."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from profile_scenarios import host, profile, trace

from trainflash.errors import UsageError
from trainflash.profile import query
from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Memory
from trainflash.profile.sources import Request, load
from trainflash.report import profiles


def allocating(*events, totals=True):
    """Operators, and (microseconds, bytes, allocated after, reserved) of one device on the thread of the operators."""
    made = trace([host("aten::mm", 0, 100), host("aten::empty", 10, 20), host("aten::relu", 200, 100), host("aten::empty", 210, 20)])
    rows = np.asarray(events, np.int64)
    none = np.full(len(rows), -1, np.int64)
    one = np.ones(len(rows), np.int32)
    memory = Memory(rows[:, 0] * 1000, rows[:, 1], rows[:, 2] if totals else none, rows[:, 3] if totals else none, one, one * 0, one * 0)
    return summarize(profile(replace(made, memory=memory)))


EVENTS = ((15, 600, 1600, 3000), (50, -200, 1400, 3000), (215, 800, 2200, 4000), (250, -100, 2100, 4000))


def test_peak_growth_fragmentation_and_the_op_that_asked():
    (use,) = allocating(*EVENTS).memory
    assert (use.peak_bytes, use.start_bytes, use.growth_bytes, use.reserved_peak_bytes) == (2200, 1000, 1100, 4000)
    assert use.fragmentation == 0.45 and use.peak_op == "aten::relu" and use.device == "device 0"
    assert [(op.name, op.allocated_bytes, op.count) for op in use.ops] == [("aten::relu", 800, 1), ("aten::mm", 600, 1)]


def test_without_totals_what_was_there_before_is_not_known():
    (use,) = allocating(*EVENTS, totals=False).memory
    assert use.start_bytes is None and use.peak_bytes == 1200 and use.reserved_peak_bytes is None and use.fragmentation is None


def test_how_much_memory_is_a_question_and_stands_in_the_report():
    summary = allocating(*EVENTS)
    for asked in ("How much memory is used?", "which op allocates the most memory", "is memory fragmented?"):
        answer = query.ask(summary, asked)
        assert answer.query_type == "memory" and "aten::relu" in answer.said
    assert "Memory" in profiles.markdown(summary) and query.ask(summary, "are copies from pinned memory?").query_type == "copies"
    assert "profile_memory=True" in query.ask(summarize(profile(trace([host("aten::mm", 0, 9)]))), "how much memory").said


def snapshot():
    """200 bytes before the history; a line of the owner's, one of a library's."""
    own = [{"filename": "??", "line": 0, "name": "malloc"}, {"filename": "/x/site-packages/torch/nn.py", "line": 3, "name": "call"},
           {"filename": "/home/me/train.py", "line": 12, "name": "step"}]  # fmt: skip
    history = [
        {"action": "segment_alloc", "size": 2000, "addr": 1, "time_us": 10, "frames": []},
        {"action": "alloc", "size": 700, "addr": 2, "time_us": 11, "frames": own},
        {"action": "free_requested", "size": 700, "addr": 2, "time_us": 12, "frames": []},
        {"action": "free_completed", "size": 700, "addr": 2, "time_us": 13, "frames": []},
        {"action": "alloc", "size": 300, "addr": 3, "time_us": 14, "frames": own[:2]},
    ]
    segments = [{"device": 0, "total_size": 2500, "allocated_size": 500}]
    return {"segments": segments, "device_traces": [history, []]}


def read(path: Path):
    return summarize(load(Request(trace_file=(path,))))


def test_snapshots_of_torch_are_read(tmp_path):
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps(snapshot()))
    (use,) = read(file).memory
    assert (use.start_bytes, use.peak_bytes, use.growth_bytes, use.reserved_peak_bytes) == (200, 900, 300, 2500)
    assert [op.name for op in use.ops] == ["/home/me/train.py:12 step"] and use.peak_op == "/home/me/train.py:12 step"


class Evil:
    def __reduce__(self):
        return (print, ("never",))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps(Evil()), "was not read"),
        (pickle.dumps({"weights": [1, 2]}), "no device_traces"),
        (pickle.dumps(snapshot())[:-40], "damaged pickle"),
        (pickle.dumps({"segments": [], "device_traces": [[]]}), "no history"),
    ],
    ids=["code", "other", "cut", "empty"],
)
def test_other_pickles_are_refused_unread(tmp_path, capsys, content, said):
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read(file)
    assert "never" not in capsys.readouterr().out
