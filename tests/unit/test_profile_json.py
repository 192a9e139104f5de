"""JSON traces, old and new style, whole, cut, damaged: what is readable is read, what is not is said."""

from __future__ import annotations

import gzip
import io
import json
import random
import zlib

import numpy as np
import profile_traces as made
import pytest

from trainflash.errors import UsageError
from trainflash.profile.events import Kind, TrackKind, content_digest
from trainflash.profile.pairing import pair
from trainflash.profile.sources import chrome
from trainflash.profile.sources.files import read_stream

SMALL_WINDOW = 8192


def read(text: bytes, *, chunk: int | None = None, window: int = 1 << 20):
    chunks = [text[at : at + chunk] for at in range(0, len(text), chunk)] if chunk else [text]
    return chrome.read(chunks, "trace.json", (), window)


def count(trace, kind):
    return int((trace.events.kind == kind).sum())


def values(trace, column, kind):
    return trace.column(column).take(trace.rows(kind), -1).tolist()


@pytest.mark.parametrize("old", [False, True])
def test_both_styles_mean_the_same(old):
    trace = read(made.text(made.kineto(steps=2, kernels=5, old=old)))
    assert (trace.source, trace.identity.rank, trace.identity.world_size) == ("kineto", 0, 2)
    expected = {Kind.HOST_OP: 10, Kind.RUNTIME: 10, Kind.KERNEL: 10, Kind.MEMCPY: 2, Kind.ANNOTATION: 2, Kind.SPAN: 1}
    assert {kind: count(trace, kind) for kind in expected} == expected
    assert sorted(values(trace, "correlation", Kind.KERNEL)) == sorted(values(trace, "correlation", Kind.RUNTIME))
    assert set(values(trace, "device", Kind.KERNEL)) == {0} and set(values(trace, "stream", Kind.KERNEL)) == {7}
    assert values(trace, "step", Kind.ANNOTATION) == [3, 4]
    assert values(trace, "bytes", Kind.MEMCPY) == [4096, 4096]
    stream = next(track for track in trace.tracks if track.kind is TrackKind.STREAM)
    assert (stream.device, stream.stream, stream.labels) == (0, 7, "GPU 0")
    dims = [trace.strings[number] for number in values(trace, "input_dims", Kind.HOST_OP)]
    assert set(dims) == {"[[64, 3], []]"}
    assert len(trace.memory.t_ns) == 2 and sorted(trace.memory.bytes.tolist()) == [-512, 512]
    assert len(trace.flows.id) == 0, "arrows of launches say what correlation says"
    assert trace.quality.without_time == trace.quality.unparsed == 0 and not trace.quality.truncated


def test_a_collective_keeps_its_sizes():
    trace = read(made.text(made.kineto(steps=1)))
    column = trace.column("collective")
    assert [trace.strings[number] for number in column.values.tolist()] == ["allreduce"]
    assert trace.column("in_elements").values.tolist() == [1024] and trace.column("group_size").values.tolist() == [2]
    assert trace.column("group_ranks").rows.tolist() == column.rows.tolist()


def test_the_form_of_the_text_does_not_matter():
    trace = made.kineto(steps=3)
    whole = content_digest([read(made.text(trace))])
    for text in (made.text(trace, indent=2), made.text({"displayTimeUnit": "ms", **trace}), json.dumps(trace["traceEvents"]).encode()):
        assert content_digest([read(text)]) == whole
        for chunk, window in ((997, SMALL_WINDOW), (10_000, SMALL_WINDOW), (101, 1 << 20)):
            assert content_digest([read(text, chunk=chunk, window=window)]) == whole


@pytest.mark.parametrize("seed", range(5))
def test_order_in_the_file_does_not_matter(seed):
    trace = made.kineto(steps=2, kernels=4)
    trace["traceEvents"] += trace["traceEvents"][8:12]  # equal events
    trace["traceEvents"] += [{**trace["traceEvents"][7], "ph": phase, "ts": 5_000_000 + at} for at, phase in enumerate("BBEBEE")]
    trace["traceEvents"] += [{"ph": "C", "name": "loss", "pid": 1, "ts": at, "args": {"value": at, "other": 2}} for at in range(5)]
    first = read(made.text(trace))
    second = read(made.text(made.shuffled(trace, seed)))
    assert content_digest([first]) == content_digest([second])
    assert first.quality == second.quality and first.tracks == second.tracks
    assert [(series.name, series.value.tolist()) for series in first.counters] == [("loss", [0, 1, 2, 3, 4]), ("loss.other", [2] * 5)]


def test_parents_stand_before_children():
    events = [made.x("cpu_op", name, 1, 1, ts, dur, {}) for name, ts, dur in (("c", 10, 5), ("a", 10, 50), ("b", 10, 20), ("d", 31, 2))]
    trace = read(made.text(events))
    assert [trace.strings[name] for name in trace.events.name] == ["a", "b", "c", "d"]


