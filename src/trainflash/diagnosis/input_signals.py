"""How training batches are made: which kind of input cost it is, where, and what starting workers takes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from trainflash.diagnosis.calm import COMPUTE, stalled_like_compute
from trainflash.diagnosis.fetching import calm_input, cpu_share, held_up, without_core
from trainflash.diagnosis.lines import hottest, lines_in, running_in, same_line
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import LineCost, LoaderFacts, Location, RepeatedWork, Started, Summary

ITERATES = re.compile(r"\.__(iter|next)__($|\.)")


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
    chosen_at: Location | None = None  # the owner's sampler, where choosing samples is what takes the time
    apart: bool = False  # workers make a batch in a small part of what is waited for it
    receives: bool = False  # workers make batches far faster than they are used: what is left is handing them over
    held_up: float = 0.0  # part of `share` in which a thread beside holds Python's lock


@dataclass(frozen=True)
class WorkerStart:
    """Cost of starting the workers of `loader`, or of the loader itself, again each time it is iterated."""

    loader: LoaderFacts
    share: float
    each_ms: float
    times: int
    anew: bool = False  # for each step, though a pass has more batches than one
    beside: float = 0.0  # part of `share` that lies in Other: letting go of the iterator
    location: Location | None = None  # the line that begins it, where that is known
    in_evaluations: float = 0.0  # part of `share` that lies in evaluations


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
    if work.during in ("forward", "operators"):
        return "Fwd"
    data = summary.phases.get("Data")
    return "Data" if data is not None and data.share >= work.share * 0.5 else "Other"


def worker_start(summary: Summary, limits: Thresholds) -> WorkerStart | None:
    """Worker start-up of all loaders, at the one where it costs most; each loader's share is bounded by the phase that it is a part of.

    Loaders that are built again at the same line count as one; those whose workers persist, where they were started again all the same.
    One that is iterated anew in each step goes before all: its workers are the smaller part of that, and more of them no help.
    """
    anew = [_anew(loader, summary) for loader in summary.loaders if _begun_each_step(loader, summary, limits)]
    best: WorkerStart | None = max((start for start in anew if start is not None), key=lambda start: start.share, default=None)
    if best is not None:
        return best
    whole = in_evaluations = 0.0
    groups: dict[tuple[Location | None, str], list[LoaderFacts]] = {}
    for loader in summary.loaders:
        if loader.num_workers > 0:
            groups.setdefault((loader.location, loader.role), []).append(loader)
    for built in groups.values():
        bound = summary.phases.get("Eval" if built[0].role == "eval" else "Data")
        restarted = any(not loader.persistent_workers or (loader.starts or 0) > 1 for loader in built) or len(built) > 1
        spent = [spent for spent in (_starting(loader, summary) for loader in built) if spent is not None]
        times = sum(each for each, _, _ in spent)
        if bound is None or not restarted or not times:
            continue
        each = sum(number * ms for number, ms, _ in spent) / times
        share = min(bound.share, sum(number * ms / (1000 * span_s) for number, ms, span_s in spent if span_s > 0))
        whole += share
        in_evaluations += share if built[0].role == "eval" else 0.0
        if best is None or share > best.share:
            best = WorkerStart(built[0], share, each, sum(loader.epochs for loader in built))
    return best and replace(best, share=whole, in_evaluations=in_evaluations)


def _begun_each_step(loader: LoaderFacts, summary: Summary, limits: Thresholds) -> bool:
    """Whether training takes about one batch of each pass over a loader that has more."""
    more = loader.dataset_len is None or loader.batch_size is None or loader.dataset_len > loader.batch_size
    steps = summary.steps + summary.warmup_steps
    return loader.role == "train" and more and loader.epochs >= max(limits.started_times, limits.begun_each_step * steps)


def _anew(loader: LoaderFacts, summary: Summary) -> WorkerStart | None:
    """What beginning such a loader costs, the freeing of its iterator on the line that begins it too."""
    data, spent = summary.phases.get("Data"), _starting(replace(loader, pass_ms=None), summary)
    if data is None or spent is None:
        return None
    times, each, span_s = spent
    share = min(data.share, times * each / (1000 * span_s)) if span_s > 0 else 0.0
    where = hottest(lines_in(summary, "Data", "main", ""))
    beside = sum(line.share for line in lines_in(summary, "Other") if where is not None and same_line(line.location, where))
    return WorkerStart(loader, share + beside, each, loader.epochs, anew=True, beside=beside, location=where)


def _starting(loader: LoaderFacts, summary: Summary) -> tuple[int, float, float] | None:
    """Times, milliseconds each, and the span in seconds that they lie in; None where it was not timed."""
    # An empty queue has to be filled by persistent workers too: one batch's making is no cost of starting them.
    fill = sum(spread.mean_ms for spread in (loader.getitem_ms, loader.collate_ms) if spread is not None)
    if loader.pass_ms is not None:
        return loader.pass_ms.n, max(0.0, loader.pass_ms.mean_ms - fill), summary.steady_s
    if loader.start_ms is None:
        return None
    first = loader.first_batch_ms.mean_ms if loader.first_batch_ms is not None else 0.0
    return loader.start_ms.n, max(0.0, loader.start_ms.mean_ms + first - fill), summary.wall_s - (summary.startup_s or 0.0)


def started_in(summary: Summary, phase: str, limits: Thresholds) -> tuple[Started, ...]:
    """Processes and threads that the owner starts again and again, by the phase in which most of that time passes."""
    often = [each for each in summary.started if each.count >= limits.started_times]
    return tuple(each for each in often if _phase_at(each.lines[0][0] if each.lines else each.location, summary) == phase)


def _phase_at(where: Location | None, summary: Summary) -> str:
    """The phase that most samples of the line, else of its function, lie in; Other without samples."""
    if where is None:
        return "Other"
    here = [line for line in summary.lines if line.role == "main" and line.location.file == where.file]
    of_line = [line for line in here if line.location.line == where.line]
    of_function = [line for line in here if line.location.function == where.function]
    return max(of_line or of_function, key=lambda line: line.share).phase if of_line or of_function else "Other"


def read_input(summary: Summary, start: WorkerStart | None, limits: Thresholds) -> Input | None:
    """The input of training; None without the phase Data."""
    stat = summary.phases.get("Data")
    if stat is None:
        return None
    loader = summary.busiest_loader("train")
    starting = start.share - start.beside - start.in_evaluations if start is not None else 0.0
    starting += sum(each.share for each in started_in(summary, "Data", limits))
    share = max(0.0, stat.share - starting)
    usual, late = _tail(summary, share)
    part = _collate_part(summary, loader)
    apart = _made_apart(summary, loader, share, limits)
    sampler = _sampler(summary, loader, apart, limits)
    cpu, waits = cpu_share(summary, loader, stat.share, limits), limits.io_cpu_share
    if loader is not None and loader.num_workers > 0:
        waits = limits.io_cpu_share_of_workers
    held = held_up(summary, loader, share, limits)
    crowded = made_among_threads(summary, limits) >= limits.making_part * stat.share  # operators that wait for their threads
    reads = (cpu is not None and cpu < waits and not held and not crowded) or _copies_files(summary, loader, share, limits)
    name = _name(loader, None if apart else part, reads, usual, late, summary, limits) if sampler is None else "input_cpu"
    return Input(
        share=share - held,
        calm=min(share, calm_input(summary, loader, limits)) * (1 - held / share if held else 1.0),
        name=name,
        loader=loader,
        cpu_share=cpu,
        collate_part=part,
        usual_share=usual,
        late_part=late,
        location=sampler or _location(summary, loader, name),
        chosen_at=sampler,
        apart=apart,
        held_up=held,
        receives=name != "input_tail" and _far_ahead(loader, summary, limits),
    )


def made_among_threads(summary: Summary, limits: Thresholds) -> float:
    """Part of the wall time in which torch's operators make batches in the training process, by more threads than there are cores for.

    0.0 where threads seldom lack a core, or without the census of operators.
    """
    stat, operators, threads = summary.phases.get("Data"), summary.operators, summary.threads
    if stat is None or operators is None or operators.making_share is None or threads is None or threads.cpus is None:
        return 0.0
    many = (threads.torch_threads or 1) > limits.threads_over * threads.cpus
    if not many or threads.runqueue_share is None or threads.runqueue_share < limits.runqueue_wait:
        return 0.0
    return min(stat.share, operators.making_share)


def _tail(summary: Summary, share: float) -> tuple[float | None, float | None]:
    """Median wait ÷ mean step, and the part of the wait above it; from ordinary steps only where those were told apart."""
    stat, tail, step = summary.phases["Data"], summary.input_tail, summary.step_ms.mean_ms
    if step <= 0 or share <= 0:
        return None, None
    if tail is not None and tail.wait_ms.p50_ms is not None:
        return tail.wait_ms.p50_ms / step, min(1.0, tail.late_share / share)
    if stat.p50_ms is None or stat.share <= 0:
        return None, None
    mean = stat.mean_ms * share / stat.share
    return stat.p50_ms / step, max(0.0, 1.0 - stat.p50_ms / mean) if mean > 0 else None


def _name(
    loader: LoaderFacts | None,
    collate: float | None,
    reads: bool,
    usual: float | None,
    late: float | None,
    summary: Summary,
    limits: Thresholds,
) -> str:
    """Which of the four kinds it is. A loader that cannot keep up on average is no tail, since depth of queue does not help it (T7);
    unless single samples that take far longer are why: then mending those is the way out, and usual batches are judged.
    """
    known = loader is not None and bool(loader.slow_samples)
    most = limits.tail_usual if summary.input_tail is None else limits.tail_usual_seen
    least = limits.tail_part
    if known:
        most, least = limits.tail_usual_known, limits.tail_part_known
    bursty = loader is not None and usual is not None and usual <= most and late is not None and late >= least
    if without_core(loader, limits) and not known:
        bursty = False
    if bursty and _keeps_up(loader, summary, usually=known) is not False and (known or not stalled_like_compute(summary, "Data", limits)):
        return "input_tail"
    if reads:
        return "input_io"
    if collate is not None and collate >= limits.collate_majority:
        return "collate"
    return "input_cpu"


def _copies_files(summary: Summary, loader: LoaderFacts | None, share: float, limits: Thresholds) -> bool:
    """Whether fetching is mostly copying what read calls bring from the page cache: that computes, and is input and output all the same."""
    host = summary.telemetry.host if summary.telemetry is not None else None
    if host is None or host.read_mb_s is None:
        return False
    fetching = loader.num_workers if loader is not None and loader.num_workers > 0 else share  # seconds of it in a second, at most
    return fetching > 0 and host.read_mb_s >= limits.copied_mb_s * fetching


def _keeps_up(loader: LoaderFacts | None, summary: Summary, usually: bool) -> bool | None:
    """Whether the workers make batches as fast as the rest of the step uses them: on average, or `usually`. None: not measured."""
    if loader is None or loader.num_workers == 0 or loader.getitem_ms is None:
        return None
    parts = [spread for spread in (loader.getitem_ms, loader.collate_ms) if spread is not None]
    batch = sum(part.p50_ms if usually and part.p50_ms is not None else part.mean_ms for part in parts)
    return batch / loader.num_workers <= summary.step_ms.mean_ms - summary.phases["Data"].mean_ms


def _far_ahead(loader: LoaderFacts | None, summary: Summary, limits: Thresholds) -> bool:
    """Whether worker processes need so little of a step to make its batch that nobody can be waiting for that."""
    if loader is None or loader.num_workers == 0 or loader.getitem_ms is None:
        return False
    batch = loader.getitem_ms.mean_ms + (loader.collate_ms.mean_ms if loader.collate_ms is not None else 0.0)
    rest = summary.step_ms.mean_ms - summary.phases["Data"].mean_ms
    return batch / loader.num_workers <= limits.far_ahead * rest


def _made_apart(summary: Summary, loader: LoaderFacts | None, share: float, limits: Thresholds) -> bool:
    """Whether worker processes make a batch in a small part of the time that training waits for one: then it waits for something else."""
    if loader is None or loader.num_workers == 0 or loader.getitem_ms is None:
        return False
    batch = loader.getitem_ms.mean_ms + (loader.collate_ms.mean_ms if loader.collate_ms is not None else 0.0)
    return batch / loader.num_workers <= limits.making_part * share * summary.step_ms.mean_ms


def _sampler(summary: Summary, loader: LoaderFacts | None, apart: bool, limits: Thresholds) -> Location | None:
    """The owner's iterator that runs in the training process below a fetch, beside making samples, where it is what takes the time.

    Where workers make batches in time, all that the training thread computes there counts; samples of it may be few, since it also
    waits to get going again. The line that asks for the batch is the loop's and is none of it.
    """
    if loader is None or (loader.num_workers > 0 and not apart):
        return None
    beside = [line for line in lines_in(summary, "Data", "main", "") if ITERATES.search(line.location.function)]
    spent = sum(line.share for line in beside)
    whole = sum(line.share for line in lines_in(summary, "Data"))
    least = limits.listed if apart else limits.making_part * whole
    return hottest(beside) if beside and spent >= max(least, limits.listed) else None


def _collate_part(summary: Summary, loader: LoaderFacts | None) -> float | None:
    """Of the time to make a batch: what the owner makes of the loader's batches, in a generator around it, is making too."""
    if loader is None or loader.collate_ms is None or loader.getitem_ms is None:
        return None
    whole = loader.collate_ms.mean_ms + loader.getitem_ms.mean_ms
    data = summary.phases["Data"].share
    own_file = loader.dataset_location.file if loader.dataset_location is not None else None
    beside = min(data, sum(line.share for line in _beside_the_loop(summary, loader) if line.location.file != own_file))
    fetched = 1 - beside / data if 0 < data <= 2 * beside else 1.0
    return fetched * loader.collate_ms.mean_ms / whole if whole > 0 else None


