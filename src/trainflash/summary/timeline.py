"""Trace → `Timeline`: every step in order, small enough to be drawn."""

from __future__ import annotations

import numpy as np

from trainflash import stats
from trainflash.schema import PHASES, Timeline
from trainflash.summary import device
from trainflash.summary.steady import NS_PER_MS, steady_part
from trainflash.trace import RankTrace, Trace

MOST_BINS = 120  # a bin is then at least two pixels wide on a phone


def timeline(trace: Trace, *, run: str, warmup: int | None = None) -> Timeline:
    """The steps of rank 0, warm-up included. Raises `Inconclusive` when the trace holds no complete step.

    `warmup` is the one that the summary was made with. Steps that the probe slowed stay in the bins and out of `step_ms`.
    """
    rank = trace.ranks[0]
    part = steady_part(rank, warmup)
    edges = np.unique(np.linspace(0, rank.steps, min(rank.steps, MOST_BINS) + 1).astype(np.int64))
    counts = np.diff(edges)
    columns = _columns(rank, on_device=device.covering(rank, part) is not None)
    known = {name: np.add.reduceat(column, edges[:-1]) / counts / NS_PER_MS for name, column in columns.items() if column.any()}
    return Timeline(
        run=run,
        steps=rank.steps,
        warmup_steps=part.first,
        first_step=tuple(int(step) for step in edges[:-1]),
        phases={name: tuple(float(value) for value in values) for name, values in known.items()},
        slowest_ms=tuple(float(value) for value in np.maximum.reduceat(rank.wall_ns, edges[:-1]) / NS_PER_MS),
        step_ms=stats.spread(rank.wall_ns[part.kept] / NS_PER_MS),
    )


def _columns(rank: RankTrace, *, on_device: bool) -> dict[str, np.ndarray]:
    """Exclusive time of each phase in each step, in the field's order; all of a step that no phase holds is Other."""
    zero = np.zeros(rank.steps, dtype=np.int64)
    spent = {name: rank.phase_ns.get(name, zero) for name in PHASES if name != "Other"}
    if on_device and rank.device_timeline is not None:
        moved = rank.device_timeline.moved_ns
        spent = {name: column + moved[PHASES.index(name)] for name, column in spent.items()}
    return {**spent, "Other": rank.wall_ns - sum(spent.values(), start=zero)}
