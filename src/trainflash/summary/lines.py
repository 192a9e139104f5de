"""Samples → costs of the owner's lines."""

from __future__ import annotations

import numpy as np

from trainflash.schema import PHASES, LineCost, Location
from trainflash.stacks import anchor
from trainflash.summary.steady import Steady
from trainflash.trace import PARTS, Samples, Trace

MOST_LINES = 200
LEAST_LINE_SHARE = 0.001  # a line below a thousandth of the time explains nothing

# (phase, part of making a batch, line) -> nanoseconds, and how many of them in a library that the line calls
Costs = dict[tuple[str, str, Location], tuple[int, int]]


def line_costs(samples: Samples, role: str, kept: np.ndarray, loops: frozenset[Location] = frozenset()) -> tuple[tuple[LineCost, ...], int]:
    """Costs of the owner's lines among the `kept` samples, costliest first, and the sampled time in ns.

    A line of `loops` stands for a loop inside a library: its time is that of the library's lines (see `sites`).
    """
    cost, whole = _costs(samples, kept, loops)
    return _ordered(cost, role, whole), whole


def worker_lines(trace: Trace, pid: int, part: Steady) -> tuple[LineCost, ...]:
    """Lines of all worker processes together, as shares of the time sampled in them; while workers wait they run no line of the owner's."""
    together: Costs = {}
    whole = 0
    for worker in trace.workers:
        if worker.parent == pid:
            cost, sampled = _costs(worker.samples, part.holds(worker.samples.t_ns))
            whole += sampled
            for key, spent in cost.items():
                _add(together, key, *spent)
    return _ordered(together, "worker", whole)


def _costs(samples: Samples, kept: np.ndarray, loops: frozenset[Location] = frozenset()) -> tuple[Costs, int]:
    owned = kept & (samples.place >= 0)
    parts = samples.part[owned] if samples.part is not None else np.zeros(int(owned.sum()), dtype=np.int64)
    stacks = samples.stack[owned] if samples.stack is not None else np.full(int(owned.sum()), -1)
    cost: Costs = {}
    for place, phase, part, weight, stack in zip(
        samples.place[owned], samples.phase[owned], parts, samples.weight_ns[owned], stacks, strict=True
    ):
        library = int(weight) if samples.libraries and samples.libraries[place] else 0
        location = samples.locations[place]
        if location in loops and stack >= 0:
            location = anchor(samples.stacks[stack], loops) or location
        _add(cost, (PHASES[phase], PARTS[part], location), int(weight), library)
    return cost, int(samples.weight_ns[kept].sum())


def _add(cost: Costs, key: tuple[str, str, Location], ns: int, in_library: int) -> None:
    before = cost.get(key, (0, 0))
    cost[key] = before[0] + ns, before[1] + in_library


def _ordered(cost: Costs, role: str, whole: int) -> tuple[LineCost, ...]:
    if whole == 0:
        return ()
    lines = [LineCost(role, phase, at, ns / whole, part, inside / whole) for (phase, part, at), (ns, inside) in cost.items()]
    lines.sort(key=lambda line: -line.share)
    return tuple(line for line in lines[:MOST_LINES] if line.share >= LEAST_LINE_SHARE)
