"""What a phase costs without the stalls of a busy machine."""

from __future__ import annotations

from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Summary

COMPUTE = ("Fwd", "Bwd", "Opt")


def busy_machine(summary: Summary, limits: Thresholds) -> bool:
    """Whether the training process is known to have waited for a core much of the time."""
    threads = summary.threads
    return threads is not None and threads.runqueue_share is not None and threads.runqueue_share >= limits.runqueue_wait


def calm_share(summary: Summary, phase: str, limits: Thresholds) -> float:
    """Share of `phase` to judge by: what it would be without the stalls of a busy machine, where those explain its slow steps.

    A stall takes the same milliseconds wherever it falls, so on a busy machine it makes cheap phases look dear. Only for phases that
    every step has; the mean share where the machine is not known to be busy, or where the phase has slow steps of its own.
    """
    stat = summary.phases[phase]
    if not busy_machine(summary, limits) or not stat.p50_ms or not stalled_like_compute(summary, phase, limits):
        return stat.share
    whole = sum(other.p50_ms or other.mean_ms for other in summary.phases.values())
    return min(stat.share, stat.p50_ms / whole) if whole > 0 else stat.share


def stalled_like_compute(summary: Summary, phase: str, limits: Thresholds) -> bool:
    """Whether the slow steps of `phase` cost no more than those of forward, backward or optimizer: they have the same cause then."""
    over = {name: stat.mean_ms - stat.p50_ms for name, stat in summary.phases.items() if stat.p50_ms is not None}
    compute = max((over[name] for name in COMPUTE if name in over), default=0.0)
    return phase in over and over[phase] <= limits.tail_beyond_compute * compute
