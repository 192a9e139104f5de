"""Trace → `Summary`: where the time of the steady part went, and what the run was seen to do.

The steady part begins after start-up and after the warm-up that `stats.find_warmup` finds, and ends with the last complete step. Too
few steps to find one: the first five are dropped, never more than half. Shares are of its wall time and add up to 1 with Other.

With several ranks all figures are rank 0's; `ranks` and `processes` count the others. Evaluations, checkpoints and logs are counted
over the whole run, so that one which falls on warm-up or after the last step does not vanish.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainflash import stats
from trainflash.schema import PHASES, Activity, LineCost, LoaderFacts, Location, PhaseStat, Spread, Summary, Threads
from trainflash.summary.repeats import repeated_work
from trainflash.trace import Fetches, LoaderTrace, RankTrace, Samples, Trace

NS_PER_MS = 1e6
NS_PER_S = 1e9
MOST_LINES = 200
LEAST_LINE_SHARE = 0.001  # a line below a thousandth of the time explains nothing


@dataclass(frozen=True)
class Steady:
    """The steady part of one rank: steps `first` to `last` (exclusive), between two moments of CLOCK_MONOTONIC."""

    first: int
    last: int
    from_ns: int
    to_ns: int
    settled: bool | None  # None: too few steps to tell

    @property
    def wall_ns(self) -> int:
        """Wall time of the steady part, at least 1 so that shares are finite."""
        return max(1, self.to_ns - self.from_ns)

    def holds(self, at_ns: np.ndarray) -> np.ndarray:
        """Which of these moments lie in the steady part."""
        return (at_ns >= self.from_ns) & (at_ns < self.to_ns)


def steady_part(rank: RankTrace) -> Steady:
    """Where the steady part of `rank` lies."""
    found = stats.find_warmup(rank.wall_ns / NS_PER_MS)
    enough = rank.steps >= 4 * stats.WARMUP_WINDOW
    fallback = rank.steps // 2 if enough else min(stats.WARMUP_LEAST, rank.steps // 2)
    first = fallback if found is None else found
    return Steady(
        first=first,
        last=rank.steps,
        from_ns=int(rank.step_start_ns[first]),
        to_ns=int(rank.step_start_ns[rank.steps]),
        settled=(found is not None) if enough else None,
    )


def summarize(trace: Trace, *, run: str, project: str) -> Summary:
    """The summary of `trace`. Raises `Inconclusive` when the trace holds no complete step."""
    rank = trace.ranks[0]
    part = steady_part(rank)
    phases = _phases(rank, part)
    processes = (*trace.ranks, *trace.workers)
    swallowed: dict[str, int] = {}
    for process in processes:
        for place, times in process.swallowed.items():
            swallowed[place] = swallowed.get(place, 0) + times
    main_lines, sampled_ns = _lines(rank.samples, "main", rank.samples.step >= part.first)
    return Summary(
        run=run,
        project=project,
        steps=part.last - part.first,
        warmup_steps=part.first,
        epochs=rank.epochs,
        wall_s=(rank.end_ns - rank.process_start_ns) / NS_PER_S,
        startup_s=(int(rank.step_start_ns[0]) - rank.process_start_ns) / NS_PER_S,
        steady_s=part.wall_ns / NS_PER_S,
        timeline="host",
        device=rank.device,
        coverage=1.0 - phases["Other"].share,
        phases=phases,
        step_ms=stats.spread(rank.wall_ns[part.first :] / NS_PER_MS),
        ranks=len(trace.ranks),
        processes=len(processes),
        lines=main_lines + _worker_lines(trace, rank.pid, part),
        loaders=tuple(_loader(loader, trace, rank, part) for loader in rank.loaders),
        repeated=repeated_work(trace, rank, part.from_ns, part.to_ns, {name: stat.share for name, stat in phases.items()}),
        settings=tuple(dict.fromkeys(setting for each in trace.ranks for setting in each.settings)),
        activities=_activities(rank),
        threads=_threads(rank),
        versions=dict(rank.versions),
        swallowed=swallowed,
        dropped_events=sum(process.dropped_events for process in processes),
        sampled_s=sampled_ns / NS_PER_S if sampled_ns else None,
        padding_share=rank.batch.padding / rank.batch.elements if rank.batch is not None and rank.batch.elements else None,
        input_shapes=len(rank.batch.shapes) if rank.batch is not None and rank.batch.shapes else None,
        data_function=rank.data_functions[0].location if rank.data_functions else None,
        stopped=trace.stopped,
        steady=part.settled,
    )


def _phases(rank: RankTrace, part: Steady) -> dict[str, PhaseStat]:
    """Every phase that occurs, and Other always; what no phase holds is Other, so that the shares add up to 1."""
    wall = rank.wall_ns[part.first :]
    known = {name: rank.phase_ns[name][part.first :] for name in PHASES if name != "Other" and name in rank.phase_ns}
    columns = {name: column for name, column in known.items() if column.any() or _occurs(rank, name)}
    columns["Other"] = wall - sum(columns.values(), start=np.zeros_like(wall))
    found = {}
    for name, column in columns.items():
        per_step = stats.spread(column / NS_PER_MS)
        found[name] = PhaseStat(
            share=float(column.sum()) / part.wall_ns,
            mean_ms=per_step.mean_ms,
            p50_ms=per_step.p50_ms,
            p95_ms=per_step.p95_ms,
            p99_ms=per_step.p99_ms,
            per_occurrence=_per_occurrence(rank, name, part),
        )
    return found


def _occurs(rank: RankTrace, name: str) -> bool:
    return name in rank.occurrences and rank.occurrences[name].start_ns.size > 0


def _per_occurrence(rank: RankTrace, name: str, part: Steady) -> Spread | None:
    if not _occurs(rank, name):
        return None
    spans = rank.occurrences[name]
    return _spread(spans.exclusive_ns[(spans.step >= part.first) & (spans.step < part.last)])


def _spread(values_ns: np.ndarray) -> Spread | None:
    """The spread in milliseconds, None for no values."""
    return stats.spread(values_ns / NS_PER_MS) if len(values_ns) else None


def _lines(samples: Samples, role: str, kept: np.ndarray) -> tuple[tuple[LineCost, ...], int]:
    """Costs of the owner's lines among the `kept` samples, costliest first, and the sampled time in ns."""
    whole = int(samples.weight_ns[kept].sum())
    if whole == 0:
        return (), 0
    owned = kept & (samples.place >= 0)
    cost: dict[tuple[str, Location], int] = {}
    for place, phase, weight in zip(samples.place[owned], samples.phase[owned], samples.weight_ns[owned], strict=True):
        key = (PHASES[phase], samples.locations[place])
        cost[key] = cost.get(key, 0) + int(weight)
    lines = [LineCost(role, phase, location, weight / whole) for (phase, location), weight in cost.items()]
    lines.sort(key=lambda line: -line.share)
    return tuple(line for line in lines[:MOST_LINES] if line.share >= LEAST_LINE_SHARE), whole


