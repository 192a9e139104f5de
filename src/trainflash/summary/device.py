"""The device's side of the steady part: phases after the waits were given to whom they belong, device time of each phase, and the lag.

Where events cover too few steps, the host's timeline stands, and nothing is said about the device.
"""

from __future__ import annotations

import numpy as np

from trainflash.schema import PHASES, DeviceTime
from trainflash.summary.steady import NS_PER_MS, Steady
from trainflash.trace import RankTrace
from trainflash.trace.accounting import step_of
from trainflash.trace.model import DeviceTimeline

ENOUGH = 0.8  # of the steady steps: the rest cannot turn a share around


def covering(rank: RankTrace, part: Steady) -> DeviceTimeline | None:
    """The device's timeline, if it has complete times of enough steady steps."""
    found = rank.device_timeline
    if found is None or not len(part.kept) or float(np.mean(found.complete[part.kept])) < ENOUGH:
        return None
    return found


def phase_ns(rank: RankTrace, part: Steady) -> dict[str, np.ndarray]:
    """Exclusive time of each phase in each step that counts; with device times, waits for the device are where they belong."""
    found = covering(rank, part)
    columns = {name: values[part.kept] for name, values in rank.phase_ns.items()}
    if found is None:
        return columns
    zero = np.zeros(len(part.kept), dtype=np.int64)
    return {name: columns.get(name, zero) + found.moved_ns[index][part.kept] for index, name in enumerate(PHASES)}


def device_ms(rank: RankTrace, part: Steady) -> dict[str, float]:
    """Device work of each phase per step, over the steps with complete device times; {} without them."""
    found = covering(rank, part)
    if found is None:
        return {}
    counted, inside, _ = _spans(rank, part, found)
    work = np.bincount(found.phase[inside], weights=found.work_ns[inside], minlength=len(PHASES)) / len(counted) / NS_PER_MS
    return {name: float(ms) for name, ms in zip(PHASES, work, strict=True)}


def device_time(rank: RankTrace, part: Steady) -> DeviceTime | None:
    """The device's timeline in short; None where there is none."""
    found = covering(rank, part)
    if found is None:
        return None
    counted, inside, wall_ns = _spans(rank, part, found)
    lag = found.lag_ns[counted]
    lag = lag[~np.isnan(lag)]
    lag_ms = float(np.median(lag)) / NS_PER_MS if len(lag) else None
    return DeviceTime(
        steps=len(counted),
        busy_share=min(1.0, float(found.work_ns[inside & found.main].sum()) / wall_ns),
        lag_ms=lag_ms,
        lag_share=None if lag_ms is None else lag_ms / (wall_ns / len(counted) / NS_PER_MS),
        dropped=found.dropped,
    )


def _spans(rank: RankTrace, part: Steady, found: DeviceTimeline) -> tuple[np.ndarray, np.ndarray, int]:
    """The steps that count and are complete, which spans were queued in them, and their wall time."""
    counted = part.kept[found.complete[part.kept]]
    inside = np.isin(step_of(found.queued_ns, rank.step_start_ns), counted)
    return counted, inside, max(1, int(rank.wall_ns[counted].sum()))