def _role(loader: LoaderFacts | None) -> str:
    return "worker" if loader is not None and loader.num_workers > 0 else "main"


def joined_at(loader: LoaderFacts | None, lines: list[LineCost]) -> Location | None:
    """The hottest of `lines`, in which samples are joined, else the owner's function for it, else the loader.

    Where a library's object joins them, the line that made it: samples of that lie in the line that runs the loop.
    """
    made = loader.collator_made_at if loader is not None and loader.collate_location is None else None
    found = made or hottest(lines)
    return found or (None if loader is None else loader.joined_at or loader.collate_location or loader.location)


def _beside_the_loop(summary: Summary, loader: LoaderFacts | None) -> list[LineCost]:
    """Lines that make batches out of what a loader gives: of a generator around it, in no function that also trains; inside the step."""
    inside = lines_in(summary, "Data", "main", "in_step")
    if _role(loader) != "main":
        return inside
    training = running_in(summary, COMPUTE)
    return inside + [line for line in lines_in(summary, "Data", "main", "") if (line.location.file, line.location.function) not in training]


def _location(summary: Summary, loader: LoaderFacts | None, name: str) -> Location | None:
    if name == "collate":
        return joined_at(loader, lines_in(summary, "Data", _role(loader), "collate"))
    samples, beside = lines_in(summary, "Data", _role(loader), "getitem"), _beside_the_loop(summary, loader)
    costlier = sum(line.share for line in beside) > sum(line.share for line in samples)
    found = hottest(beside if costlier else samples) or hottest(lines_in(summary, "Data", _role(loader)))
    if found is not None:
        return found
    inside = sorted((work for work in summary.repeated if phase_of(work, summary) == "Data"), key=lambda work: -work.share)
    if inside:
        return inside[0].location
    if summary.data_function is not None:
        return summary.data_function
    if loader is None:
        return None
    dataset = loader.dataset_location
    return loader.location if dataset is None or os.path.isabs(dataset.file) else dataset  # absolute: a library's own dataset
