"""Samples → costs of the owner's lines."""

from __future__ import annotations

import numpy as np

from trainflash.schema import PHASES, LineCost, Location
from trainflash.summary.steady import Steady
from trainflash.trace import PARTS, Samples, Trace

MOST_LINES = 200
LEAST_LINE_SHARE = 0.001  # a line below a thousandth of the time explains nothing

Costs = dict[tuple[str, str, Location], int]  # (phase, part of making a batch, line) -> nanoseconds


def line_costs(samples: Samples, role: str, kept: np.ndarray) -> tuple[tuple[LineCost, ...], int]:
    """Costs of the owner's lines among the `kept` samples, costliest first, and the sampled time in ns."""
    cost, whole = _costs(samples, kept)
    return _ordered(cost, role, whole), whole


def worker_lines(trace: Trace, pid: int, part: Steady) -> tuple[LineCost, ...]:
    """Lines of all worker processes together, as shares of the time sampled in them; while workers wait they run no line of the owner's."""
    together: Costs = {}
    whole = 0
    for worker in trace.workers:
        if worker.parent == pid:
            cost, sampled = _costs(worker.samples, part.holds(worker.samples.t_ns))
            whole += sampled
            for key, weight in cost.items():
                together[key] = together.get(key, 0) + weight
    return _ordered(together, "worker", whole)


def _costs(samples: Samples, kept: np.ndarray) -> tuple[Costs, int]:
    owned = kept & (samples.place >= 0)
    parts = samples.part[owned] if samples.part is not None else np.zeros(int(owned.sum()), dtype=np.int64)
    cost: Costs = {}
    for place, phase, part, weight in zip(samples.place[owned], samples.phase[owned], parts, samples.weight_ns[owned], strict=True):
        key = (PHASES[phase], PARTS[part], samples.locations[place])
        cost[key] = cost.get(key, 0) + int(weight)
    return cost, int(samples.weight_ns[kept].sum())


def _ordered(cost: Costs, role: str, whole: int) -> tuple[LineCost, ...]:
    if whole == 0:
        return ()
    lines = [LineCost(role, phase, location, weight / whole, part) for (phase, part, location), weight in cost.items()]
    lines.sort(key=lambda line: -line.share)
    return tuple(line for line in lines[:MOST_LINES] if line.share >= LEAST_LINE_SHARE)
