"""A decoded profile → `ProfileSummary`: every question is asked in its turn, and the answers are put together and digested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainflash.errors import UsageError
from trainflash.profile.analysis import (
    across,
    alignment,
    breakdown,
    candidates,
    copies,
    gaps,
    idle,
    launches,
    memory,
    ops,
    regions,
    steps,
    xprof,
)
from trainflash.profile.analysis.across import Member
from trainflash.profile.analysis.collectives import collectives_of
from trainflash.profile.analysis.intervals import common
from trainflash.profile.analysis.provenance import missing, overview, provenance, run_metadata
from trainflash.profile.analysis.regions import Regions
from trainflash.profile.analysis.source_sites import source_sites
from trainflash.profile.analysis.step_marks import RankSteps, steps_of
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import Rank
from trainflash.profile.events import Profile
from trainflash.schema import to_plain
from trainflash.schema.profile_times import BreakdownMode
from trainflash.schema.profiles import NOT_HASHED, ProfileSummary

HOT_OPS = 25
MOST_REGIONS = 100
MOST_GAPS = 25


@dataclass(frozen=True)
class Options:
    """What a summary is asked to be. `warmup_steps` None: found by looking."""

    breakdown_mode: BreakdownMode = "exclusive_global"
    warmup_steps: int | None = None
    hot_op_limit: int = HOT_OPS
    readability_run: bool = False


def summarize(profile: Profile, options: Options | None = None, *, generated_at_utc: str = "") -> ProfileSummary:
    """The summary of all ranks of `profile`. Raises `UsageError` where there is no event to look at."""
    options = options or Options()
    members = _members(profile, options)
    if not members:
        raise UsageError(f"{profile.origin}: {missing(profile)}", "name a trace that holds at least one training step")
    timelines = [member.timeline for member in members]
    devices = [(member, timeline) for member in members for timeline in member.devices]
    each_device = [timeline for _, timeline in devices]
    numbered = [(member.number, member.timeline) for member in members]
    several = len(members) > 1
    world = next((trace.identity.world_size for trace in profile.traces if trace.identity.world_size), None)
    waits = alignment.waiting([(member.number, member.collectives, member.timeline) for member in members], world)
    why = [idle.causes_of(timeline, member.steps, waits.of[member.number] if waits else None) for member, timeline in devices]
    alone = [idle.waiting_alone(timeline, waits.of[member.number] if waits else None) for member, timeline in devices]
    steady = sum(max(len(member.steps) - member.warmup, 0) for member in members)
    on_devices = sum(max(len(member.steps) - member.warmup, 0) for member, _ in devices)
    made = {member.number: Regions(member.timeline.rank) for member in members}
    device_rows, host_rows = ops.device_rows(numbered), ops.host_rows(numbered)
    before, contexts = gaps.gaps(each_device, why, [made[member.number] for member, _ in devices], MOST_GAPS)
    has_device = any(len(timeline.rank.device) for timeline in timelines)
    loading = sum(common(timeline.idle, timeline.threads.loading).total for timeline in each_device) if on_devices else None
    summary = ProfileSummary(
        digest="",
        generated_at_utc=generated_at_utc,
        source_path=profile.origin,
        source_format=_formats(profile),
        run_metadata=run_metadata(profile),
        trace_overview=overview(profile, [member.timeline.rank for member in members], world, _of_steps(members)),
        trace_provenance=provenance(profile, [member.timeline.rank for member in members], options.readability_run),
        step_time=steps.step_time(_steps(profile, members), members[0].warmup, _per_device(loading, devices)),
        time_breakdown=breakdown.time_breakdown(each_device, options.breakdown_mode),
        overlap=breakdown.overlap(each_device),
        idle=idle.idle(each_device, why, alone, on_devices),
        devices=across.device_uses(members),
        ranks=across.rank_uses(members, waits),
        alignment=waits.alignment if waits else None,
        hot_ops=ops.hot_ops(device_rows if has_device else host_rows, options.hot_op_limit, several),
        host_ops=ops.hot_ops(host_rows, options.hot_op_limit, several),
        semantic_families=ops.families(device_rows if has_device else host_rows),
        communication_ops=across.communication_ops(members, waits, world),
        gap_before_ops=before,
        hierarchical_regions=regions.regions(timelines, list(made.values()), MOST_REGIONS),
        gap_region_contexts=contexts,
        copies=copies.copies([(timeline, member.steps) for member, timeline in devices]),
        launches=launches.launches(timelines, steady),
        cuda_graphs=launches.cuda_graphs(timelines),
        optimization_candidates=(),
        xprof=xprof.tables(profile.tables),
        notes=tuple(profile.notes),
        source_sites=source_sites(timelines),
        memory=memory.memory([(member.number, member.timeline.rank) for member in members]),
        op_totals=ops.op_totals(device_rows if has_device else host_rows),
    )
    summary = replace(summary, optimization_candidates=candidates.candidates(summary))
    return replace(summary, digest=digest(to_plain(summary)))


def digest(plain: Mapping[str, Any]) -> str:
    """sha256 of a summary's plain data without the fields that say when, where and of which run it was made."""
    kept = {key: value for key, value in plain.items() if key not in NOT_HASHED}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _members(profile: Profile, options: Options) -> list[Member]:
    ranks = [Rank(trace) for trace in profile.traces if len(trace.events)]
    marked = [steps_of(rank) for rank in ranks]
    warmup = steps.warmup_steps([each.duration for each in marked if len(each)], options.warmup_steps)
    taken: set[int] = set()
    members = []
    for rank, each in zip(ranks, marked, strict=True):
        mine = warmup if len(each) else 0
        window = steps.window_of(rank, each, mine)
        if window is None or window[1] <= window[0]:
            continue
        said = rank.trace.identity.rank
        number = said if said is not None and said not in taken else _free(taken)
        taken.add(number)
        timeline = Timeline(rank, window)
        members.append(Member(number, number == said, timeline, timeline.devices(), each, mine, collectives_of(rank)))
    return members


def _of_steps(members: list[Member]) -> list[str]:
    """What speaks against the steps."""
    several = len(members) > 1
    notes = [f"rank {member.number}: {note}" if several else note for member in members for note in member.steps.notes]
    if steps.numbered_apart([member.steps for member in members]):
        notes.append("the ranks have no step number in common: their steps are compared in order")
    return notes


def _free(taken: set[int]) -> int:
    return next(number for number in range(len(taken) + 1) if number not in taken)


def _steps(profile: Profile, members: list[Member]) -> list[tuple[int, RankSteps]]:
    """Steps of each rank; those of xprof's overview where no trace marks any."""
    if not any(len(member.steps) for member in members):
        told = xprof.steps(profile.tables)
        if told is not None:
            return [(members[0].number, told)]
    return [(member.number, member.steps) for member in members]


def _per_device(total: int | None, devices: list[tuple[Member, Timeline]]) -> int | None:
    """Idle time in data loading of a mean device over all steady steps."""
    with_steps = sum(1 for member, _ in devices if len(member.steps))
    return None if total is None or not with_steps else int(np.round(total / with_steps))


def _formats(profile: Profile) -> str:
    return "+".join(sorted({trace.source for trace in profile.traces})) or "unknown"
