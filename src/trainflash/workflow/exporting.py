"""A run as a timeline for Perfetto: ranks and workers as processes, phases, steps, device, source lines and counters as rows."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from trainflash import profile, redact, telemetry, trace
from trainflash.errors import UsageError
from trainflash.profile import Counter, Part, Process, Track
from trainflash.profile.events import Profile
from trainflash.profile.slimming import Slimmed, write_slim
from trainflash.profile.sources.timeline import profile_of
from trainflash.schema import PHASES, Location
from trainflash.trace import RankTrace, Samples, Trace, WorkerTrace
from trainflash.workflow.session import Session

FILE = "trace.perfetto.json.gz"
NS_PER_S = 1e9
PIDS = 1 << 22  # the most that Linux gives; processes of other machines are shown above
_RATES = {  # growing counters: what their growth a second is called, its unit, and what to divide it by
    "cpu_s": ("cores used by the program", "cores", 1),
    "machine_busy_s": ("cores used on the machine", "cores", 1),
    "throttled_s": ("stopped by the CPU quota", "share", 1),
    "pressure_cpu_s": ("stalled for CPU", "share", 1),
    "pressure_memory_s": ("stalled for memory", "share", 1),
    "pressure_io_s": ("stalled for input or output", "share", 1),
    "read_bytes": ("read calls", "MB/s", 1e6),
    "device_read_bytes": ("disk reads", "MB/s", 1e6),
    "device_written_bytes": ("disk writes", "MB/s", 1e6),
    "network_bytes": ("network", "MB/s", 1e6),
}
_LEVELS = {
    "memory_used_bytes": ("memory used", "MB", 1e6),
    "swap_used_bytes": ("swap used", "MB", 1e6),
    "shm_used_bytes": ("shared memory used", "MB", 1e6),
    "processes": ("processes", "", 1),
}
_GPU_LEVELS = {
    "busy": ("busy", "share", 1),
    "memory_busy": ("memory busy", "share", 1),
    "memory_used_bytes": ("memory used", "MB", 1e6),
    "pcie_rx_mb_s": ("PCIe to the GPU", "MB/s", 1),
    "pcie_tx_mb_s": ("PCIe from the GPU", "MB/s", 1),
    "power_w": ("power", "W", 1),
    "sm_clock_mhz": ("SM clock", "MHz", 1),
    "temperature_c": ("temperature", "°C", 1),
}


def export(session: Session, run: str, output: Path | None = None) -> profile.Written:
    """Write the timeline of `run`, by default into its directory. Raises `UsageError` for an unknown run, or no place for the file."""
    run_dir = session.run_dir(run)
    path = output or run_dir / FILE
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{path} is no place for a file", "name a file in a directory that exists with --output")
    session.on_progress(f"export {run}", 0, 0)
    recorded = trace.load(run_dir)
    samples = telemetry.read(run_dir / telemetry.FILE)
    about = {"run": run, "project": session.sandbox.project, "made_by": "trainflash", **_about_clocks(recorded)}
    return profile.write_trace(path, processes(recorded, samples), about)


def slim(decoded: Profile, output: Path) -> tuple[Slimmed, ...]:
    """Write each trace of a profile slimmed: to `output`, or of several ranks to `output` with the rank in its name.

    Raises `UsageError` where there is no place for the file.
    """
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise UsageError(f"{output} is no place for a file", "name a file in a directory that exists with --output")
    several = len(decoded.traces) > 1
    stem, ends = output.name.partition(".")[0], "".join(output.suffixes)
    written = []
    for place, each in enumerate(decoded.traces):
        rank = each.identity.rank if each.identity.rank is not None else place
        written.append(write_slim(output.with_name(f"{stem}-rank{rank}{ends}") if several else output, each))
    return tuple(written)


def as_profile(session: Session, run: str) -> Profile:
    """The timeline of `run` as the profile's commands read it. Raises `UsageError` for an unknown run."""
    run_dir = session.run_dir(run)
    recorded = trace.load(run_dir)
    ranks = [(rank.rank, group) for rank, group in _groups(recorded)]
    samples = telemetry.read(run_dir / telemetry.FILE)
    about = {"run": run, "made_by": "trainflash", **_about_clocks(recorded)}
    return profile_of(ranks, (*_host_counters(samples), *_gpu_counters(samples)), run, about)


def processes(recorded: Trace, samples: Sequence[telemetry.Sample] = ()) -> tuple[Process, ...]:
    """The rows of one run: ranks first, each followed by its workers, then the machine."""
    found = [process for _, group in _groups(recorded) for process in group]
    counters = (*_host_counters(samples), *_gpu_counters(samples))
    if counters:
        found.append(Process(0, "machine", counters=counters))
    return tuple(found)


def _groups(recorded: Trace) -> Iterator[tuple[RankTrace, tuple[Process, ...]]]:
    """Each rank with its process and those of its workers, all on the clock of the first rank's machine."""
    clocks = trace.host_clocks(recorded.ranks)
    hosts = list(dict.fromkeys(rank.host for rank in recorded.ranks))
    for rank in recorded.ranks:
        workers = [worker for worker in recorded.workers if worker.parent == rank.pid]
        group = (_rank(rank), *(_worker(worker, rank, number) for number, worker in enumerate(workers)))
        if rank.host in clocks:
            ahead_ns, place = clocks[rank.host].ahead_ns or 0, PIDS * hosts.index(rank.host)
            group = tuple(profile.moved(each, -ahead_ns, pid=place + each.pid) for each in group)
        yield rank, group