def _worker_lines(trace: Trace, pid: int, part: Steady) -> tuple[LineCost, ...]:
    """Lines of all worker processes together, as shares of the time sampled in them."""
    cost: dict[Location, float] = {}
    whole = 0
    for worker in trace.workers:
        if worker.parent != pid:
            continue
        lines, sampled = _lines(worker.samples, "worker", part.holds(worker.samples.t_ns))
        whole += sampled
        for line in lines:
            cost[line.location] = cost.get(line.location, 0.0) + line.share * sampled
    ordered = sorted(cost.items(), key=lambda item: -item[1])
    return tuple(LineCost("worker", "Data", location, weight / whole) for location, weight in ordered[:MOST_LINES])


def _loader(loader: LoaderTrace, trace: Trace, rank: RankTrace, part: Steady) -> LoaderFacts:
    fetches = [loader.fetches, *(worker.fetches for worker in trace.workers if worker.parent == rank.pid and worker.loader == loader.id)]
    getitem, collate, cpu = _steady_fetches(fetches, part)
    busy = float(getitem.sum() + collate.sum())
    return LoaderFacts(
        id=loader.id,
        role=loader.role,
        location=loader.location,
        num_workers=loader.num_workers,
        batch_size=loader.batch_size,
        persistent_workers=loader.persistent_workers,
        pin_memory=loader.pin_memory,
        prefetch_factor=loader.prefetch_factor,
        shuffles=loader.shuffles,
        own_generator=loader.own_generator,
        iterable=loader.iterable,
        dataset=loader.dataset,
        dataset_location=loader.dataset_location,
        dataset_len=loader.dataset_len,
        sample_bytes=loader.sample_bytes,
        epochs=len(loader.iter_at_ns),
        start_ms=_spread(loader.iter_ns),
        first_batch_ms=_spread(loader.first_batch_ns),
        getitem_ms=_spread(getitem),
        collate_ms=_spread(collate),
        fetch_cpu_share=min(1.0, float(cpu.sum()) / busy) if busy > 0 else None,
        pass_ms=_passes(loader, rank, part),
    )


