"""How step time changes over the steady steps, and where."""

from __future__ import annotations

import numpy as np

from trainflash.schema import Site, Trend
from trainflash.summary.steady import NS_PER_MS, Steady
from trainflash.trace import RankTrace

LEAST_STEPS = 24  # own: four steps in each of the six parts
PARTS = 6
LEAST_READINGS = 4
NEAR_NS = 1_000_000_000  # of the two ends, so long may lie outside of all readings


def trend(rank: RankTrace, part: Steady, sites: tuple[Site, ...]) -> Trend | None:
    """The change from the first third of the steady steps to the last; None for too few of them."""
    kept = part.kept
    if len(kept) < LEAST_STEPS:
        return None
    wall = rank.wall_ns
    first, _, last = np.array_split(kept, 3)
    grown = {
        name: float(np.median(spent[last]) - np.median(spent[first])) for name, spent in rank.phase_ns.items() if len(spent) == len(wall)
    }
    changed = [
        site for site in sites if site.role == "main" and site.often == "step" and site.early_ms is not None and site.late_ms is not None
    ]
    site = max(changed, key=lambda each: (each.late_ms or 0.0) - (each.early_ms or 0.0), default=None)
    return Trend(
        steps=len(kept),
        early_ms=float(np.median(wall[first])) / NS_PER_MS,
        late_ms=float(np.median(wall[last])) / NS_PER_MS,
        parts_ms=tuple(float(np.median(wall[each])) / NS_PER_MS for each in np.array_split(kept, PARTS)),
        cpu_early_ms=_cpu_ms(rank, first),
        cpu_late_ms=_cpu_ms(rank, last),
        phase=max(grown, key=lambda name: grown[name], default="Other"),
        location=site.location if site is not None else None,
        site_early_ms=site.early_ms if site is not None else None,
        site_late_ms=site.late_ms if site is not None else None,
        in_hooks=site is not None and site.called_back == "engine",
    )


def _cpu_ms(rank: RankTrace, steps: np.ndarray) -> float | None:
    """CPU time of the training thread in a step, in the mean of these, between readings some seconds apart; None where none lie around."""
    readings = [(each.t_ns, each.oncpu_ns) for each in (rank.threads.cpu if rank.threads is not None else ()) if each.oncpu_ns is not None]
    begin, end = int(rank.step_start_ns[steps[0]]), int(rank.step_start_ns[steps[-1] + 1])
    if len(readings) < LEAST_READINGS or readings[0][0] > begin + NEAR_NS or readings[-1][0] < end - NEAR_NS:
        return None
    used = np.diff(np.interp([begin, end], [t for t, _ in readings], [ns for _, ns in readings]))[0]
    return float(used) / (int(steps[-1]) + 1 - int(steps[0])) / NS_PER_MS
