"""The trace file: what viewers ask of it, and that a long run needs little memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import traces

from trainflash.profile import Counter, Part, Process, Track, write_trace
from trainflash.schema import Location
from trainflash.telemetry import GpuSample, HostSample, Sample
from trainflash.trace import EvalTrace, SaveTrace
from trainflash.workflow import exporting

MS = traces.MS


def read(path) -> dict:
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)


def check(document: dict) -> dict[tuple[str, str], list[dict]]:
    """Rows by (process, track); asserts what the format and its viewers demand."""
    events = document["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert len({tid for _, tid in tracks}) == len(tracks), "a thread belongs to one process"
    rows: dict = {}
    for event in events:
        if event["ph"] == "M":
            continue
        assert event["ph"] in {"X", "i", "C"} and event["ts"] >= 0
        assert event["pid"] in processes
        if event["ph"] == "C":
            assert isinstance(event["args"]["value"], float | int)
            rows.setdefault((processes[event["pid"]], event["name"]), []).append(event)
        else:
            rows.setdefault((processes[event["pid"]], tracks[event["pid"], event["tid"]]), []).append(event)
    for place, found in rows.items():
        for kind in "XiC":
            at = [row["ts"] for row in found if row["ph"] == kind]
            assert at == sorted(at), f"{place} goes back in time"
        open_until: list[float] = []
        for row in found:
            if row["ph"] != "X":
                continue
            while open_until and open_until[-1] <= row["ts"] + 1e-6:
                open_until.pop()
            end = row["ts"] + row["dur"]
            assert row["dur"] >= 0 and (not open_until or end <= open_until[-1] + 1e-6), f"slices of {place} do not nest"
            open_until.append(end)
    return rows


def test_the_check_can_fail():
    names = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "p"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "t"}},
    ]
    crossing = [{"ph": "X", "pid": 1, "tid": 1, "name": "a", "ts": ts, "dur": 5} for ts in (0, 3)]
    with pytest.raises(AssertionError, match="nest"):
        check({"traceEvents": names + crossing})


def small_trace():
    step = [10.0] * 6
    rank = traces.rank(step, {"Data": 0.2, "Fwd": 0.3, "Bwd": 0.3, "Eval": [0, 0, 4.0, 0, 0, 0], "Ckpt": [0, 0, 0, 3.0, 0, 0]})
    line = Location("train.py", 30, "main")
    rank = replace(
        rank,
        argv=("train.py", "--token=abc"),
        samples=traces.samples(rank, [(1, "Fwd", line, 20.0), (2, "Bwd", None, 20.0), (3, "Bwd", line, 20.0)]),
        evaluations=(EvalTrace(int(rank.occurrences["Eval"].start_ns[0]), Location("train.py", 9, "evaluate"), 12, 8, False),),
        saves=(SaveTrace(int(rank.step_start_ns[3]), 3 * MS, None, 2_000_000),),
    )
    fetched = traces.fetches(rank.step_start_ns[:-1], 3.0, 1.0, 0.9)
    return traces.trace(rank, traces.worker(fetched, pid=200), traces.worker(fetched, pid=201))


def samples(rank) -> list[Sample]:
    moments = [rank.process_start_ns + second * 1000 * MS for second in range(3)]
    return [
        Sample(
            t,
            HostSample(cpu_s=2.0 * second, memory_used_bytes=10**9, read_bytes=None),
            (GpuSample(0, "H", busy=0.5), GpuSample(1, "H", power_w=None)),
        )
        for second, t in enumerate(moments)
    ]


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_a_run_has_its_processes_tracks_and_counters(tmp_path, name):
    made = small_trace()
    written = write_trace(tmp_path / name, exporting.processes(made, samples(made.ranks[0])), {"run": "diagnose-001"})
    document = read(tmp_path / name)
    rows = check(document)
    assert document["otherData"]["run"] == "diagnose-001"
    rank = "rank 0: train.py"
    found = {track for process, track in rows if process.startswith(rank)}
    assert found == {"steps", "phases", "evaluations and checkpoints", "source lines (samples)"}
    by_track = {track: list_ for (process, track), list_ in rows.items() if process.startswith(rank)}
    assert [row["name"] for row in by_track["steps"]] == [f"step {number}" for number in range(6)]
    assert by_track["steps"][2]["dur"] == pytest.approx(10_000)
    assert by_track["steps"][0]["ts"] == pytest.approx(2_000_000)  # the process began two seconds before, with the first counter
    assert [row["name"] for row in by_track["evaluations and checkpoints"]] == ["evaluation train.py:9, 12 batches", "checkpoint, 2.0 MB"]
    assert [row["name"] for row in by_track["source lines (samples)"]] == ["train.py:30 main"] * 2
    assert len(rows["rank 0 worker 0 of loader 0", "batches"]) == 12
    assert ("rank 0 worker 1 of loader 0", "batches") in rows
    cores = rows["machine", "cores used by the program [cores]"]
    assert [row["args"]["value"] for row in cores] == [2.0, 2.0]
    assert rows["machine", "memory used [MB]"][0]["args"]["value"] == 1000
    assert ("machine", "GPU 0 busy [share]") in rows and ("machine", "GPU 1 power [W]") not in rows
    assert (written.processes, written.counters) == (4, 3)
    assert written.slices == sum(row["ph"] == "X" for list_ in rows.values() for row in list_)
    assert "abc" not in json.dumps(document)


def test_nested_and_simultaneous_slices_are_written_outermost_first(tmp_path):
    track = Track("t", (Part(("inner",), [0, 5], [5, 9]), Part(("outer",), [0], [10]), Part(("mark",), [3])))
    path = tmp_path / "t.json"
    write_trace(path, [Process(5, 'a "b" ü', (track,)), Process(5, "same pid", (track,))], {})
    document = read(path)
    rows = check(document)
    assert [row["name"] for row in rows['a "b" ü', "t"]][:3] == ["outer", "inner", "inner"]
    assert len({row["pid"] for list_ in rows.values() for row in list_}) == 2


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path):
    broken = Process(1, "p", counters=(Counter("c", "", [1, 2], [1.0]),))
    with pytest.raises(ValueError):
        write_trace(tmp_path / "x.json.gz", [broken], {})
    assert list(tmp_path.iterdir()) == []


def test_an_empty_run_is_a_file_too(tmp_path):
    write_trace(tmp_path / "x.json", [], {})
    assert read(tmp_path / "x.json")["traceEvents"] == []


@pytest.mark.parametrize(("steps", "most_mb"), [(20_000, 20), pytest.param(200_000, 100, marks=pytest.mark.full)])
def test_a_long_run_needs_little_memory(tmp_path, steps, most_mb):
    """All rows as Python objects would take about a kilobyte each: a gigabyte for the longer one."""
    rank = traces.rank(np.full(steps, 5.0), {"Data": 0.2, "Fwd": 0.3, "Bwd": 0.3, "Opt": 0.1})
    made = traces.trace(rank)
    tracemalloc.start()
    try:
        written = write_trace(tmp_path / "x.json.gz", exporting.processes(made), {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert written.slices == 5 * steps
    assert peak < most_mb * 1e6
