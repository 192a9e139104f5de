"""What was traced, how whole the trace is, and with which settings: the parts of a summary that say how far to trust the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import us
from trainflash.profile.analysis.view import CALLS, Rank
from trainflash.profile.events import Kind, Profile, TrackKind, content_digest
from trainflash.schema.profiles import RunMetadata, TraceOverview, TraceProvenance

MOST_HINTS = 10
MOST_LOST = 16  # launches whose kernels lie outside of the window without anything being wrong
MOST_MODELS = 5
_INSTANCE = re.compile(r"_\d+$")
_COMMAND_BUFFERS_OFF = re.compile(r"--xla_gpu_enable_command_buffer=(?:''|\"\"|\s|$)")
_VERSION = re.compile(r"version$|^cupti|^roctracer|_version_?\w*$", re.IGNORECASE)
_SOURCE = re.compile(r"([\w./-]+\.py)(?:\(\d+\)|:\d+)")
_LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python|^(?:torch|jax|flax|numpy|threading|importlib|contextlib|runpy)\b|^<")
_PLANE = re.compile(r"^/device:\w+:(\d+)")


def overview(profile: Profile, ranks: Sequence[Rank], world_size: int | None, of_steps: Sequence[str] = ()) -> TraceOverview:
    """Counts, extent and quality of all traces together. `of_steps`: what speaks against the steps."""
    dated = [rank for rank in ranks if rank.timed.any()]
    first = min((int(rank.start.min(where=rank.timed, initial=np.iinfo(np.int64).max)) for rank in dated), default=None)
    last = max((int(rank.end.max(where=rank.timed, initial=np.iinfo(np.int64).min)) for rank in dated), default=None)
    qualities = [trace.quality for trace in profile.traces]
    units = sorted({str(trace.provenance["displayTimeUnit"]) for trace in profile.traces if trace.provenance.get("displayTimeUnit")})
    return TraceOverview(
        display_time_unit=units[0] if units else None,
        num_events_total=sum(quality.total_events for quality in qualities),
        num_complete_events=sum(quality.complete_events for quality in qualities),
        num_processes=sum(len({track.process for track in trace.tracks if track.kind != TrackKind.SPANS}) for trace in profile.traces),
        num_threads=sum(sum(1 for track in trace.tracks if track.kind != TrackKind.SPANS) for trace in profile.traces),
        profile_start_ts=None if first is None else us(first),
        profile_end_ts=None if last is None else us(last),
        duration_basis="microseconds",
        duration_us=None if first is None or last is None else us(last - first),
        num_ranks=len(profile.traces),
        world_size=world_size,
        suspected_truncation=any(quality.truncated or quality.event_cap is not None or bool(quality.dropped) for quality in qualities),
        captured_launches=sum(lost for lost, _, captured in map(_lost, ranks) if captured),
        quality_warnings=(*_warnings(profile, ranks, world_size), *of_steps),
    )


def _warnings(profile: Profile, ranks: Sequence[Rank], world_size: int | None):
    several = len(profile.traces) > 1
    for place, trace in enumerate(profile.traces):
        quality = trace.quality
        where = f"rank {trace.identity.rank if trace.identity.rank is not None else place}: " if several else ""
        if quality.truncated:
            at = "" if quality.cut_at is None else f" at byte {quality.cut_at:,}"
            yield f"{where}the file is cut short{at}: what was to follow the {quality.total_events:,} events before is missing"
        if quality.event_cap is not None:
            yield f"{where}the {quality.event_cap:,} events equal a known export cap: later ones are missing"
        if quality.dropped:
            yield f"{where}the tracer lost {quality.dropped:,} events"
        if quality.unparsed:
            yield f"{where}{quality.unparsed:,} events could not be read and are left out"
        if quality.unmatched:
            yield f"{where}{quality.unmatched:,} begins or ends have no partner"
        if quality.without_time:
            yield f"{where}{quality.without_time:,} events have no time that can be, and are left out"
        if quality.negative_durations:
            yield f"{where}{quality.negative_durations:,} events had a negative duration"
        for note in quality.notes:
            yield f"{where}{note}"
    for place, rank in enumerate(ranks):
        where = f"rank {rank.trace.identity.rank if rank.trace.identity.rank is not None else place}: " if several else ""
        missing = int((~rank.timed).sum())
        if missing:
            yield f"{where}{missing:,} events have no time and are left out"
        if rank.ambiguous:
            yield f"{where}{rank.ambiguous:,} device events have calls of several processes under one id: their launch is unknown"
        yield from (f"{where}{said}" for said in _launched_in_vain(rank))
        if not len(rank.device):
            yield f"{where}no device work is recorded: figures are the host's"
        elif not (rank.device.launch >= 0).any():
            yield f"{where}launches are not joined to device work: causes of idle time and regions are coarser"
        else:
            lost = int((rank.device.launch < 0).sum())
            if lost * 10 > len(rank.device):
                yield f"{where}{lost:,} of {len(rank.device):,} device events were launched outside the window"
    if world_size and world_size > len(profile.traces):
        so = "waiting is at least what is said" if several else "waiting cannot be told from transfer, and one rank need not be typical"
        yield f"{len(profile.traces)} of {world_size} ranks are here: {so}"


def _lost(rank: Rank) -> tuple[int, int, bool]:
    """(launches whose kernels are missing, all launches, whether a graph was captured); nothing lost where most kernels are there.

    Of a few launches nothing can be said, unless the device did nothing at all.
    """
    calls = rank.rows(*CALLS)
    launches = calls[rank.named(calls, words.is_launch)]
    lost = len(launches) - int(np.isin(launches, rank.device.launch).sum())
    if (len(rank.device) and len(launches) < MOST_LOST) or lost * 2 <= len(launches):
        return 0, len(launches), False
    return lost, len(launches), bool(rank.named(calls, words.is_capture).any())


def _launched_in_vain(rank: Rank):
    """Why there are launches whose kernels are missing."""
    lost, launches, captured = _lost(rank)
    if lost and captured:
        yield f"{lost:,} of {launches:,} launches ran no kernel: they were captured into a graph, which is no run of it"
    elif lost:
        yield f"{lost:,} of {launches:,} launches have no kernel in the trace: the profiler recorded calls, but not what ran"


def missing(profile: Profile) -> str:
    """Why there is no event to look at."""
    total, unparsed, metadata, without_time = (
        sum(getattr(trace.quality, name) for trace in profile.traces)
        for name in ("total_events", "unparsed", "metadata_events", "without_time")
    )
    cut = next((trace.quality.cut_at for trace in profile.traces if trace.quality.cut_at is not None), None)
    if cut is not None and total == metadata:
        return f"the file ends at byte {cut:,}, before its first event"
    if unparsed and unparsed + metadata >= total:
        return f"none of the {unparsed:,} entries in its list of events is an event"
    if without_time and without_time + unparsed + metadata >= total:
        return f"none of its {without_time:,} events has a time that can be"
    if total and metadata == total:
        return f"its {total:,} events are names of processes and threads: nothing was recorded within the window"
    return "no event with a duration is in it" if total else "its list of events is empty"


def provenance(profile: Profile, ranks: Sequence[Rank], readability: bool) -> TraceProvenance:
    """Identity of the content, of the workload, and settings that matter for a comparison."""
    merged = _merged(profile)
    captured = _mapping(merged.get("trainflash"))  # what `trainflash profile capture` adds
    flags = _mapping(captured.get("environment")).get("XLA_FLAGS") or merged.get("XLA_FLAGS") or merged.get("xla_flags")
    flags = str(flags) if flags else None
    reasons = []
    if readability:
        reasons.append("marked as a readability run")
    if _mapping(captured.get("window")).get("stacks"):
        reasons.append("captured with Python stacks")
    if flags and _COMMAND_BUFFERS_OFF.search(flags):
        reasons.append("XLA command buffers are off")
    versions = {key: merged[key] for key in merged if _VERSION.search(key)} | {
        key: captured[key] for key in ("torch", "python") if key in captured
    }
    return TraceProvenance(
        trace_sha256=content_digest(profile.traces),
        run_ids=tuple(sorted({str(merged[key]) for key in ("trace_id", "run_id") if merged.get(key)})),
        source_file_hints=_hints(ranks),
        workload=_workload(profile, ranks),
        xla_flags=flags,
        versions={key: str(versions[key]) for key in sorted(versions) if isinstance(versions[key], str | int | float)},
        readability_run=tuple(reasons),
    )


def device_names(given: Mapping[str, Any]) -> dict[str, str]:
    """Device → what it is: Kineto's deviceProperties, or the stats of XPlane's device planes."""
    properties = given.get("deviceProperties")
    if isinstance(properties, list):
        return {str(each["id"]): str(each["name"]) for each in properties if isinstance(each, dict) and "id" in each and each.get("name")}
    found = {}
    for plane, stats in _mapping(given.get("planes")).items():
        told = _PLANE.match(str(plane))
        if told and isinstance(stats, Mapping):
            words = [str(stats[key]) for key in ("device_type_string", "device_vendor") if stats.get(key)]
            words += [f"{stats['core_count']} cores"] if stats.get("core_count") else []
            if words:
                found[told[1]] = ", ".join(words)
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _merged(profile: Profile) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for trace in reversed(profile.traces):
        merged |= dict(trace.provenance)
    return merged | dict(profile.provenance)


def _workload(profile: Profile, ranks: Sequence[Rank]) -> dict[str, str]:
    """What two traces of one workload have in common: how many ranks are here and are in the job, on which devices, of which model."""
    names = sorted(set(device_names(_merged(profile)).values()))
    worlds = {trace.identity.world_size for trace in profile.traces} - {None}
    models = sorted({name for rank in ranks for name in _models(rank)})
    found = {
        "ranks": str(len(profile.traces)),
        "world": "; ".join(map(str, sorted(worlds))),
        "devices": "; ".join(names),
        "model": "; ".join(models),
    }
    return {key: value for key, value in found.items() if value}


def _models(rank: Rank) -> list[str]:
    """The classes of the outermost modules that were called, where the trace has frames of modules."""
    rows = rank.rows(Kind.PYTHON)
    rows = rows[rank.named(rows, words.is_module_frame)]
    outermost = rows[rank.nest(rows).parent < 0]
    names = {rank.trace.strings[code] for code in np.unique(rank.trace.events.name[outermost]).tolist()}
    return sorted({_INSTANCE.sub("", name.removeprefix("nn.Module: ")) for name in names})[:MOST_MODELS]


def _hints(ranks: Sequence[Rank]) -> tuple[str, ...]:
    found: set[str] = set()
    for rank in ranks:
        for name in ("call_stack", "source"):
            for code in np.unique(rank.trace.column(name).values).tolist():
                found |= {path for path in _SOURCE.findall(rank.trace.strings[code]) if not _LIBRARY.search(path)}
    return tuple(sorted(found)[:MOST_HINTS])


def run_metadata(profile: Profile) -> RunMetadata:
    """What the source says of the run."""
    merged = _merged(profile)
    run, artifact = merged.get("wandb_run"), merged.get("wandb_artifact")
    devices = device_names(merged)
    hosts = merged.get("hostnames")
    known = {key: str(merged[key]) for key in ("mesh_or_topology", "git_sha", "config_hash") if merged.get(key)}
    return RunMetadata(
        run_path=str(run) if run else None,
        run_id=str(run).rsplit("/", 1)[-1] if run else None,
        artifact_ref=str(artifact) if artifact else None,
        artifact_name=str(artifact).rsplit("/", 1)[-1].partition(":")[0] if artifact else None,
        hardware_type="; ".join(sorted(set(devices.values()))) or None,
        num_devices=len(devices) or None,
        num_hosts=len(hosts) if isinstance(hosts, list) else None,
        **known,
    )