def _passes(loader: LoaderTrace, rank: RankTrace, part: Steady) -> Spread | None:
    """What beginning a pass costs beyond usual steps: the end of the workers before, starting new ones, and the first batch of each."""
    if loader.role != "train" or loader.num_workers == 0 or "Data" not in rank.phase_ns:
        return None
    data = rank.phase_ns["Data"]
    usual = float(np.median(data[part.first :]))
    begins = np.searchsorted(rank.step_start_ns, loader.iter_at_ns, side="right") - 1
    begins = begins[(begins >= part.first) & (begins < part.last)]
    spans = [data[begin : begin + loader.num_workers] for begin in begins]
    return _spread(np.array([max(0.0, float(span.sum()) - usual * len(span)) for span in spans]))


def _steady_fetches(fetches: Iterable[Fetches], part: Steady) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dataset, collate and CPU time of the batches made in the steady part; of all batches where it has none (a late evaluation)."""
    joined = [np.concatenate([getattr(each, name) for each in fetches]) for name in ("start_ns", "getitem_ns", "collate_ns", "cpu_ns")]
    start, getitem, collate, cpu = joined
    kept = part.holds(start)
    if not kept.any():
        kept = np.ones_like(kept)
    return getitem[kept], collate[kept], cpu[kept]


def _activities(rank: RankTrace) -> tuple[Activity, ...]:
    return (*_evaluations(rank), *_checkpoints(rank), *_logs(rank))


def _every(rank: RankTrace, count: int) -> float | None:
    return rank.steps / count if count > 1 else None


def _evaluations(rank: RankTrace) -> list[Activity]:
    """Evaluations by the owner's function that runs them; a duration comes from the span that began with it."""
    spans = rank.occurrences.get("Eval")
    durations = dict(zip(spans.start_ns.tolist(), (spans.end_ns - spans.start_ns).tolist(), strict=True)) if spans is not None else {}
    groups: dict[Location | None, list] = {}
    for evaluation in rank.evaluations:
        groups.setdefault(evaluation.location, []).append(evaluation)
    found = []
    for location, group in groups.items():
        seen = [durations[each.start_ns] for each in group if each.start_ns in durations]
        sizes = [each.batch_size for each in group if each.batch_size is not None]
        grads = [each.grad_enabled for each in group if each.grad_enabled is not None]
        if not seen:
            continue
        found.append(
            Activity(
                phase="Eval",
                count=len(group),
                every_steps=_every(rank, len(group)),
                mean_ms=float(np.mean(seen)) / NS_PER_MS,
                location=location,
                grad_enabled=any(grads) if grads else None,
                batches=float(np.mean([each.batches for each in group])),
                batch_size=max(sizes, default=None),
            )
        )
    return found


def _checkpoints(rank: RankTrace) -> list[Activity]:
    groups: dict[Location | None, list] = {}
    for save in rank.saves:
        groups.setdefault(save.location, []).append(save)
    found = []
    for location, group in groups.items():
        sizes = [save.bytes for save in group if save.bytes is not None]
        found.append(
            Activity(
                phase="Ckpt",
                count=len(group),
                every_steps=_every(rank, len(group)),
                mean_ms=float(np.mean([save.duration_ns for save in group])) / NS_PER_MS,
                location=location,
                bytes=int(np.mean(sizes)) if sizes else None,
            )
        )
    return found


def _logs(rank: RankTrace) -> list[Activity]:
    return [
        Activity(
            phase="Log",
            count=log.count,
            every_steps=_every(rank, log.count),
            mean_ms=log.total_ns / log.count / NS_PER_MS,
            location=log.location,
        )
        for log in rank.logs
        if log.count
    ]


def _threads(rank: RankTrace) -> Threads | None:
    facts = rank.threads
    if facts is None:
        return None
    budgets = [float(cpus) for cpus in (facts.affinity, facts.cgroup_cpus) if cpus is not None]
    span = facts.cpu_to_ns - facts.cpu_from_ns if facts.cpu_from_ns is not None and facts.cpu_to_ns is not None else 0
    return Threads(
        cpus=min(budgets, default=None),
        torch_threads=facts.torch_threads,
        interop_threads=facts.interop_threads,
        omp_num_threads=facts.omp_num_threads,
        cpu_seconds=facts.cpu_ns / NS_PER_S if facts.cpu_ns is not None else None,
        wall_seconds=span / NS_PER_S if span > 0 else None,
        runqueue_share=facts.runq_ns / span if facts.runq_ns is not None and span > 0 else None,
        set_at=facts.set_at,
    )