def _about_clocks(recorded: Trace) -> dict[str, str]:
    """What was done to the clocks of other machines, for whoever reads the timeline."""
    said = []
    for host, clock in trace.host_clocks(recorded.ranks).items():
        if clock.ahead_ns is None or clock.error_ns is None:
            said.append(f"{host}: not known, its rows lie where its own clock puts them")
        else:
            said.append(f"{host}: moved by {-clock.ahead_ns / NS_PER_S:+.6f} s, within {clock.error_ns / 1e6:.3f} ms")
    return {"clocks": "; ".join(said)} if said else {}


def _rank(rank: RankTrace) -> Process:
    return Process(rank.pid, f"rank {rank.rank}: {shlex.join(redact.argv(rank.argv))}", tuple(_rank_tracks(rank)))


def _rank_tracks(rank: RankTrace) -> Iterator[Track]:
    yield Track("steps", (Part(("step",), rank.step_start_ns[:-1], rank.step_start_ns[1:], numbered=True),))
    named = [(name, spans) for name, spans in rank.occurrences.items() if len(spans.start_ns)]
    yield Track("phases", tuple(Part((name,), spans.start_ns, spans.end_ns) for name, spans in named))
    occasions = tuple(_occasions(rank))
    if occasions:
        yield Track("evaluations and checkpoints", occasions)
    yield from _device_tracks(rank)
    if rank.samples.locations:
        yield Track("source lines (samples)", (_lines(rank.samples),))


def _occasions(rank: RankTrace) -> Iterator[Part]:
    ends = {}
    if "Eval" in rank.occurrences:
        spans = rank.occurrences["Eval"]
        ends = dict(zip(spans.start_ns.tolist(), spans.end_ns.tolist(), strict=True))
    for one in rank.evaluations:
        if one.start_ns in ends:
            size = f", {one.batches} batches" if one.batches else ""
            yield Part((f"evaluation{_at(one.location)}{size}",), [one.start_ns], [ends[one.start_ns]])
    for save in rank.saves:
        size = f", {save.bytes / 1e6:.1f} MB" if save.bytes else ""
        yield Part((f"checkpoint{_at(save.location)}{size}",), [save.start_ns], [save.start_ns + save.duration_ns])


def _at(location: Location | None) -> str:
    return f" {location}" if location else ""


def _device_tracks(rank: RankTrace) -> Iterator[Track]:
    """What the device worked on, by events at the phases' boundaries: the program's own stream, then others."""
    found = rank.device_timeline
    if found is None:
        return
    for name, mine in (("device", found.main), ("device, other streams", ~found.main)):
        shown = mine & (found.work_ns > 0)
        if shown.any():
            end = found.end_ns[shown]
            yield Track(name, (Part(PHASES, end - found.work_ns[shown], end, found.phase[shown]),))
    if len(found.wait_from_ns):
        yield Track("host waits for the device", (Part(("wait",), found.wait_from_ns, found.wait_to_ns),))


def _worker(worker: WorkerTrace, rank: RankTrace, number: int) -> Process:
    fetches = worker.fetches
    middle = fetches.start_ns + fetches.getitem_ns
    tracks = [Track("batches", (Part(("getitem",), fetches.start_ns, middle), Part(("collate",), middle, middle + fetches.collate_ns)))]
    if worker.samples.locations:
        tracks.append(Track("source lines (samples)", (_lines(worker.samples),)))
    loader = "" if worker.loader is None else f" of loader {worker.loader}"
    return Process(worker.pid, f"rank {rank.rank} worker {number}{loader}", tuple(tracks))


def _lines(samples: Samples) -> Part:
    """Marks at the samples that saw a line of the owner's."""
    seen = samples.place >= 0
    names = tuple(f"{location} {location.function}".rstrip() for location in samples.locations)
    return Part(names, samples.t_ns[seen], None, samples.place[seen])


def _host_counters(samples: Sequence[telemetry.Sample]) -> Iterator[Counter]:
    for field, (name, unit, divisor) in _LEVELS.items():
        yield from _level([(each.t_ns, getattr(each.host, field)) for each in samples], name, unit, divisor)
    for field, (name, unit, divisor) in _RATES.items():
        grown = [(each.t_ns, getattr(each.host, field)) for each in samples if getattr(each.host, field) is not None]
        rates = [(t, max(0, new - old) / ((t - before) / NS_PER_S)) for (before, old), (t, new) in pairwise(grown) if t > before]
        yield from _level(rates, name, unit, divisor)


def _gpu_counters(samples: Sequence[telemetry.Sample]) -> Iterator[Counter]:
    for index in sorted({gpu.index for each in samples for gpu in each.gpus}):
        mine = [(each.t_ns, gpu) for each in samples for gpu in each.gpus if gpu.index == index]
        for field, (name, unit, divisor) in _GPU_LEVELS.items():
            yield from _level([(t, getattr(gpu, field)) for t, gpu in mine], f"GPU {index} {name}", unit, divisor)


def _level(values: Sequence[tuple[int, float | None]], name: str, unit: str, divisor: float) -> Iterator[Counter]:
    known = [(t, value / divisor) for t, value in values if value is not None and math.isfinite(value)]
    if known:
        yield Counter(name, unit, [t for t, _ in known], [value for _, value in known])
