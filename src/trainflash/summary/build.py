"""Trace → `Summary`: where the time of the steady part went, and what the run was seen to do.

The steady part begins after start-up and after the warm-up that `stats.find_warmup` finds, and ends with the last complete step. Too
few steps to find one: the first five are dropped, never more than half. Shares are of its wall time and add up to 1 with Other.

With several ranks all figures are rank 0's; `ranks` and `processes` count the others. Evaluations, checkpoints and logs are counted
over the whole run, so that one which falls on warm-up or after the last step does not vanish.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trainflash import stats
from trainflash.schema import PHASES, Activity, Location, Peaks, PhaseStat, Spread, Summary, Telemetry, ThreadBeside, Threads
from trainflash.summary import device
from trainflash.summary.by_stack import with_phases_by_stack
from trainflash.summary.compute import compute_facts
from trainflash.summary.evaluating import evaluation_input
from trainflash.summary.input import input_tail, loader_facts, worker_memory
from trainflash.summary.lines import line_costs, worker_lines
from trainflash.summary.rank_what_if import rank_what_if
from trainflash.summary.ranks import communication, rank_stats
from trainflash.summary.repeats import repeated_work
from trainflash.summary.sites import cost_sites
from trainflash.summary.steady import NS_PER_MS, NS_PER_S, Steady, spread, steady_part
from trainflash.summary.trends import trend
from trainflash.trace import Beside, CpuReading, RankTrace, Trace

MOST_OF_IT = 0.5  # own: readings that span half of the steady part stand for it; what came before may be quite other work


def summarize(
    trace: Trace,
    *,
    run: str,
    project: str,
    warmup: int | None = None,
    telemetry: Telemetry | None = None,
    peaks: Peaks | None = None,
    part: Steady | None = None,
) -> Summary:
    """The summary of `trace`. Raises `Inconclusive` when the trace holds no complete step.

    `warmup` steps are left out instead of those that look like warm-up. `telemetry` is what machine and GPUs did during the steady part,
    `peaks` what the machine can do at most where this run did not measure it, `part` other steps than the steady ones.
    """
    rank = trace.ranks[0]
    part = part or steady_part(rank, warmup)
    rank = with_phases_by_stack(replace(rank, samples=part.counted(rank.samples)), part)
    phases = _phases(rank, part)
    processes = (*trace.ranks, *trace.workers)
    swallowed: dict[str, int] = {}
    for process in processes:
        for place, times in process.swallowed.items():
            swallowed[place] = swallowed.get(place, 0) + times
    found = cost_sites(trace, rank, part, rank.peaks or peaks)
    sites = found.sites
    main_lines, sampled_ns = line_costs(rank.samples, "main", part.keeps(rank.samples.step), found.loops)
    return Summary(
        run=run,
        project=project,
        steps=len(part.kept),
        warmup_steps=part.first,
        epochs=rank.epochs,
        wall_s=(rank.end_ns - rank.process_start_ns) / NS_PER_S,
        startup_s=(int(rank.step_start_ns[0]) - rank.process_start_ns) / NS_PER_S,
        steady_s=part.wall_ns / NS_PER_S,
        timeline="host" if device.covering(rank, part) is None else "device",
        device=rank.device,
        coverage=1.0 - phases["Other"].share,
        phases=phases,
        step_ms=stats.spread(rank.wall_ns[part.kept] / NS_PER_MS),
        ranks=len(trace.ranks),
        processes=len(processes),
        lines=main_lines + worker_lines(trace, rank.pid, part),
        loaders=tuple(loader_facts(loader, trace, rank, part) for loader in rank.loaders),
        repeated=repeated_work(trace, rank, part, {name: stat.share for name, stat in phases.items()}),
        evaluation_input=evaluation_input(rank.samples, part.keeps(rank.samples.step)),
        worker_memory=worker_memory(trace, rank),
        settings=tuple(dict.fromkeys(setting for each in trace.ranks for setting in each.settings)),
        written=rank.written,
        imported=tuple(dict.fromkeys(name for each in trace.ranks for name in each.imported)),
        startup=rank.startup,
        activities=_activities(rank),
        threads=_threads(rank, part),
        versions=dict(rank.versions),
        swallowed=swallowed,
        dropped_events=sum(process.dropped_events for process in processes),
        sampled_s=sampled_ns / NS_PER_S if sampled_ns else None,
        padding_share=rank.batch.padding / rank.batch.elements if rank.batch is not None and rank.batch.elements else None,
        common_padding_share=_common_padding(rank),
        padded=rank.batch.padded if rank.batch is not None else (),
        padded_by=rank.batch.padded_by if rank.batch is not None else None,
        fixed_width_at=rank.batch.fixed_width_at if rank.batch is not None else None,
        input_shapes=rank.batch.signatures or len(rank.batch.shapes) if rank.batch is not None and rank.batch.shapes else None,
        listed_numbers=rank.batch.listed if rank.batch is not None else 0,
        data_function=rank.data_functions[0].location if rank.data_functions else None,
        telemetry=telemetry,
        device_time=device.device_time(rank, part),
        input_tail=input_tail(rank, part),
        communication=communication(trace, rank, part),
        rank_stats=rank_stats(trace, part),
        rank_what_if=rank_what_if(trace, part),
        sites=sites,
        python_in_network=found.python,
        trend=trend(rank, part, sites),
        stopped=trace.stopped,
        steady=part.settled,
        **compute_facts(rank, part, phases),
    )


def _phases(rank: RankTrace, part: Steady) -> dict[str, PhaseStat]:
    """Every phase that occurs, and Other always; what no phase holds is Other, so that the shares add up to 1."""
    spent, on_device = device.phase_ns(rank, part), device.device_ms(rank, part)
    known = {name: spent[name] for name in PHASES if name != "Other" and name in spent}
    columns = {name: column for name, column in known.items() if column.any() or _occurs(rank, name)}
    wall = rank.wall_ns[part.kept]
    columns["Other"] = wall - sum(columns.values(), start=np.zeros_like(wall))
    found = {}
    for name, column in columns.items():
        per_step = stats.spread(column / NS_PER_MS)
        found[name] = PhaseStat(
            share=part.weighed(name, float(column.sum())) / part.wall_ns,
            mean_ms=per_step.mean_ms,
            p50_ms=per_step.p50_ms,
            p95_ms=per_step.p95_ms,
            p99_ms=per_step.p99_ms,
            per_occurrence=_per_occurrence(rank, name, part),
            device_ms=on_device.get(name),
        )
    return found


def _occurs(rank: RankTrace, name: str) -> bool:
    return name in rank.occurrences and rank.occurrences[name].start_ns.size > 0


def _per_occurrence(rank: RankTrace, name: str, part: Steady) -> Spread | None:
    if not _occurs(rank, name):
        return None
    spans = rank.occurrences[name]
    return spread(spans.exclusive_ns[part.keeps(spans.step)])


def _activities(rank: RankTrace) -> tuple[Activity, ...]:
    return (*_evaluations(rank), *_checkpoints(rank), *_logs(rank))


def _every(rank: RankTrace, starts_ns: list[int]) -> float | None:
    """Steps from one to the next, from the first to the last; None for a single one, and where all came within one step."""
    at = np.searchsorted(rank.step_start_ns, (min(starts_ns), max(starts_ns)), side="right")
    between = int(at[1] - at[0])
    return between / (len(starts_ns) - 1) if between else None


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
                every_steps=_every(rank, [each.start_ns for each in group]),
                mean_ms=float(np.mean(seen)) / NS_PER_MS,
                location=location,
                grad_enabled=any(grads) if grads else None,
                batches=float(np.mean([each.batches for each in group])),
                batch_size=max(sizes, default=None),
                forwards=tuple(dict.fromkeys(place for each in group for place in each.forwards)),
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
                every_steps=_every(rank, [save.start_ns for save in group]),
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
            every_steps=rank.steps / log.count if log.count > 1 else None,
            mean_ms=log.total_ns / log.count / NS_PER_MS,
            location=log.location,
        )
        for log in rank.logs
        if log.count
    ]


def _common_padding(rank: RankTrace) -> float | None:
    """Share of the inputs' elements that is padding in all rows of its batch."""
    batch = rank.batch
    return None if batch is None or not batch.elements or batch.common_padding is None else batch.common_padding / batch.elements


