"""What `nsys export --type sqlite` writes, by the documented schema, as one more source. No export of a real nsys stands behind these."""

from __future__ import annotations

import gzip
import random
import sqlite3

import numpy as np
import pytest
from nsys_exports import EPOCH, KERNEL, PID, SCHEMA, TID, Export, of_process, of_thread, training

from trainflash.errors import UsageError
from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.events import Kind, TrackKind, content_digest
from trainflash.profile.sources import Request, load


def read(path):
    return load(Request(trace_file=(path,))).traces


def summary(path):
    return summarize(load(Request(trace_file=(path,))), Options(), generated_at_utc="2026-01-01T00:00:00Z")


def names(trace, *kinds):
    return [trace.strings[code] for code in trace.events.name[trace.rows(*kinds)].tolist()]


def test_rows_become_the_same_columns_as_those_of_other_sources(tmp_path):
    export = training(steps=1)
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH)
    export.add("ThreadNames", nameId=export.string("pt_main_thread"), globalTid=of_thread(PID, TID))
    export.add("PROCESSES", globalPid=of_process(PID), pid=PID, name="python")
    export.add("TARGET_INFO_GPU", id=3, name="NVIDIA H100")
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=PID)
    export.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    export.add("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2024.6.2")
    (trace,) = read(export.write(tmp_path / "rank3.sqlite"))
    assert trace.source == "nsys" and trace.base_ns == EPOCH and trace.events.start_ns.min() == EPOCH + 100_000
    assert names(trace, Kind.KERNEL) == ["void gemm<float>(int)", "triton_red_fused_sum_0"]
    assert names(trace, Kind.MEMCPY) == ["Memcpy HtoD (Pinned -> Device)"] and names(trace, Kind.SYNC) == ["Stream Sync"]
    assert names(trace, Kind.RUNTIME) == ["cudaMemcpyAsync", "cudaLaunchKernel", "cudaStreamSynchronize"]
    assert names(trace, Kind.DRIVER) == ["cuLaunchKernelEx"] and names(trace, Kind.HOST_OP) == ["aten::mm"]
    assert names(trace, Kind.ANNOTATION) == ["step 0"]
    kernels = trace.rows(Kind.KERNEL)
    for column, expected in {"correlation": [2, 3], "stream": [7, 7], "registers": [32, 32], "shared_memory": [64, 64]}.items():
        assert trace.column(column).take(kernels, -1).tolist() == expected
    assert {trace.strings[code] for code in trace.column("grid").values.tolist()} == {"[1, 2, 3]"}
    assert trace.column("bytes").values.tolist() == [4096] and trace.column("step").values.tolist() == [0]
    assert trace.column("sequence").values.tolist() == [0]
    assert [trace.strings[code] for code in trace.column("input_dims").values.tolist()] == ["[[64, 3], [3, 5]]"]
    host = next(track for track in trace.tracks if track.kind is TrackKind.HOST)
    assert (host.process, host.thread, host.process_name, host.thread_name) == (str(PID), str(TID), "python", "pt_main_thread")
    stream = next(track for track in trace.tracks if track.kind is TrackKind.STREAM)
    assert (stream.device, stream.stream, stream.labels) == (0, 7, "GPU 0")
    assert (trace.identity.rank, trace.identity.host, trace.identity.pid) == (3, "node7", PID)
    assert trace.provenance == {"nsys_version": "2024.6.2", "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}


def test_a_summary_of_an_export_answers_as_that_of_any_trace(tmp_path):
    found = summary(training(steps=5).write(tmp_path / "report.sqlite"))
    steps = found.step_time
    assert steps.basis == "step_markers" and steps.all_steps.count == 5 and steps.all_steps.median == 1000.0
    assert found.time_breakdown.compute.total_duration == 5 * 400.0 and found.time_breakdown.copy.total_duration == 5 * 60.0
    gemm = next(op for op in found.hot_ops if "gemm" in op.name)
    assert gemm.total_duration == 5 * 300.0 and gemm.count == 5
    assert found.launches.kernels == 10 and found.launches.kernels_with_launch == 10
    assert [(copy.direction, copy.pinned, copy.bytes_total) for copy in found.copies] == [("H2D", True, 5 * 4096)]


def test_each_process_is_a_rank_of_its_own(tmp_path):
    export = training(pid=20, device=1)
    training(pid=30, device=0, into=export, shift=40)
    for pid in (20, 30):
        export.add("MPI_RANKS", globalTid=of_thread(pid, 1), rank=30 - pid)
    export.call("cudaGetDeviceCount", 5, 5, 99, pid=77)
    export.range("worker", 5, 5, pid=77)
    first, second = read(export.write(tmp_path / "job.sqlite"))
    assert [(trace.identity.pid, trace.identity.rank, trace.identity.rank_from) for trace in (first, second)] == [
        (30, 0, "MPI"),
        (20, 10, "MPI"),
    ]
    assert len(first.rows(Kind.KERNEL)) == len(second.rows(Kind.KERNEL)) == 6
    assert all("1 processes that used no device are left out" in trace.quality.notes for trace in (first, second))
    assert summary(tmp_path / "job.sqlite").launches.kernels_with_launch == 12  # equal correlation ids of two processes are no match


def test_an_old_version_lacks_columns_and_loses_nothing_else(tmp_path):
    lacking = ("globalPid", "shortName", "graphNodeId", "srcKind", "dstKind", "staticSharedMemory")
    (trace,) = read(training().write(tmp_path / "old.sqlite", leave_out=lacking))
    assert names(trace, Kind.MEMCPY) == ["Memcpy HtoD"] * 3 and len(trace.rows(Kind.KERNEL)) == 6
    assert len(trace.rows(Kind.RUNTIME)) == 9 and trace.identity.pid is None and "shared_memory" not in trace.side
    assert summary(tmp_path / "old.sqlite").launches.kernels_with_launch == 6


def test_graphs_recorded_whole_are_work_and_said_to_be_whole(tmp_path):
    export = training(steps=1)
    export.call("cudaGraphLaunch_v10000", 1_300, 10, 50)
    export.device("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 1_400, 250, 50, graphId=4)
    (trace,) = read(export.write(tmp_path / "graphs.sqlite"))
    assert names(trace, Kind.KERNEL).count("CUDA graph, not taken apart") == 1
    assert any("--cuda-graph-trace=node" in note for note in trace.quality.notes)


def test_ranges_that_never_end_marks_and_ranges_across_threads(tmp_path):
    export = training(steps=1)
    export.range("never closed", 50, None)
    export.range("a mark", 60, None, kind=34)
    export.range("across", 70, 500, kind=60)
    export.add("DIAGNOSTIC_EVENT", severity=2, text="Not all CUDA events might have been collected.\nmore")
    export.add("DIAGNOSTIC_EVENT", severity=1, text="Process was launched")
    export.add("DIAGNOSTIC_EVENT", severity=2, text="No CUDA events collected. Does the process use CUDA?")  # of another process
    (trace,) = read(export.write(tmp_path / "report.sqlite"))
    assert trace.quality.unmatched == 1 and trace.quality.notes == ("nsys says: Not all CUDA events might have been collected.",)
    assert [trace.strings[code] for code in trace.marks.name.tolist()] == ["a mark"]
    assert [track.thread for track in trace.tracks if track.kind is TrackKind.ASYNC] == ["NVTX ranges"]


def test_order_of_rows_and_of_strings_never_shows(tmp_path):
    plain = training().write(tmp_path / "a.sqlite")
    shuffled = training()
    shuffled.string("unused")
    shuffled.strings = {text: number * 3 + 100 for text, number in shuffled.strings.items()}
    for rows in shuffled.rows.values():
        random.Random(1).shuffle(rows)
        for row in rows:
            for column in ("demangledName", "shortName", "nameId", "textId"):
                if column in row:
                    row[column] = row[column] * 3 + 100
    assert content_digest(read(shuffled.write(tmp_path / "b.sqlite"))) == content_digest(read(plain))


def test_wrong_values_are_counted_and_do_no_harm(tmp_path):
    export = training(steps=1)
    export.kernel("late", 2**51, 5, 90)
    export.kernel("backwards", 300, -5, 91)
    export.kernel("no name", 310, 5, 92, demangledName=10**9)
    export.kernel("text", 320, 5, 93, registersPerThread="many", gridX="x")
    (trace,) = read(export.write(tmp_path / "report.sqlite"))
    assert trace.quality.without_time == 1 and trace.quality.negative_durations == 1
    assert "(unnamed)" in names(trace, Kind.KERNEL) and trace.events.duration_ns.min() >= 0


def test_a_directory_prefers_traces_and_takes_exports_before_other_json(tmp_path):
    training().write(tmp_path / "report.sqlite")
    (tmp_path / "config.json").write_text("{}")
    profile = load(Request(profile_dir=tmp_path))
    assert [trace.source for trace in profile.traces] == ["nsys"]


def test_the_file_is_only_read(tmp_path):
    path = training().write(tmp_path / "report.sqlite")
    before = path.read_bytes()
    path.chmod(0o400)
    read(path)
    assert path.read_bytes() == before and [each.name for each in tmp_path.iterdir()] == [path.name]


def foreign(tmp_path):
    with sqlite3.connect(tmp_path / "x.sqlite") as database:
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()


def empty_tables(tmp_path):
    export = Export()
    export.rows[KERNEL] = []
    export.write(tmp_path / "x.sqlite")


def virtual(tmp_path):
    with sqlite3.connect(tmp_path / "x.sqlite") as database:
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start")
    database.close()


def packed(tmp_path):
    (tmp_path / "x.sqlite").write_bytes(gzip.compress(training().write(tmp_path / "y.sqlite").read_bytes()))


def header_only(tmp_path):
    (tmp_path / "x.sqlite").write_bytes(b"SQLite format 3\0" + bytes(200))


@pytest.mark.parametrize("make", [foreign, empty_tables, virtual, packed, header_only], ids=lambda make: make.__name__)
def test_what_is_no_export_is_refused_in_one_line(tmp_path, make):
    make(tmp_path)
    with pytest.raises(UsageError) as refused:
        read(tmp_path / "x.sqlite")
    assert "x.sqlite" in str(refused.value) and "\n" not in str(refused.value)


def test_a_report_that_was_not_exported_is_told_how(tmp_path):
    (tmp_path / "x.nsys-rep").write_bytes(b"whatever")
    with pytest.raises(UsageError, match="format") as refused:
        read(tmp_path / "x.nsys-rep")
    assert "nsys export --type sqlite" in refused.value.mend


def test_damage_gives_a_trace_or_one_line(tmp_path):
    whole = training(steps=40).write(tmp_path / "whole.sqlite").read_bytes()
    rng, refused = random.Random(3), 0
    for number in range(150):
        data = bytearray(whole)
        if number % 3 == 0:
            data = data[: rng.randrange(16, len(data))]
        else:
            for _ in range(rng.randrange(1, 40)):
                data[rng.randrange(16, len(data))] = rng.randrange(256)
        path = tmp_path / "damaged.sqlite"
        path.write_bytes(data)
        try:
            traces = read(path)
        except UsageError as fault:
            refused += 1
            assert "\n" not in str(fault)
        else:
            assert all((trace.events.duration_ns >= 0).all() for trace in traces)
    assert refused > 50  # a cut file is never taken for a whole one


def test_columns_are_integers(tmp_path):
    (trace,) = read(training().write(tmp_path / "report.sqlite"))
    assert trace.column("correlation").values.dtype.kind == "i" and isinstance(trace.events.start_ns, np.ndarray)


def test_an_export_in_which_nothing_was_recorded_is_told_as_one(tmp_path):
    export = Export()
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1)
    kept = {table: SCHEMA[table] for table in ("StringIds", "TARGET_INFO_SESSION_START_TIME")}
    with pytest.raises(UsageError, match="is an export of nsys, but nothing of a program was recorded"):
        read(export.write(tmp_path / "report.sqlite", schema=kept))
