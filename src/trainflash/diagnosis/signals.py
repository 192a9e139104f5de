"""What the rules look at, derived once from a `Summary`. `None` means that it was not measured, so that a rule can abstain."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Activity, LoaderFacts, Location, RepeatedWork, Setting, Summary, Threads

COMPUTE = ("Fwd", "Bwd", "Opt")
DEBUG_SETTINGS = ("anomaly_mode", "profiler", "gradcheck", "blocking_launches")


@dataclass(frozen=True)
class Input:
    """How training batches are made. Shares are of the steady wall time unless said."""

    share: float  # what the training process waited for or computed, worker start-up taken out
    calm: float  # the same without the stalls of a busy machine: what it is judged by
    name: str  # which kind of finding it is: input_cpu, input_io, input_tail or collate
    loader: LoaderFacts | None  # None: no DataLoader, the program fetches batches by itself
    cpu_share: float | None  # of the fetching time, waiting for a core not counted
    collate_part: float | None  # of the time to make one batch
    usual_share: float | None  # median Data time ÷ mean step
    late_part: float | None  # of the Data time, spent above the median
    location: Location | None


@dataclass(frozen=True)
class WorkerStart:
    """Cost of starting the workers of `loader` again each time it is iterated."""

    loader: LoaderFacts
    share: float
    each_ms: float
    times: int


@dataclass(frozen=True)
class Signals:
    """One run, ready for the rules. A share is None when its phase was not recorded."""

    summary: Summary
    data: Input | None
    worker_start: WorkerStart | None
    fwd_bwd: float | None
    compute: float | None  # Fwd + Bwd + Opt
    other: float
    other_calm: float  # without the stalls of a busy machine
    other_in_lines: float | None  # part of the wall that Other spends in the owner's lines; None: not sampled
    other_location: Location | None
    repeated: tuple[RepeatedWork, ...]
    repeated_in_data: frozenset[Location]
    debug: tuple[Setting, ...]
    threads: Threads | None
    startup: float | None  # of the whole wall time; None: unknown, or the run was cut short
    on_gpu: bool

    def share(self, phase: str) -> float | None:
        """Share of `phase`, or None when the run has no record of it."""
        stat = self.summary.phases.get(phase)
        return None if stat is None else stat.share

    def activity(self, phase: str) -> Activity | None:
        """The costliest activity of `phase`."""
        found = [activity for activity in self.summary.activities if activity.phase == phase]
        return max(found, key=lambda activity: activity.count * activity.mean_ms, default=None)


def read(summary: Summary, limits: Thresholds) -> Signals:
    """All signals of `summary`."""
    worker_start = _worker_start(summary)
    fwd, bwd = (summary.phases.get(name) for name in ("Fwd", "Bwd"))
    compute = [summary.phases[name].share for name in COMPUTE if name in summary.phases]
    other = summary.phases["Other"].share if "Other" in summary.phases else 1.0 - summary.coverage
    sampled = bool(summary.sampled_s)
    other_lines = [line for line in summary.lines if line.role == "main" and line.phase == "Other"]
    repeated = tuple(sorted(summary.repeated, key=lambda work: -work.share))
    startup = None
    if summary.startup_s is not None and summary.wall_s > 0 and not summary.stopped:
        startup = min(1.0, summary.startup_s / summary.wall_s)
    return Signals(
        summary=summary,
        data=_input(summary, worker_start, limits),
        worker_start=worker_start,
        fwd_bwd=None if fwd is None and bwd is None else sum(stat.share for stat in (fwd, bwd) if stat is not None),
        compute=sum(compute) if compute else None,
        other=other,
        other_calm=calm_share(summary, "Other", limits) if "Other" in summary.phases else other,
        other_in_lines=min(other, sum(line.share for line in other_lines)) if sampled else None,
        other_location=hottest(summary, "Other", "main"),
        repeated=repeated,
        repeated_in_data=frozenset(work.location for work in repeated if phase_of(work, summary) == "Data"),
        debug=tuple(setting for setting in summary.settings if setting.name in DEBUG_SETTINGS),
        threads=summary.threads,
        startup=startup,
        on_gpu=summary.device.startswith("cuda"),
    )


def hottest(summary: Summary, phase: str, role: str) -> Location | None:
    """The hottest line of the hottest of the owner's functions in `phase`: one slow line of many cheap ones does not hide it."""
    cost: dict[tuple[str, str], float] = {}
    lines = [line for line in summary.lines if line.phase == phase and line.role == role]
    for line in lines:
        key = (line.location.file, line.location.function)
        cost[key] = cost.get(key, 0.0) + line.share
    if not cost:
        return None
    key = max(cost, key=lambda candidate: cost[candidate])
    return max((line for line in lines if (line.location.file, line.location.function) == key), key=lambda line: line.share).location