def test_times_are_exact_to_the_nanosecond():
    """A float of microseconds since 1970 holds quarters of a microsecond only; the text holds more."""
    stamps = ["1716412345678901.123", "1716412345678901.124", "1716412345678902", "1.5e12", "1500000012.0004"]
    body = ",".join(
        f'{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":{at},"ts":{stamp},"dur":0.001}}' for at, stamp in enumerate(stamps)
    )
    trace = read(f'{{"baseTimeNanoseconds": 5, "traceEvents":[{body}]}}'.encode())
    expected = [1716412345678901123, 1716412345678901124, 1716412345678902000, 1_500_000_000_000_000, 1_500_000_012_000]
    assert trace.events.start_ns.tolist() == [stamp + 5 for stamp in expected]
    assert set(trace.events.duration_ns.tolist()) == {1}


def test_events_without_a_time_are_counted_and_left_out():
    events = [made.x("kernel", "k", 0, 7, ts, 1, {}) for ts in (0, 1_700_000_000_000_000, 1_700_000_000_000_010)]
    trace = read(made.text([*events, made.x("kernel", "no time", 0, 7, None, 1, {})]))
    assert len(trace.events) == 2 and trace.quality.without_time == 2
    near = read(made.text([made.x("kernel", "k", 0, 7, ts, 1, {}) for ts in (0, 5)]))
    assert len(near.events) == 2 and near.quality.without_time == 0


