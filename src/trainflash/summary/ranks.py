"""Ranks beside each other, and what their talking costs.

A rank that computes longer makes the others wait in the next collective, so all ranks' phases look equally long. What tells them apart is
the time that each spends outside collectives, and who stays shortest inside, compared where all ranks called equally many of them in a
step. All that is durations on each rank's own clock: machines need not agree on the time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from trainflash.schema import PHASES, Communication, Location, RankStat
from trainflash.summary.lines import line_costs
from trainflash.summary.steady import NS_PER_MS, Steady
from trainflash.trace import Collectives, RankTrace, Trace

ON_DEVICE = ("nccl", "rccl", "xccl")  # backends that wait on the device's stream, not on the host


def rank_stats(trace: Trace, part: Steady) -> tuple[RankStat, ...]:
    """Each rank over the steps that are steady in the first one."""
    found = []
    for rank in trace.ranks:
        steps = part.kept[part.kept < rank.steps]
        if not len(steps):
            continue
        phases = {name: float(column[steps].mean()) / NS_PER_MS for name, column in rank.phase_ns.items()}
        waiting = _waiting_ns(rank, steps)
        alone = len(trace.ranks) == 1 and rank.world_size == 1
        own: dict[str, float] = phases if waiting is None and alone else {}
        if waiting is not None:
            own = {name: max(0.0, phases[name] - float(waiting[index]) / len(steps) / NS_PER_MS) for index, name in enumerate(PHASES)}
        found.append(
            RankStat(
                rank=rank.rank,
                host=rank.host,
                step_ms=float(rank.wall_ns[steps].mean()) / NS_PER_MS,
                phases_ms=phases,
                own_ms=dict(own),
                waiting_ms=None if waiting is None else float(waiting.sum()) / len(steps) / NS_PER_MS,
                steps=len(steps),
                samples_per_step=_samples_per_step(rank, steps),
                hottest=_hottest(rank, steps),
            )
        )
    return tuple(found)


def _hottest(rank: RankTrace, steps: np.ndarray) -> dict[str, Location]:
    found: dict[str, Location] = {}
    lines, _ = line_costs(rank.samples, "main", np.isin(rank.samples.step, steps))
    for line in lines:  # costliest first
        found.setdefault(line.phase, line.location)
    return found


def _waiting_ns(rank: RankTrace, steps: np.ndarray) -> np.ndarray | None:
    """Time in collectives by phase; None where it was not recorded, or where the device does the waiting."""
    if rank.collectives is None or rank.parallel is None or _on_device(rank):
        return None
    mine = np.isin(rank.collectives.step, steps)
    return np.bincount(rank.collectives.phase[mine], weights=rank.collectives.host_ns[mine], minlength=len(PHASES))


def _on_device(rank: RankTrace) -> bool:
    return rank.parallel is not None and any(name in rank.parallel.backend for name in ON_DEVICE) and not rank.device.startswith("cpu")


def _samples_per_step(rank: RankTrace, steps: np.ndarray) -> float | None:
    """Mean leading dimension of the first input, times the backward calls of a step."""
    shapes = rank.batch.shapes if rank.batch is not None else {}
    counted = sum(count for shape, count in shapes.items() if shape)
    if not counted or "Bwd" not in rank.occurrences:
        return None
    backwards = float(np.isin(rank.occurrences["Bwd"].step, steps).sum()) / len(steps)
    return sum(shape[0] * count for shape, count in shapes.items() if shape) / counted * backwards


def communication(trace: Trace, rank: RankTrace, part: Steady) -> Communication | None:
    """Collectives of `rank` in the steady part; None where it joined no process group or nothing was recorded."""
    calls, how = rank.collectives, rank.parallel
    if calls is None or how is None or rank.world_size < 2:
        return None
    mine = part.keeps(calls.step)
    steps = max(1, len(part.kept))
    reductions = int(calls.reduction[mine].sum())
    buckets = how.buckets or 1
    host_ns = float(calls.host_ns[mine].sum())
    overlap = _overlap(how.comm_ns, how.overlap_ns)
    per_step_ns = host_ns / steps
    if _on_device(rank) and how.comm_ns is not None and how.overlap_ns is not None:
        per_step_ns = max(0.0, float(how.comm_ns - how.overlap_ns)) * reductions / steps  # DDP's own timers on the device
    plain = int((calls.called & ~calls.reduction)[mine].sum())
    wrapper, location = _who(calls, mine, rank)
    return Communication(
        backend=how.backend,
        wrapper=wrapper,
        share=min(1.0, per_step_ns * steps / part.wall_ns),
        per_step_ms=per_step_ns / NS_PER_MS,
        calls_per_step=(plain + reductions * buckets) / steps,
        bytes_per_step=float(calls.bytes[mine].sum()) / steps,
        overlap=overlap,
        find_unused_parameters=how.find_unused_parameters,
        static_graph=how.static_graph,
        bucket_cap_mb=how.bucket_cap_mb,
        syncs_per_step=reductions / steps if how.wrapper == "DDP" else None,
        wait_share=None if _on_device(rank) else _wait_share(trace, rank, part),
        location=location,
        operation=rank.parallel.lines[0].operation if rank.parallel.lines else "",
    )


def _overlap(comm_ns: int | None, overlap_ns: int | None) -> float | None:
    return min(1.0, max(0.0, overlap_ns / comm_ns)) if comm_ns and overlap_ns is not None else None


def _who(calls: Collectives, mine: np.ndarray, rank: RankTrace) -> tuple[str, Location | None]:
    """Who talks: the wrapper of the model, or the owner's own calls where these take longer than what a wrapper of DDP does."""
    how = rank.parallel
    direct = float(calls.host_ns[mine & ~calls.reduction].sum())
    reduced = float(calls.host_ns[mine & calls.reduction].sum())
    costliest = next((line.location for line in how.lines if line.location is not None), None)
    if how.wrapper == "DDP" and direct <= reduced:
        return how.wrapper, how.location
    if how.wrapper.startswith("FSDP"):
        return how.wrapper, how.location
    if direct == 0 and how.wrapper:
        return how.wrapper, how.location
    return "collectives", costliest


def _wait_share(trace: Trace, rank: RankTrace, part: Steady) -> float | None:
    """Part of `rank`'s time in collectives in which another rank had not come yet; None where not all ranks were recorded.

    The rank that stays shortest came last and only transfers; what the others stay longer they wait. No clock is compared.
    """
    if len(trace.ranks) != rank.world_size or any(other.collectives is None for other in trace.ranks):
        return None
    stays = _stays([rank.collectives, *(other.collectives for other in trace.ranks if other is not rank)], part)
    own = next(stays)
    inside = float(own.sum())
    return float((own - functools.reduce(np.minimum, stays, own)).sum()) / inside if inside else None


def _stays(calls: list[Collectives], part: Steady) -> Iterator[np.ndarray]:
    """How long each rank stayed in each collective (`[calls]`, ns) of the steps in which all ranks made equally many."""
    counts = [each.per_step(part.last)[part.kept] for each in calls]
    alike = part.kept[np.all([count == counts[0] for count in counts], axis=0)]
    return (each.host_ns[np.isin(each.step, alike)] for each in calls)