def calm_share(summary: Summary, phase: str, limits: Thresholds) -> float:
    """Share of `phase` to judge by: what it would be without the stalls of a busy machine, where those explain its slow steps.

    A stall takes the same milliseconds wherever it falls, so on a busy machine it makes cheap phases look dear. Only for phases that
    every step has; the mean share where the machine is not known to be busy, or where the phase has slow steps of its own.
    """
    stat, threads = summary.phases[phase], summary.threads
    busy = threads is not None and threads.runqueue_share is not None and threads.runqueue_share >= limits.runqueue_wait
    if not busy or not stat.p50_ms or not stalled_like_compute(summary, phase, limits):
        return stat.share
    whole = sum(other.p50_ms or other.mean_ms for other in summary.phases.values())
    return min(stat.share, stat.p50_ms / whole)


def stalled_like_compute(summary: Summary, phase: str, limits: Thresholds) -> bool:
    """Whether the slow steps of `phase` cost no more than those of forward, backward or optimizer: they have the same cause then."""
    over = {name: stat.mean_ms - stat.p50_ms for name, stat in summary.phases.items() if stat.p50_ms is not None}
    compute = max((over[name] for name in COMPUTE if name in over), default=0.0)
    return phase in over and over[phase] <= limits.tail_beyond_compute * compute


def train_loader(summary: Summary) -> LoaderFacts | None:
    """The DataLoader that training iterates; the one iterated most where there are several."""
    found = [loader for loader in summary.loaders if loader.role == "train"]
    return max(found, key=lambda loader: loader.epochs * (loader.dataset_len or 1), default=None)


def phase_of(work: RepeatedWork, summary: Summary) -> str:
    """The phase that most samples of the function lie in; worker processes only fetch; without samples Data where it fits into it."""
    if work.role == "worker":
        return "Data"
    cost: dict[str, float] = {}
    for line in summary.lines:
        if line.location.file == work.location.file and line.location.function in (work.qualname, work.location.function):
            cost[line.phase] = cost.get(line.phase, 0.0) + line.share
    if cost:
        return max(cost, key=lambda phase: cost[phase])
    data = summary.phases.get("Data")
    return "Data" if data is not None and data.share >= work.share * 0.5 else "Other"


def _worker_start(summary: Summary) -> WorkerStart | None:
    """Worker start-up of the loader where it costs most, its share bounded by the phase that it is a part of."""
    best: WorkerStart | None = None
    for loader in summary.loaders:
        bound = summary.phases.get("Eval" if loader.role == "eval" else "Data")
        if loader.num_workers == 0 or loader.persistent_workers or bound is None:
            continue
        # An empty queue has to be filled by persistent workers too: one batch's making is no cost of starting them.
        fill = sum(spread.mean_ms for spread in (loader.getitem_ms, loader.collate_ms) if spread is not None)
        if loader.pass_ms is not None:
            each, times, span_s = loader.pass_ms.mean_ms, loader.pass_ms.n, summary.steady_s
        elif loader.start_ms is not None:
            first = loader.first_batch_ms.mean_ms if loader.first_batch_ms is not None else 0.0
            each, times, span_s = loader.start_ms.mean_ms + first, loader.start_ms.n, summary.wall_s - (summary.startup_s or 0.0)
        else:
            continue
        each = max(0.0, each - fill)
        share = min(bound.share, times * each / (1000 * span_s)) if span_s > 0 else 0.0
        if best is None or share > best.share:
            best = WorkerStart(loader, share, each, loader.epochs)
    return best


