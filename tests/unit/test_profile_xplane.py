"""XPlane protobufs: the wire format in columns, names, stats and references, cuts and damage."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import profile_traces as made
import pytest

from trainflash.errors import UsageError
from trainflash.profile.events import Kind, TrackKind
from trainflash.profile.sources import wire, xplane


def read(data: bytes):
    return xplane.read([data], "host.xplane.pb")


def texts(trace, column, rows):
    return [trace.strings[number] for number in trace.column(column).take(rows, 0).tolist()]


def test_varints_of_a_column_equal_those_of_python():
    rng = random.Random(0)
    numbers = [0, 1, 127, 128, 2**14 - 1, 2**14, 2**28, 2**49, 2**56 - 1, 2**56, 2**63 - 1, 2**63, 2**64 - 1]
    numbers += [rng.getrandbits(rng.randrange(1, 65)) for _ in range(500)]
    data, places = b"", []
    for number in numbers:
        places.append(len(data))
        data += made.varint(number)
    found, lengths = wire.Bytes(data + bytes(wire.PADDING)).varints(np.asarray(places))
    assert found.tolist() == numbers
    assert lengths.tolist() == [len(made.varint(number)) for number in numbers]
    endless, length = wire.Bytes(b"\xff" * 30 + bytes(wire.PADDING)).varints(np.asarray([0]))
    assert length.tolist() == [11] and len(endless) == 1


@pytest.mark.parametrize("seed", range(20))
def test_fields_of_many_messages_equal_those_of_one(seed):
    rng = random.Random(seed)
    messages = []
    for _ in range(rng.randrange(1, 30)):
        message = b""
        for _ in range(rng.randrange(0, 6)):
            value = rng.choice([rng.getrandbits(rng.randrange(1, 64)), rng.randbytes(rng.randrange(0, 200)), rng.random()])
            message += made.field(rng.choice([1, 2, 15, 16, 3000]), value)
        messages.append(message[: rng.randrange(len(message) + 1)] if rng.random() < 0.2 else message)
    data, starts, ends = b"", [], []
    for message in messages:
        starts.append(len(data))
        data += message
        ends.append(len(data))
    faulty = np.zeros(len(messages), bool)
    buffer = wire.Bytes(data + bytes(wire.PADDING))
    found: list[list] = [[] for _ in messages]
    for each in wire.fields(buffer, np.asarray(starts), np.asarray(ends), faulty):
        for row, number, kind, value, place in zip(
            *(column.tolist() for column in (each.rows, each.number, each.type, each.value, each.place)), strict=True
        ):
            if kind == wire.BYTES:
                value = data[place : place + value]
            elif kind == wire.FIXED64:
                value = struct.pack("<Q", value)
            found[row].append((number, kind, value))
    for message, one, wrong in zip(messages, found, faulty.tolist(), strict=True):
        alone = list(wire.message(message))
        assert one[: len(alone)] == alone if wrong else one == alone


def test_planes_lines_and_stats():
    trace = read(made.xspace(4))
    assert (trace.source, trace.identity.host) == ("xplane", "host-a")
    kernels, copies, calls = (trace.rows(kind) for kind in (Kind.KERNEL, Kind.MEMCPY, Kind.DRIVER))
    assert (len(kernels), len(copies), len(calls)) == (2, 2, 4)
    assert trace.column("correlation").take(calls, -1).tolist() == [100, 101, 102, 103]
    assert texts(trace, "scope", kernels) == ["jit(step)/layer/dot_general"] * 2, "a reference to a text"
    assert texts(trace, "grid", kernels) == ["[16, 1, 1]"] * 2
    assert trace.column("occupancy_percent").take(kernels, -1).tolist() == [50, 50]
    assert trace.column("registers").take(kernels, -1).tolist() == [32, 32]
    assert trace.column("flops").take(kernels, -1).tolist() == [2.5e9] * 2, "a stat of the metadata"
    assert trace.column("flops").rows.tolist() == kernels.tolist()
    assert trace.events.start_ns[kernels].tolist() == [1000, 21000]
    assert trace.events.duration_ns[kernels].tolist() == [5000, 5000]
    stream = next(track for track in trace.tracks if track.kind is TrackKind.STREAM)
    assert (stream.device, stream.stream, stream.process_name) == (0, 13, "/device:GPU:0")


def test_both_ends_are_rounded_alike():
    """What nests in picoseconds nests in nanoseconds."""
    events = [(1, 1_900, 8_200, []), (1, 2_100, 7_900, [])]
    trace = read(made.field(1, made.plane("/host:CPU", [made.line(1, "t", 0, events)], {1: made.field(2, b"f")})))
    ends = trace.events.start_ns + trace.events.duration_ns
    assert trace.events.start_ns.tolist() == [1, 2] and ends.tolist() == [10, 10]


def test_derived_lines_are_not_work():
    stream = made.line(1, "Stream #1(Compute)", 0, [(1, 0, 10_000, [])])
    ops = made.line(2, "XLA Ops", 0, [(2, 0, 12_000, [])])
    modules = made.line(3, "XLA Modules", 0, [(3, 0, 12_000, [])])
    steps = made.line(4, "Steps", 0, [(4, 0, 12_000, [])])
    names = {1: made.field(2, b"gemm"), 2: made.field(2, b"fusion"), 3: made.field(2, b"jit_step"), 4: made.field(2, b"17")}
    trace = read(made.field(1, made.plane("/device:GPU:0", [stream, ops, modules, steps], names)))
    kinds = {trace.tracks[track].thread_name: Kind(kind) for track, kind in zip(trace.events.track, trace.events.kind, strict=True)}
    assert kinds == {
        "Stream #1(Compute)": Kind.KERNEL, "XLA Ops": Kind.DEVICE_OP, "XLA Modules": Kind.DEVICE_MODULE, "Steps": Kind.DEVICE_STEP,
    }  # fmt: skip
    assert trace.column("step").values.tolist() == [17]
    tpu = read(made.field(1, made.plane("/device:TPU:0", [ops, modules], names)))
    assert [Kind(kind) for kind in sorted(tpu.events.kind.tolist())] == [Kind.KERNEL, Kind.DEVICE_MODULE]


def test_a_display_name_is_shown_and_the_text_kept():
    metadata = {1: made.field(2, b"%fusion.1 = f32[8] fusion(...)") + made.field(4, b"fusion.1")}
    trace = read(made.field(1, made.plane("/device:TPU:0", [made.line(1, "XLA Ops", 0, [(1, 0, 5000, [])])], metadata)))
    assert trace.strings[trace.events.name[0]] == "fusion.1"
    assert texts(trace, "long_name", np.asarray([0])) == ["%fusion.1 = f32[8] fusion(...)"]


def event_ends(data: bytes) -> list[int]:
    """The place behind each event, by the plain reader."""
    ends = []

    def inside(first: int, last: int, path: tuple[int, ...]) -> None:
        place = first
        while place < last:
            tag, place = wire.varint(data, place)
            if tag & 7 == wire.VARINT:
                _, place = wire.varint(data, place)
                continue
            size, place = wire.varint(data, place)
            here = (*path, tag >> 3)
            if here in ((1,), (1, 3)):
                inside(place, place + size, here)
            elif here == (1, 3, 4):
                ends.append(place + size)
            place += size

    inside(0, len(data), ())
    return ends


def test_a_cut_keeps_all_complete_events_before_it():
    data = made.xspace(60)
    ends = event_ends(data)
    assert len(ends) == 120
    rng = random.Random(8)
    for cut in [rng.randrange(30, len(data)) for _ in range(200)]:
        trace = read(data[:cut])
        assert len(trace.events) == sum(end <= cut for end in ends), cut
        edge = cut in ends or trace.quality.truncated
        assert edge, cut
    whole = read(data)
    assert not whole.quality.truncated and whole.quality.unparsed == 0


def survive(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(made.xspace(5))
    for _ in range(rng.randrange(1, 10)):
        at, size = rng.randrange(len(data)), rng.choice([1, 1, 2, 8, 60])
        action = rng.randrange(3)
        if action == 0:
            data[at] = rng.randrange(256)
        elif action == 1:
            del data[at : at + size]
        else:
            data[at:at] = rng.randbytes(size)
        data = data or bytearray(b"\x0a")
    try:
        trace = read(bytes(data))
    except UsageError as refused:
        assert "\n" not in refused.message
        return
    assert len(trace.events) <= len(data) // 2 and (trace.events.duration_ns >= 0).all()
    for column in trace.side.values():
        assert (np.diff(column.rows) > 0).all() and (not len(column) or column.rows[-1] < len(trace.events))


def test_mutated_protobufs_are_survived():
    for seed in range(150):
        survive(seed)


@pytest.mark.full
def test_ten_thousand_mutated_protobufs_are_survived():
    for seed in range(10_000):
        survive(seed)


def test_an_event_of_countless_fields_is_no_hang():
    event = made.field(2, 5) + b"\x08\x01" * 100_000
    line = made.field(1, 1) + made.field(2, b"t") + made.field(4, event) + made.field(4, made.field(1, 1) + made.field(3, 9000))
    trace = read(made.field(1, made.plane("/host:CPU", [line], {1: made.field(2, b"f")})))
    assert len(trace.events) == 1 and trace.quality.unparsed == 1


@pytest.mark.parametrize("data", [b"hello world", b"\x00\x01", b"\xff" * 50])
def test_what_is_no_protobuf_is_said_in_one_line(data):
    with pytest.raises(UsageError, match="no plane"):
        xplane.read_file(io.BytesIO(data), "x.xplane.pb")
