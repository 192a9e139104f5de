"""What a step would take if ranks were other than they are: predicted from measured durations, with what each answer assumes.

The model: between two collectives each rank works on its own; a collective begins when the last rank has come, and then transfers. So
a step is the sum over its collectives of the longest own stretch and of the transfer, which is the time inside of the rank that came
last. Only durations on each rank's own clock are used, so clocks need not agree. Where the model does not give the measured step again,
nothing is predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainflash.schema import RankWhatIf
from trainflash.summary.steady import NS_PER_MS, Steady
from trainflash.trace import RankTrace, Trace

LEAST_STEPS = 8
MODEL_ERROR = 0.10  # simulated and real gloo jobs whose collectives all ranks join lie within 3 %; a job of other structure far outside
SHIFTS = (0.21, 0.38, 0.5, 0.63, 0.79)  # of the recorded steps; by which new ranks are laid beside the old ones, and averaged over


@dataclass(frozen=True)
class Stretches:
    """Work before each collective and its transfer, ns. `own`: [ranks, steps, collectives of a step]; `transfer`: [steps, collectives]."""

    own: np.ndarray
    transfer: np.ndarray

    @property
    def ranks(self) -> int:
        return len(self.own)

    def step_ns(self) -> float:
        """Mean time of a step."""
        return float((self.own.max(axis=0) + self.transfer).sum(axis=1).mean())


def rank_what_if(trace: Trace, part: Steady) -> tuple[RankWhatIf, ...]:
    """Predictions for the steady part; empty for one rank, for ranks that are missing, and where the model does not hold."""
    measured = stretches(trace, part)
    if measured is None:
        return ()
    step_ns = float(trace.ranks[0].wall_ns[part.kept].mean())
    if abs(measured.step_ns() / step_ns - 1) > MODEL_ERROR:
        return ()
    return predictions(measured)


def predictions(measured: Stretches) -> tuple[RankWhatIf, ...]:
    """All answers, relative to the step that the model gives for the ranks as they are."""
    base = measured.step_ns()
    slowest = int(measured.own.sum(axis=(1, 2)).argmax())
    count = measured.ranks
    answers = (
        (
            "level", f"without the lateness of rank {slowest}", levelled(measured, slowest).step_ns(), 1.0,
            "it works like the median of the others",
        ),
        (
            "balanced", "with equal work for all ranks in each step", balanced(measured).step_ns(), 1.0,
            "how fast ranks are in the mean stays as it is",
        ),
        (
            "double", f"with {2 * count} ranks", doubled_ns(measured), 2.0,
            f"each gets a batch as now, new ranks are like these {count}, and the transfer is a ring's, bound by bandwidth",
        ),
    )  # fmt: skip
    return tuple(
        RankWhatIf(name, what, step_ns / NS_PER_MS, work * base / step_ns, assumes)
        for name, what, step_ns, work, assumes in answers
        if step_ns > 0
    )


def stretches(trace: Trace, part: Steady) -> Stretches | None:
    """What each rank did between collectives, over the steady steps that have the usual number of them on all ranks."""
    ranks = trace.ranks
    if len(ranks) < 2 or len(ranks) != ranks[0].world_size or any(rank.collectives is None for rank in ranks):
        return None
    if any(rank.steps < part.last for rank in ranks) or not ranks[0].device.startswith("cpu"):
        return None  # on a device the host's time in a collective says nothing of its transfer
    first, last = part.first, part.last
    per_step = np.stack([rank.collectives.per_step(last)[first:] for rank in ranks])
    usual = int(np.median(per_step[0]))
    kept = np.isin(np.arange(first, last), part.kept) & (per_step == usual).all(axis=0)
    kept[1:] &= kept[:-1]  # the first stretch of a step begins in the step before
    kept[0] = False
    steps = first + np.flatnonzero(kept)
    if not usual or len(steps) < LEAST_STEPS:
        return None
    own, inside = zip(*(_of_rank(rank, steps, usual) for rank in ranks), strict=True)
    return Stretches(np.stack(own), np.stack(inside).min(axis=0))


def _of_rank(rank: RankTrace, steps: np.ndarray, usual: int) -> tuple[np.ndarray, np.ndarray]:
    """(own stretch before, time inside) of each collective: [steps, collectives]."""
    calls = rank.collectives
    rows = np.searchsorted(calls.step, steps)[:, None] + np.arange(usual)
    begins = calls.end_ns[rows] - calls.host_ns[rows]
    return np.maximum(begins - calls.end_ns[rows - 1], 0).astype(float), calls.host_ns[rows].astype(float)


def levelled(measured: Stretches, rank: int) -> Stretches:
    """`rank` works as long as the median of the others, and varies as much."""
    means, spreads = measured.own.mean(axis=1), measured.own.std(axis=1)
    usual, varies = (np.median(np.delete(each, rank, axis=0), axis=0) for each in (means, spreads))
    own = measured.own.copy()
    own[rank] = usual + (own[rank] - means[rank]) * np.divide(varies, spreads[rank], out=np.ones_like(varies), where=spreads[rank] > 0)
    return replace(measured, own=np.maximum(own, 0))


def balanced(measured: Stretches) -> Stretches:
    """What differs between ranks in one step only, as the lengths of their sequences do, is shared equally among them."""
    means = measured.own.mean(axis=1, keepdims=True)
    return replace(measured, own=np.maximum(means + (measured.own - means).mean(axis=0, keepdims=True), 0))


def doubled_ns(measured: Stretches) -> float:
    """Mean step of twice as many ranks: the new ones do what the old ones did in other steps."""
    count, steps = measured.ranks, measured.own.shape[1]
    more = (2 * count - 1) / (2 * (count - 1))  # a ring of n ranks moves 2 (n - 1) / n of the data over each link
    moved = [np.roll(measured.own, max(1, round(steps * shift)), axis=1) for shift in SHIFTS]
    return float(np.mean([Stretches(np.concatenate((measured.own, each)), measured.transfer * more).step_ns() for each in moved]))
