"""rocprofv3's JSON and Perfetto's protobuf: small files of each, whole, cut and hostile; other formats are refused by name."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zlib

import pytest

from trainflash.errors import UsageError
from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Kind, Profile, TrackKind
from trainflash.profile.sources import Request, load
from trainflash.profile.sources.files import read_file, read_stream

# rocprofv3


def rocprof(steps: int = 3) -> dict:
    """One process with one GPU: a copy, then two kernels a step, launched by HIP calls."""
    names = [
        {"kind": "NONE", "operations": []},
        {"kind": "HIP_RUNTIME_API", "operations": ["hipMemcpyAsync", "hipLaunchKernel"]},
        {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
        {"kind": "MARKER_CORE_API", "operations": ["roctxRangePushA"]},
    ]
    kernels, copies, calls, marks = [], [], [], []
    for number in range(steps):
        at, first = 3_400_000_000_000 + 1_000_000 * number, 10 * number + 1
        marks.append(record(3, 0, first, at, at + 900_000))
        calls.append(record(1, 0, first + 1, at + 1_000, at + 9_000))
        copies.append(
            record(2, 1, first + 1, at + 20_000, at + 60_000)
            | {"dst_agent_id": handle(77), "src_agent_id": handle(5), "bytes": 4096}
            | STREAM
        )
        for launch in (2, 3):
            begin = at + 100_000 * launch
            calls.append(record(1, 1, first + launch, begin - 50_000, begin - 45_000))
            info = {"agent_id": handle(77), "queue_id": handle(1), "kernel_id": 12 + launch, "dispatch_id": first + launch}
            kernels.append(record(9, 0, first + launch, begin, begin + 80_000) | {"dispatch_info": info} | STREAM)
    process = {
        "metadata": {"pid": 4242, "init_time": 1, "fini_time": 9},
        "agents": [
            {"id": handle(5), "type": 1, "node_id": 0, "name": "EPYC"},
            {"id": handle(77), "type": 2, "node_id": 4, "product_name": "AMD Instinct MI300X"},
        ],
        "strings": {
            "buffer_records": names,
            "marker_api": [{"key": 10 * number + 1, "value": f"step {number}"} for number in range(steps)],
        },
        "kernel_symbols": [
            {"kernel_id": 14, "formatted_kernel_name": "Cijk_Ailk_gemm"},
            {"kernel_id": 15, "formatted_kernel_name": "softmax(float*)"},
        ],
        "buffer_records": {"kernel_dispatch": kernels, "hip_api": calls, "marker_api": marks, "memory_copy": copies},
    }
    return {"rocprofiler-sdk-tool": [process]}


def handle(number: int) -> dict:
    return {"handle": number}


STREAM = {"stream_id": {"handle": 3}}


def record(kind: int, operation: int, correlation: int, begin: int, end: int) -> dict:
    ids = {"internal": correlation, "external": 0}
    return {
        "size": 72,
        "kind": kind,
        "operation": operation,
        "thread_id": 4242,
        "correlation_id": ids,
        "start_timestamp": begin,
        "end_timestamp": end,
    }


def read(text: bytes, name: str = "results.json"):
    return read_stream(io.BytesIO(text), name)


def test_rocprofs_kernels_copies_calls_and_ranges():
    trace = read(json.dumps(rocprof(), indent=1).encode())
    kinds = trace.events.kind.tolist()
    assert [kinds.count(kind) for kind in (Kind.KERNEL, Kind.MEMCPY, Kind.RUNTIME, Kind.ANNOTATION)] == [6, 3, 9, 3]
    assert {"Memcpy HtoD", "Cijk_Ailk_gemm", "softmax(float*)", "hipLaunchKernel", "step 0"} <= set(trace.strings)
    (stream,) = [track for track in trace.tracks if track.kind is TrackKind.STREAM]
    assert (stream.device, stream.stream) == (0, 3)
    summary = summarize(Profile((trace,), "results.json"))
    assert summary.source_format == "rocprofv3" and summary.run_metadata.hardware_type == "AMD Instinct MI300X"
    assert summary.step_time.all_steps.count == 3 and summary.launches.kernels_with_launch == summary.launches.kernels
    assert summary.copies[0].bytes_total == 4096 * 3


def test_a_cut_file_of_rocprof_keeps_the_records_before_the_cut():
    text = json.dumps(rocprof(), indent=1).encode()
    at = text.index(b'"hip_api"') - 700
    trace = read(text[:at])
    assert trace.quality.truncated and at - 1000 < trace.quality.cut_at <= at
    assert 0 < len(trace.events) < 6 and set(trace.events.kind.tolist()) == {Kind.KERNEL}
    with pytest.raises(UsageError, match="ends before its records"):
        read(text[: text.index(b'"kernel_symbols"')])


@pytest.mark.parametrize("value", [-1, 0, 1 << 63, "soon", None, [1], 1e40])
def test_hostile_times_of_rocprof_are_dropped_and_said_or_refused(value):
    document = rocprof()
    document["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"][0]["start_timestamp"] = value
    try:
        trace = read(json.dumps(document).encode())
    except UsageError as fault:
        assert "results.json is damaged" in fault.message and "start_timestamp" in fault.message
    else:
        assert trace.quality.without_time == 1 and len(trace.events) == 20


def test_a_file_of_rocprof_without_records_is_said_to_have_none():
    with pytest.raises(UsageError, match="holds no records"):
        read(b'{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}}]}')


# Perfetto


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def packet(*fields: bytes, sequence: int = 1) -> bytes:
    return field(1, b"".join((*fields, field(10, sequence))))


def event(time: int, kind: int, *fields: bytes, track: int = 7) -> bytes:
    return packet(field(8, time), field(11, b"".join((field(9, kind), field(11, track), *fields))))


THREAD = packet(field(60, field(1, 7) + field(4, field(1, 100) + field(2, 101) + field(5, "python"))))
STREAM_TRACK = packet(field(60, field(1, 9) + field(2, "COMPUTE AGENT [2] STREAM [1] (GPU)")))


def correlated(number: int) -> bytes:
    return field(4, field(10, "corr_id") + field(3, number))


def pftrace() -> bytes:
    """A call that launches a kernel, in the way of rocprofv3; inside a range that a thread opened."""
    parts = [THREAD, STREAM_TRACK]
    parts += [event(1_000, 1, field(22, "marker_api"), field(23, "step 4"))]
    parts += [event(2_000, 1, field(22, "hip_api"), field(23, "hipLaunchKernel"), correlated(5)), event(3_000, 2)]
    parts += [event(4_000, 1, field(22, "kernel_dispatch"), field(23, "gemm"), correlated(5), track=9), event(9_500, 2, track=9)]
    parts += [event(9_000, 2), event(9_100, 3, field(23, "mark"))]
    return b"".join(parts)


def test_perfettos_slices_tracks_and_ids():
    trace = read(pftrace(), "trace.pftrace")
    found = {
        trace.strings[name]: (start, length)
        for name, start, length in zip(*(getattr(trace.events, key).tolist() for key in ("name", "start_ns", "duration_ns")), strict=True)
    }
    assert found == {"step 4": (1_000, 8_000), "hipLaunchKernel": (2_000, 1_000), "gemm": (4_000, 5_500)}
    assert sorted(trace.events.kind.tolist()) == sorted([Kind.ANNOTATION, Kind.RUNTIME, Kind.KERNEL]) and len(trace.marks.t_ns) == 1
    assert {(track.device, track.stream) for track in trace.tracks} == {(None, None), (2, 1)}
    assert {(track.process, track.thread_name) for track in trace.tracks if track.kind is TrackKind.HOST} == {("100", "python")}
    summary = summarize(Profile((trace,), "trace.pftrace"))
    assert summary.launches.kernels_with_launch == 1 and summary.time_breakdown.compute.total_duration == 5.5


def test_perfettos_interned_names_and_incremental_clock():
    names = field(12, field(1, field(1, 3) + field(2, "cpu_op")) + field(2, field(1, 8) + field(2, "aten::mm")))
    defaults = field(59, field(58, 64) + field(11, field(11, 7)))
    clocks = field(6, field(1, field(1, 64) + field(2, 5_000) + field(3, 1) + field(4, 1)))
    begin = field(11, field(9, 1) + field(10, 8) + field(3, 3))
    data = (
        THREAD + packet(clocks, defaults, names, field(13, 1)) + packet(field(8, 100), begin) + packet(field(8, 40), field(11, field(9, 2)))
    )
    forgotten = packet(field(13, 1)) + packet(field(8, 10), begin) + packet(field(8, 10), field(11, field(9, 2)))
    trace = read(data + forgotten, "a.perfetto-trace")
    assert trace.events.start_ns.tolist() == [5_100, 5_150] and trace.events.duration_ns.tolist() == [40, 10]
    assert [trace.strings[name] for name in trace.events.name] == ["aten::mm", ""]
    assert trace.events.kind.tolist()[0] == Kind.HOST_OP


def test_perfettos_compressed_packets_counters_and_a_trace_without_its_name():
    counter = packet(field(60, field(1, 3) + field(2, "power") + field(5, 7) + field(8, b""))) + packet(
        field(8, 50), field(11, field(9, 4) + field(11, 3) + field(30, 12))
    )
    packed = field(1, field(50, zlib.compress(pftrace() + counter)))
    for name, data in (("trace", packed), ("trace.pftrace.gz", gzip.compress(packed))):
        trace = read(data, name)
        assert len(trace.events) == 3 and trace.counters[0].name == "power" and trace.counters[0].value.tolist() == [12]


@pytest.mark.parametrize("cut", range(1, 400, 13))
def test_a_cut_perfetto_trace_keeps_what_comes_before(cut):
    data = pftrace()
    try:
        trace = read(data[: len(data) - cut], "trace.pftrace")
    except UsageError as fault:
        assert "no track events" in fault.message or "is no Perfetto trace" in fault.message or "is empty" in fault.message
    else:
        assert trace.quality.total_events <= 7
        assert trace.quality.truncated == (trace.quality.cut_at is not None)


@pytest.mark.parametrize(
    "data", [b"\n\x05\xff\xff\xff\xff\xff", b"\n\x02\x08", field(1, field(11, b"\xff" * 30)), field(1, field(50, b"junk"))]
)
def test_hostile_perfetto_bytes_are_refused_in_one_line(data):
    with pytest.raises(UsageError) as caught:
        summarize(Profile((read(data, "trace.pftrace"),), "trace.pftrace"))
    assert "\n" not in caught.value.message


# What is refused by name


@pytest.mark.parametrize(
    ("name", "data", "says", "mend"),
    [
        ("a.SSTABLE", b"x", "xprof's trace viewer", ".xplane.pb"),
        ("host.op_stats.pb", b"x", "a table of xprof", ".xplane.pb"),
        ("rank.0.et", b"x", "execution trace", "Kineto"),
        ("et.json", b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []}', "execution trace", "Kineto"),
        ("a.ncu-rep", b"x", "Nsight Compute", "nsys"),
        ("a.nsys-rep", b"x", "nsys", "nsys export"),
        ("12_kernel_trace.csv", b"x", "rocprofv3", "--output-format json"),
        ("stacks.json", b'{"$schema": "x", "profiles": []}', "speedscope", "Kineto"),
        ("summary.json", b'{"schema_version": "profile_summary.v1", "digest": "", "step_time": {}}', "a summary already", "profile query"),
        ("a.json", b'{"traceEvents": {"a": 1}}', "no list", "finished writing"),
        ("perf.data", b"PERFILE2....", "Linux perf", "JSON trace"),
    ],
)
def test_other_formats_are_refused_by_name(tmp_path, name, data, says, mend):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_file(path, name)
    assert says in caught.value.message and mend in caught.value.mend


def test_rocprofs_database_is_refused_by_name(tmp_path):
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE rocpd_kernel_dispatch (id INTEGER)")
    with pytest.raises(UsageError, match="a database of rocprofv3"):
        load(Request(trace_file=(path,)))


# Damaged ones


def kineto(*extra: dict) -> dict:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000 + 10 * number, "dur": 5} for number in range(5)
    ]
    return {"schemaVersion": 1, "traceEvents": [*events, *extra]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_any_encoding_of_json_is_read(encoding):
    assert len(read(json.dumps(kineto()).encode(encoding)).events) == 5


@pytest.mark.parametrize("time", [1e40, "soon", None, [1], {}, True and "1e40"])
def test_times_that_cannot_be_are_dropped_and_said(time):
    extra = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": time, "dur": 5}
    summary = summarize(Profile((read(json.dumps(kineto(extra)).encode()),), "x"))
    assert summary.trace_overview.duration_us == 45 and summary.trace_overview.num_complete_events == 5
    assert "1 events have no time that can be, and are left out" in summary.trace_overview.quality_warnings


@pytest.mark.parametrize("time", [0, 1, -5])
def test_times_at_the_zero_of_a_clock_that_began_long_ago_are_dropped_and_said(time):
    events = [{**event, "ts": event["ts"] + 1.7e15} for event in kineto()["traceEvents"]] + [{**kineto()["traceEvents"][0], "ts": time}]
    summary = summarize(Profile((read(json.dumps({"traceEvents": events}).encode()),), "x"))
    assert summary.trace_overview.duration_us == 45
    assert "1 events have no time that can be, and are left out" in summary.trace_overview.quality_warnings


@pytest.mark.parametrize("length", [1e30, 1e15, -1e30])
def test_durations_that_no_recording_holds_count_without_a_length_and_are_said(length):
    extra = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1100, "dur": length}
    summary = summarize(Profile((read(json.dumps(kineto(extra)).encode()),), "x"))
    assert summary.trace_overview.duration_us == 100
    assert any("no recording can hold" in each for each in summary.trace_overview.quality_warnings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps({"traceEvents": [kineto()["traceEvents"]] * 2}), "none of the 2 entries in its list of events is an event"),
        (json.dumps([[kineto()["traceEvents"]]]), "none of the 1 entries"),
        ("[" * 100_000, "the file ends at byte 1, before its first event"),
        ('{"traceEvents": []}', "its list of events is empty"),
        (
            json.dumps({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}]}),
            "are names of processes and threads",
        ),
        (
            json.dumps({"traceEvents": [{"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": "soon", "dur": 1}]}),
            "none of its 1 events has a time",
        ),
    ],
)
def test_what_is_missing_is_said_and_not_to_profile_again(text, says):
    with pytest.raises(UsageError, match=says) as caught:
        summarize(Profile((read(text.encode()),), "x"))
    assert "again" not in caught.value.mend


def test_a_cut_is_said_with_its_place_and_what_else_is_gone():
    text = json.dumps({**kineto(), "baseTimeNanoseconds": 1}).encode()
    warnings = summarize(Profile((read(text[:300]),), "x")).trace_overview.quality_warnings
    assert any("cut short at byte" in each and "is missing" in each for each in warnings) and any(
        "base of its times" in each for each in warnings
    )
