"""Devices, ranks and collectives as rows of the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trainflash.profile.analysis.alignment import Waiting
from trainflash.profile.analysis.collectives import Collectives, bus_factor
from trainflash.profile.analysis.figures import ratio, share, us
from trainflash.profile.analysis.intervals import clipped, union, without
from trainflash.profile.analysis.provenance import device_names
from trainflash.profile.analysis.step_marks import RankSteps
from trainflash.profile.analysis.timeline import PARTS, Timeline
from trainflash.profile.analysis.view import Work
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import CommunicationOp
from trainflash.schema.profile_times import DeviceUse, RankUse

MOST_EXAMPLES = 3


@dataclass(frozen=True)
class Member:
    """One rank with everything that was found out about it. `number` is its rank, or its place where none is recorded."""

    number: int
    known: bool  # the trace says its rank
    timeline: Timeline  # of all that it did
    devices: tuple[Timeline, ...]  # of each device that it drives
    steps: RankSteps
    warmup: int
    collectives: Collectives


def device_uses(members: Sequence[Member]) -> tuple[DeviceUse, ...]:
    """Every device over its whole trace."""
    answers = []
    for member in members:
        rank, device = member.timeline.rank, member.timeline.device
        kernel = rank.trace.events.kind[device.row] == Kind.KERNEL
        whole = (int(member.steps.start[0]), int(member.steps.end[-1])) if len(member.steps) else None
        for number, name in enumerate(rank.devices):
            mine = device.device == number
            if not mine.any():
                continue
            duration = device.end - device.start
            extent = int(device.end[mine].max() - device.start[mine].min())
            running = device.spans(mine & kernel)
            traced = clipped(running, whole).total if whole else running.total
            answers.append(
                DeviceUse(
                    rank=member.number if member.known else None,
                    device=name,
                    name=device_names(rank.trace.provenance).get(name),
                    kernels=int((mine & kernel).sum()),
                    kernel_sum_us=us(int(duration[mine & kernel].sum())),
                    busy_us=us(device.spans(mine).total),
                    kernel_busy_us=us(running.total),
                    span_us=us(extent),
                    communication_sum_us=us(int(duration[mine & (device.work == Work.COMMUNICATION)].sum())),
                    utilization=ratio(traced, whole[1] - whole[0] if whole else extent),
                    streams=len(np.unique(device.track[mine])),
                )
            )
    return tuple(answers)


def rank_uses(members: Sequence[Member], waiting: Waiting | None) -> tuple[RankUse, ...]:
    """Every rank by itself."""
    answers = []
    for member in members:
        timeline = member.timeline
        total = sum(each.whole.total for each in member.devices)
        parts = {name: share(sum(each.parts_ns[name] for each in member.devices), total) for name in PARTS}
        device, inside = timeline.device, timeline.inside
        talking = device.work[inside.at] == Work.COMMUNICATION
        duration = inside.duration[talking]
        waits = waiting.within(member.number, timeline)[inside.at[talking]] if waiting else None
        matched = waits >= 0 if waits is not None else None
        waited = int(waits[matched].sum()) if waits is not None else None
        steady = member.steps.duration[member.warmup :]
        answers.append(
            RankUse(
                rank=member.number,
                window_us=us(timeline.whole.total),
                compute_share=parts["compute"],
                communication_share=parts["communication"],
                copy_share=parts["copy"],
                host_share=parts["host"],
                stall_share=parts["stall"],
                communication_us=us(int(duration.sum())),
                waiting_us=None if waited is None else us(waited),
                transfer_us=None if waited is None else us(int(duration[matched].sum()) - waited),
                waiting_share=None if waited is None else ratio(waited, int(duration.sum())),
                last_to_arrive=waiting.last[member.number] if waiting else None,
                caused_waiting_us=us(waiting.caused[member.number]) if waiting else None,
                step_mean_us=us(int(steady.sum()) / len(steady)) if len(steady) else None,
                behind_us=us(waiting.behind[member.number]) if waiting and waiting.behind[member.number] is not None else None,
            )
        )
    return tuple(answers)


@dataclass
class _Kind:
    count: int = 0
    total: int = 0
    bytes: int = 0
    sized: int = 0
    timed: int = 0  # nanoseconds in which the sized ones moved their bytes
    bus: float = 0.0  # bytes times the factor of the bus
    bus_known: bool = True
    sizes: set[int] = field(default_factory=set)
    exposed: int = 0
    waiting: int = 0
    matched: int = 0
    matched_ns: int = 0
    examples: dict[str, int] = field(default_factory=dict)


def communication_ops(members: Sequence[Member], waiting: Waiting | None, world_size: int | None) -> tuple[CommunicationOp, ...]:
    """Collectives within the windows by kind, costliest first; all ranks together."""
    found: dict[str, _Kind] = {}
    for member in members:
        mine, timeline = member.collectives, member.timeline
        if not len(mine):
            continue
        waits = waiting.of[member.number][mine.at] if waiting else np.full(len(mine), -1, np.int64)
        parted = waiting.within(member.number, timeline)[mine.at] if waiting else waits
        for place in np.flatnonzero(timeline.meets(mine.start, mine.end)).tolist():
            _count(found.setdefault(mine.kind[place], _Kind()), member, place, (int(waits[place]), int(parted[place])), world_size)
        for kind, exposed in _exposed(member).items():
            if kind in found:
                found[kind].exposed += exposed
    answers = [_communication(kind, sums) for kind, sums in found.items()]
    return tuple(sorted(answers, key=lambda each: (-each.total_duration, each.collective)))


def _exposed(member: Member) -> dict[str, int]:
    """Nanoseconds in which a kind of collective runs and nothing computes on its device."""
    mine = member.collectives
    kinds = sorted(set(mine.kind))
    of_event = np.full(len(member.timeline.device), -1, np.int64)
    of_event[mine.at] = [kinds.index(kind) for kind in mine.kind]
    found = dict.fromkeys(kinds, 0)
    for timeline in member.devices:
        inside = timeline.inside
        here = timeline.of_events(of_event)[inside.at]
        for number, kind in enumerate(kinds):
            spans = union(inside.start[here == number], inside.end[here == number])
            found[kind] += without(spans, timeline.compute).total
    return found


def _count(sums: _Kind, member: Member, place: int, waits: tuple[int, int], world_size: int | None) -> None:
    """Add one collective. `waits`: its whole waiting, and that within the window; -1 unknown."""
    mine, (wait, parted) = member.collectives, waits
    whole = int(mine.end[place] - mine.start[place])
    start, end = member.timeline.clip(np.asarray([mine.start[place], mine.end[place]])).tolist()
    duration = end - start
    sums.count += 1
    sums.total += duration
    name = mine.rank.name(int(mine.rank.device.row[mine.at[place]]))
    sums.examples[name] = sums.examples.get(name, 0) + duration
    if wait >= 0:
        sums.waiting += parted
        sums.matched += 1
        sums.matched_ns += duration
    size = int(mine.group_size[place]) if mine.group_size[place] > 0 else world_size
    if size:
        sums.sizes.add(size)
    if mine.bytes[place] >= 0:
        factor = bus_factor(mine.kind[place], size)
        sums.sized += 1
        sums.bytes += int(mine.bytes[place])
        sums.timed += whole - max(wait, 0)
        sums.bus += int(mine.bytes[place]) * (factor or 0.0)
        sums.bus_known &= factor is not None


def _communication(kind: str, sums: _Kind) -> CommunicationOp:
    measured = bool(sums.sized and sums.timed)
    named = sorted(sums.examples, key=lambda name: (-sums.examples[name], name))
    return CommunicationOp(
        collective=kind,
        count=sums.count,
        total_duration=us(sums.total),
        avg_duration=us(sums.total / sums.count),
        group_size=next(iter(sums.sizes)) if len(sums.sizes) == 1 else None,
        bytes_total=sums.bytes if sums.sized else None,
        calls_with_size=sums.sized,
        algorithm_bandwidth_gb_s=round(sums.bytes / sums.timed, 3) if measured else None,
        bus_bandwidth_gb_s=round(sums.bus / sums.timed, 3) if measured and sums.bus_known else None,
        exposed_us=us(sums.exposed),
        waiting_us=us(sums.waiting) if sums.matched else None,
        transfer_us=us(sums.matched_ns - sums.waiting) if sums.matched else None,
        examples=tuple(named[:MOST_EXAMPLES]),
    )