def _input(summary: Summary, start: WorkerStart | None, limits: Thresholds) -> Input | None:
    stat = summary.phases.get("Data")
    if stat is None:
        return None
    loader = train_loader(summary)
    starting = start.share if start is not None and start.loader.role == "train" else 0.0
    share = max(0.0, stat.share - starting)
    usual = late = None
    if stat.p50_ms is not None and summary.step_ms.mean_ms > 0 and stat.share > 0:
        usual = stat.p50_ms / summary.step_ms.mean_ms
        mean = stat.mean_ms * share / stat.share
        late = max(0.0, 1.0 - stat.p50_ms / mean) if mean > 0 else None
    part = _collate_part(loader)
    cpu, waits = _cpu_share(summary, loader, stat.share), limits.io_cpu_share
    if loader is not None and loader.num_workers > 0:
        waits = limits.io_cpu_share_of_workers
    return Input(
        share=share,
        calm=min(share, calm_share(summary, "Data", limits)),
        name=_input_name(loader, part, cpu is not None and cpu < waits, usual, late, summary, limits),
        loader=loader,
        cpu_share=cpu,
        collate_part=part,
        usual_share=usual,
        late_part=late,
        location=_input_location(summary, loader),
    )


def _input_name(
    loader: LoaderFacts | None,
    collate: float | None,
    waits: bool,
    usual: float | None,
    late: float | None,
    summary: Summary,
    limits: Thresholds,
) -> str:
    """Which of the four kinds it is. A loader that cannot keep up on average is never a tail: depth of queue does not help it (T7)."""
    bursty = loader is not None and usual is not None and usual <= limits.tail_usual and late is not None and late >= limits.tail_part
    if bursty and _keeps_up(loader, summary) is not False and not stalled_like_compute(summary, "Data", limits):
        return "input_tail"
    if waits:
        return "input_io"
    if collate is not None and collate >= limits.collate_majority:
        return "collate"
    return "input_cpu"


def _keeps_up(loader: LoaderFacts | None, summary: Summary) -> bool | None:
    """Whether the workers make batches as fast as the rest of the step uses them, on average; None: not measured."""
    if loader is None or loader.num_workers == 0 or loader.getitem_ms is None:
        return None
    batch = loader.getitem_ms.mean_ms + (loader.collate_ms.mean_ms if loader.collate_ms is not None else 0.0)
    return batch / loader.num_workers <= summary.step_ms.mean_ms - summary.phases["Data"].mean_ms


def _collate_part(loader: LoaderFacts | None) -> float | None:
    if loader is None or loader.collate_ms is None or loader.getitem_ms is None:
        return None
    whole = loader.collate_ms.mean_ms + loader.getitem_ms.mean_ms
    return loader.collate_ms.mean_ms / whole if whole > 0 else None


def _cpu_share(summary: Summary, loader: LoaderFacts | None, data: float) -> float | None:
    """CPU time ÷ (wall − time without a core) of fetching; without a loader from the whole process, everything else taken as CPU."""
    threads = summary.threads
    waiting = min(0.9, threads.runqueue_share or 0.0) if threads is not None else 0.0
    if loader is not None and loader.num_workers > 0:
        return loader.fetch_cpu_share  # how long workers waited for a core is not known
    if loader is not None:
        return None if loader.fetch_cpu_share is None else min(1.0, loader.fetch_cpu_share / (1 - waiting))
    if threads is None or threads.cpu_seconds is None or not threads.wall_seconds or data <= 0 or summary.processes > 1:
        return None
    busy = threads.cpu_seconds / threads.wall_seconds / (1 - waiting)
    return min(1.0, max(0.0, (busy - (1 - data)) / data))


def _input_location(summary: Summary, loader: LoaderFacts | None) -> Location | None:
    workers = loader is not None and loader.num_workers > 0
    found = hottest(summary, "Data", "worker" if workers else "main")
    if found is not None:
        return found
    inside = [work.location for work in summary.repeated if phase_of(work, summary) == "Data"]
    if inside:
        return inside[0]
    if summary.data_function is not None:
        return summary.data_function
    if loader is None:
        return None
    dataset = loader.dataset_location
    return loader.location if dataset is None or os.path.isabs(dataset.file) else dataset  # absolute: a library's own dataset
