"""Traces for tests of the analysis: events written as a program would run, in microseconds, made into the model's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainflash.profile.events import (
    INTEGERS,
    REALS,
    SIDE_COLUMNS,
    TEXTS,
    Events,
    Flows,
    Identity,
    Kind,
    Marks,
    Memory,
    Profile,
    Quality,
    Sparse,
    Trace,
    Track,
    TrackKind,
)

STREAM_KINDS = {Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.DEVICE_ANNOTATION}
LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
TYPES = {INTEGERS: np.int64, REALS: np.float64, TEXTS: np.int32}


@dataclass(frozen=True)
class Event:
    """One event; `place` is (process, thread). Times in microseconds."""

    name: str
    kind: Kind
    start: float
    duration: float
    place: tuple[str, str]
    side: dict[str, Any] = field(default_factory=dict)
    category: str = ""
    track_kind: TrackKind | None = None


def host(name: str, start: float, duration: float, *, kind: Kind = Kind.HOST_OP, thread: str = "1", **side: Any) -> Event:
    """An event of a host thread."""
    return Event(name, kind, start, duration, ("100", thread), side)


def call(name: str, start: float, duration: float, correlation: int | None = None, *, thread: str = "1", **side: Any) -> Event:
    """A call into the runtime."""
    given = {} if correlation is None else {"correlation": correlation}
    return Event(name, Kind.RUNTIME, start, duration, ("100", thread), {**given, **side})


def work(name: str, start: float, duration: float, correlation: int | None = None, *, stream: str = "7", kind: Kind = Kind.KERNEL,
         device: str = "0", **side: Any) -> Event:  # fmt: skip
    """A kernel, copy or memset."""
    given = {} if correlation is None else {"correlation": correlation}
    return Event(name, kind, start, duration, (device, stream), {**given, **side})


def launched(name: str, call_at: float, start: float, duration: float, correlation: int, *, thread: str = "1", call_us: float = 5,
             kind: Kind = Kind.KERNEL, stream: str = "7", **side: Any) -> list[Event]:  # fmt: skip
    """A kernel and the call that launched it."""
    launch = "cudaLaunchKernel" if kind == Kind.KERNEL else "cudaMemcpyAsync"
    return [
        call(launch, call_at, call_us, correlation, thread=thread),
        work(name, start, duration, correlation, kind=kind, stream=stream, **side),
    ]


def step(number: int, start: float, duration: float, *, thread: str = "1") -> Event:
    """The profiler's mark of a step."""
    return Event(f"ProfilerStep#{number}", Kind.ANNOTATION, start, duration, ("100", thread), {"step": number})


def flat(*parts: Event | Sequence[Event]) -> list[Event]:
    """Events, and lists of events, as one list."""
    return [event for part in parts for event in ([part] if isinstance(part, Event) else part)]


def trace(
    events: Sequence[Event],
    *,
    identity: Identity | None = None,
    provenance: dict[str, Any] | None = None,
    quality: Quality | None = None,
    source: str = "kineto",
) -> Trace:
    """The model of `events`, in the order that it promises."""
    texts = {event.name for event in events} | {event.category for event in events}
    texts |= {value for event in events for name, value in event.side.items() if SIDE_COLUMNS[name] == TEXTS}
    strings = tuple(sorted(texts))
    code = {text: number for number, text in enumerate(strings)}
    tracks = _tracks(events)
    place = {(track.process, track.thread): number for number, track in enumerate(tracks)}
    rows = [
        (place[event.place], round(event.start * 1000), -round(event.duration * 1000), event.side.get("external_id", -1),
         code[event.category], code[event.name], sorted((key, str(value)) for key, value in event.side.items()), number)
        for number, event in enumerate(events)
    ]  # fmt: skip
    rows.sort()
    ordered = [events[row[-1]] for row in rows]
    columns = np.asarray([row[:3] for row in rows], np.int64).reshape(-1, 3)
    side = {}
    for name, kind in SIDE_COLUMNS.items():
        have = [(row, event.side[name]) for row, event in enumerate(ordered) if name in event.side]
        if have:
            values = [code[value] if kind == TEXTS else value for _, value in have]
            side[name] = Sparse(np.asarray([row for row, _ in have], np.int32), np.asarray(values, TYPES[kind]))
    none, small = np.empty(0, np.int64), np.empty(0, np.int32)
    return Trace(
        source=source,
        file="trace.json",
        strings=strings,
        tracks=tracks,
        events=Events(
            start_ns=columns[:, 1],
            duration_ns=-columns[:, 2],
            name=np.asarray([code[event.name] for event in ordered], np.int32),
            category=np.asarray([code[event.category] for event in ordered], np.int32),
            track=columns[:, 0].astype(np.int32),
            kind=np.asarray([int(event.kind) for event in ordered], np.int8),
        ),
        side=side,
        flows=Flows(none, small, none, small, np.empty(0, np.int8)),
        memory=Memory(none, none, none, none, small, small, small),
        marks=Marks(none, small, small, small),
        counters=(),
        identity=identity or Identity(),
        provenance=provenance or {},
        quality=quality or Quality(total_events=len(events), complete_events=len(events)),
    )


def _tracks(events: Sequence[Event]) -> tuple[Track, ...]:
    found: dict[tuple[str, str], Track] = {}
    for event in events:
        on_stream = event.kind in STREAM_KINDS
        kind = event.track_kind if event.track_kind is not None else TrackKind.STREAM if on_stream else TrackKind.HOST
        process, thread = event.place
        digits = on_stream and process.isdigit()
        found[event.place] = Track(
            process,
            thread,
            kind=kind,
            device=int(process) if digits else None,
            stream=int(thread) if on_stream and thread.isdigit() else None,
        )
    return tuple(sorted(found.values(), key=lambda track: track.key))


def profile(*traces: Trace, origin: str = "somewhere") -> Profile:
    """What a source of these ranks is decoded into."""
    return Profile(tuple(traces), origin)


def ranks(*per_rank: Sequence[Event]) -> Profile:
    """One trace for each list of events, with ranks 0, 1, …"""
    world = len(per_rank)
    return profile(*[trace(events, identity=Identity(rank=rank, world_size=world)) for rank, events in enumerate(per_rank)])


def training(steps: int = 8, *, loading: float = 300, heavy_every: int = 0, first: float = 0) -> list[Event]:
    """Steps of loading, forward under a module's name, optimizer; two kernels each."""
    events, at, correlation = [], 0.0, 1
    for number in range(steps):
        begin = at
        at += first if number == 0 else 0
        events.append(host(LOADING, at + 5, loading))
        events.append(host("aten::randn", at + 10, loading - 20))
        at += loading + 10
        events.append(host("forward", at, 100, kind=Kind.ANNOTATION))
        events.append(
            host("aten::mm", at + 5, 30, input_dims="[[128, 64], [64, 32]]", call_stack="train.py(12): forward;torch/nn.py(3): call")
        )
        events += launched("ampere_sgemm_128x64_tn", at + 10, at + 25, 400, correlation)
        events.append(host("Optimizer.step#AdamW.step", at + 110, 60))
        events += launched("multi_tensor_apply_kernel", at + 120, at + 425, 50, correlation + 1)
        correlation += 2
        at += 500
        if heavy_every and number % heavy_every == heavy_every - 1:
            events += launched("ampere_sgemm_128x64_tn", at, at + 10, 800, correlation)
            correlation += 1
            at += 900
        events.append(step(number, begin, at - begin))
    return events
