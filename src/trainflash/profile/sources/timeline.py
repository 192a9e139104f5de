"""Rows of a run that the probe recorded, as `export` shows them → `Profile`: one trace per rank, with its workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainflash.profile.building import TraceBuilder
from trainflash.profile.events import Identity, Kind, Profile, Trace, TrackKind
from trainflash.profile.export import Counter, Part, Process

STEPS = "steps"  # the track whose slices are the steps
PHASES = "phases"
DEVICE = "device"  # tracks that begin with this word show work on the device
MAIN = "training thread"  # steps and phases are what one thread does; elsewhere they are rows of their own, to be looked at
COMPUTING = ("Fwd", "Bwd", "Opt", "Eval")  # phases in which operators run; in the others Python works or waits


def profile_of(ranks: Sequence[tuple[int, Sequence[Process]]], machine: Sequence[Counter], origin: str, about: dict[str, str]) -> Profile:
    """`ranks`: each rank's number, its process and those of its workers; `machine`: counters, which go with the first rank."""
    traces = []
    for place, (rank, processes) in enumerate(ranks):
        counters = machine if place == 0 else ()
        identity = Identity(rank=rank, world_size=len(ranks), rank_from="probe", pid=processes[0].pid if processes else None)
        traces.append(_trace(processes, counters, f"rank {rank}", identity, about))
    return Profile(tuple(traces), origin, provenance=dict(about))


def _trace(processes: Sequence[Process], counters: Sequence[Counter], name: str, identity: Identity, about: dict[str, str]) -> Trace:
    builder = TraceBuilder("probe", name)
    for process in processes:
        for row in process.tracks:
            on_device = row.name.startswith(DEVICE)
            thread = MAIN if row.name in (STEPS, PHASES) else row.name
            track = builder.track(str(process.pid), thread, TrackKind.DERIVED if on_device else TrackKind.HOST)
            builder.describe(track, process_name=process.name, thread_name=thread, device=0 if on_device else None)
            for part in row.parts:
                _add(builder, part, track, _kind(row.name, part), row.name == STEPS)
    for counter in counters:
        label = f"{counter.name} [{counter.unit}]" if counter.unit else counter.name
        for time, value in zip(counter.t_ns, counter.value, strict=True):
            builder.add_sample("machine", label, int(time), float(value))
    return builder.finish(identity, about)


def _kind(row: str, part: Part) -> Kind:
    if row == PHASES:
        return Kind.HOST_OP if part.names[0] in COMPUTING else Kind.PYTHON
    return Kind.DEVICE_ANNOTATION if row.startswith(DEVICE) else Kind.ANNOTATION


def _add(builder: TraceBuilder, part: Part, track: int, kind: Kind, are_steps: bool) -> None:
    start = np.asarray(part.start_ns, np.int64)
    count = len(start)
    ids = np.asarray([builder.strings[name] for name in part.names], np.int32)
    names = ids[np.asarray(part.name, np.int64)] if part.name is not None else np.full(count, ids[0], np.int32)
    category = np.full(count, builder.strings[""], np.int32)
    place = np.full(count, track, np.int32)
    if part.end_ns is None:
        builder.add_marks(t_ns=start, name=names, category=category, track=place)
        return
    length = np.maximum(np.asarray(part.end_ns, np.int64) - start, 0)
    side = {"step": (None, np.arange(count, dtype=np.int64))} if are_steps else {}
    builder.add_events(
        side, start_ns=start, duration_ns=length, name=names, category=category, track=place, kind=np.full(count, kind, np.int8)
    )