def test_begins_and_ends_become_slices():
    def at(phase, time, name, **more):
        return {"ph": phase, "ts": time, "name": name, "pid": 1, "tid": 1, "cat": "c", **more}

    events = [at("B", 1, "outer"), at("B", 2, "inner"), at("E", 3, "inner"), at("B", 3, "next"), at("E", 4, ""), at("E", 9, "outer")]
    events += [at("E", 20, "never begun"), at("B", 30, "never ended")]
    events += [at("b", 1, "async", id="0x1"), at("b", 2, "async", id="0x2"), at("e", 8, "async", id="0x1"), at("e", 9, "async", id="0x2")]
    trace = read(made.text(made.shuffled({"traceEvents": events}, 3)))
    slices = sorted(
        (trace.strings[name], start // 1000, length // 1000)
        for name, start, length in zip(trace.events.name, trace.events.start_ns, trace.events.duration_ns, strict=True)
    )
    assert slices == [("async", 1, 7), ("async", 2, 7), ("inner", 2, 1), ("next", 3, 1), ("outer", 1, 8)]
    assert trace.quality.unmatched == 2
    assert sum(track.kind is TrackKind.ASYNC for track in trace.tracks) == 2


@pytest.mark.parametrize("seed", range(30))
def test_pairs_equal_a_stack(seed):
    """Against the plain algorithm, on random begins and ends of several tracks with unmatched ones; times are distinct."""
    rng = random.Random(seed)
    rows = [(rng.randrange(3), time, rng.random() < 0.5) for time in range(rng.randrange(1, 60))]
    open_rows: dict[int, list[int]] = {}
    expected = set()
    for row, (track, _, end) in enumerate(rows):
        stack = open_rows.setdefault(track, [])
        if not end:
            stack.append(row)
        elif stack:
            expected.add((stack.pop(), row))
    order = rng.sample(range(len(rows)), len(rows))
    track, time, end = (np.asarray([rows[row][column] for row in order]) for column in range(3))
    first, last = pair(track, time, end.astype(bool), np.zeros(len(rows), np.int64))
    assert {(order[one], order[other]) for one, other in zip(first.tolist(), last.tolist(), strict=True)} == expected


BROKEN = [
    ('"args":{"v":N/A}', "bare N/A"),
    ('"args":{"v":NaN,"w":-inf}', "NaN"),
    ('"args":{"v":"tab\there\n"}', "control characters"),
    ('"args":{"v":"say "hi" now"}', "quotes inside"),
    ('"args":{"v":"C:\\q\\u12"}', "backslashes"),
    ('"args":{"v":"\\ud800"}', "a lone surrogate"),
    ('"args":{"v":1e999}', "a number out of range"),
    ('"args":{"v":1,}', "a comma too many"),
]


@pytest.mark.parametrize("broken, what", BROKEN, ids=[what for _, what in BROKEN])
@pytest.mark.parametrize("place", [0, 50, 99])
def test_a_broken_event_costs_no_other(broken, what, place):
    events = [f'{{"ph":"X","cat":"cpu_op","name":"op{at}","pid":1,"tid":1,"ts":{at * 10},"dur":5}}' for at in range(100)]
    events[place] = f'{{"ph":"X","cat":"cpu_op","name":"op{place}","pid":1,"tid":1,"ts":{place * 10},"dur":5,{broken}}}'
    trace = read(('{"traceEvents":[' + ",".join(events) + '],"traceName":"x"}').encode(), window=SMALL_WINDOW)
    assert len(trace.events) + trace.quality.unparsed == 100
    assert len(trace.events) == 100, f"{what} can be mended"
    assert not trace.quality.truncated


def test_an_event_beyond_repair_is_counted():
    events = [json.dumps(made.x("cpu_op", f"op{at}", 1, 1, at * 10, 5, {})) for at in range(20)]
    events[7] = '{"ph":"X","cat":"cpu_op" "name":::}'
    trace = read(("[" + ",\n".join([*events, "17", '"text"', "null"]) + "]").encode())
    assert len(trace.events) == 19 and trace.quality.unparsed == 4 and not trace.quality.truncated


def test_nothing_after_the_events_is_an_event():
    trace = made.kineto(steps=1)
    trace["more"] = [{"ph": "X", "name": "no"}, {"ph": "X", "name": "no"}]
    assert content_digest([read(made.text(trace), window=SMALL_WINDOW)]) == content_digest([read(made.text(made.kineto(steps=1)))])


def pieces(seed=1):
    """(text, place behind each event)."""
    trace = made.kineto(steps=4, kernels=6)
    head = b'{"schemaVersion": 1, "deviceProperties": [{"id": 0}],\n"traceEvents": [\n'
    text, ends = head, []
    for event in trace["traceEvents"]:
        text += (b",\n" if ends else b"") + json.dumps(event, indent=random.Random(seed).choice([None, 1])).encode()
        ends.append(len(text))
    return text + b'\n], "traceName": "x"\n}\n', ends


def test_a_cut_keeps_all_complete_events_before_it():
    text, ends = pieces()
    rng = random.Random(5)
    for cut in [rng.randrange(100, len(text) - 2) for _ in range(200)]:
        complete = sum(end <= cut for end in ends)
        trace = read(text[:cut], chunk=rng.choice([None, 1000]), window=SMALL_WINDOW)
        assert trace.quality.total_events == complete, cut
        assert trace.quality.truncated and trace.quality.unparsed == 0, cut
        assert trace.quality.cut_at is not None and trace.quality.cut_at <= cut
        if complete < len(ends):
            assert trace.quality.cut_at >= (ends[complete - 1] if complete else 0)


def test_a_cut_gzip_keeps_all_complete_events_before_it():
    text, ends = pieces()
    packed = gzip.compress(text, mtime=0)
    rng = random.Random(6)
    for cut in [rng.randrange(200, len(packed) - 1) for _ in range(200)]:
        unpacked = zlib.decompressobj(31).decompress(packed[:cut])
        if text[: len(unpacked)].find(b"traceEvents") < 0:
            continue
        trace = read_stream(io.BytesIO(packed[:cut]), "trace.json.gz")
        assert trace.quality.total_events == sum(end <= len(unpacked) for end in ends), cut
        assert trace.quality.truncated and any("gzip" in note for note in trace.quality.notes)


def test_members_of_a_gzip_file_follow_each_other():
    text, ends = pieces()
    packed = gzip.compress(text[:700]) + gzip.compress(text[700:]) + b"\0" * 100
    trace = read_stream(io.BytesIO(packed), "trace.json.gz")
    assert trace.quality.total_events == len(ends) and not trace.quality.truncated


def mutated(seed: int) -> bytes:
    """A small trace with a few bytes changed, swapped, doubled or left out."""
    rng = random.Random(seed)
    data = bytearray(made.text(made.kineto(steps=1, kernels=2, old=rng.random() < 0.3), indent=rng.choice([None, 1])))
    for _ in range(rng.randrange(1, 12)):
        at, size = rng.randrange(len(data)), rng.choice([1, 1, 1, 2, 8, 60, 400])
        action = rng.randrange(5)
        if action == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif action == 1:
            del data[at : at + size]
        elif action == 2:
            data[at:at] = data[at : at + size] * rng.randrange(1, 4)
        elif action == 3:
            data[at:at] = rng.choice([b"{", b"}", b"[", b"]", b'"', b",", b"\\", b":", b"null", b"1e99", b"[" * 3000, b"-", b"\xff"])
        else:
            other = rng.randrange(len(data))
            data[at : at + size], data[other : other + size] = data[other : other + size], data[at : at + size]
        data = data or bytearray(b"{")
    return bytes(data)


def survive(seed: int) -> None:
    text = mutated(seed)
    try:
        trace = read(text, window=SMALL_WINDOW)
    except UsageError as refused:
        assert "\n" not in refused.message
        return
    assert len(trace.events) <= text.count(b"{"), seed
    assert (trace.events.duration_ns >= 0).all()
    for column in trace.side.values():
        assert (np.diff(column.rows) > 0).all() and (not len(column) or column.rows[-1] < len(trace.events))


def test_mutated_traces_are_survived():
    for seed in range(250):
        survive(seed)


@pytest.mark.full
def test_ten_thousand_mutated_traces_are_survived():
    for seed in range(10_000):
        survive(seed)


@pytest.mark.parametrize(
    "text, said",
    [(b"", "empty"), (b"  \n", "empty"), (b'{"a": 1}', "traceEvents"), (b"{}", "traceEvents"), (b"\x89PNG\r\n\x1a\n....", "picture"),
     (b"hello", "neither JSON"), (b"\x1f\x8b\x08\x00", "empty"), (b"PK\x03\x04rest", "zip")],
)  # fmt: skip
def test_what_is_no_trace_is_said_in_one_line(text, said):
    with pytest.raises(UsageError) as refused:
        read_stream(io.BytesIO(text), "some.json")
    assert said in refused.value.message and "\n" not in refused.value.message and refused.value.exit_code == 2