def _readings(rank: RankTrace, part: Steady) -> tuple[CpuReading, CpuReading] | None:
    """First and last reading of the steady part where they span most of it, else of the whole run; None without two."""
    readings = rank.threads.cpu if rank.threads is not None else ()
    steady = [each for each in readings if part.from_ns <= each.t_ns <= part.to_ns]
    if len(steady) >= 2 and steady[-1].t_ns - steady[0].t_ns >= MOST_OF_IT * (part.to_ns - part.from_ns):
        readings = tuple(steady)
    return (readings[0], readings[-1]) if len(readings) >= 2 else None


def _threads(rank: RankTrace, part: Steady) -> Threads | None:
    facts = rank.threads
    if facts is None:
        return None
    budgets = [float(cpus) for cpus in (facts.affinity, facts.cgroup_cpus) if cpus is not None]
    ends = _readings(rank, part)
    span = ends[1].t_ns - ends[0].t_ns if ends is not None else 0

    def used(name: str) -> int | None:
        first, last = (getattr(each, name) for each in ends) if ends is not None else (None, None)
        return None if first is None or last is None else int(last) - int(first)

    cpu, runnable, running = used("cpu_ns"), used("runq_ns"), used("oncpu_ns")
    return Threads(
        cpus=min(budgets, default=None),
        torch_threads=facts.torch_threads,
        interop_threads=facts.interop_threads,
        omp_num_threads=facts.omp_num_threads,
        cpu_seconds=cpu / NS_PER_S if cpu is not None else None,
        wall_seconds=span / NS_PER_S if span > 0 else None,
        runqueue_share=runnable / span if runnable is not None and span > 0 else None,
        set_at=facts.set_at,
        thread_cpu_share=running / span if running is not None and span > 0 else None,
        **_beside(facts.beside),
    )


def _beside(found: Beside | None) -> dict[str, Any]:
    if found is None or found.wall_ns <= 0 or found.work_ns <= 0:
        return {}
    return {
        "beside": tuple(ThreadBeside(each.name, each.cpu_ns / found.wall_ns, each.location, each.makes) for each in found.threads),
        "standing_share": max(0.0, 1 - (found.work_cpu_ns + found.work_runq_ns) / found.work_ns),
        "helpers_cpu_share": found.helpers_ns / found.wall_ns,
    }
