"""The steady part of one rank: where it begins and ends, and spreads of what lies in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainflash import stats
from trainflash.schema import Spread
from trainflash.trace import RankTrace

FEW = 20  # own: steps, of fewer none is given away that can be kept
UNNOTICED = 1.1  # own: times a usual step; steps differ by more than a tenth among themselves
NOTICED = 0.02  # own: of the time in evaluations, before it matters how many of them a window holds
OFTEN = 0.2  # own: of the steps with an evaluation; more often there are many rounds in any window
NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True)
class Steady:
    """The steady part of one rank: steps `first` to `last` (exclusive), between two moments of CLOCK_MONOTONIC."""

    first: int
    last: int
    from_ns: int
    to_ns: int
    settled: bool | None  # None: too few steps to tell
    left_out: tuple[tuple[int, int, int], ...] = ()  # (step, from_ns, to_ns) of steps inside that the probe slowed to look closer

    @property
    def wall_ns(self) -> int:
        """Wall time of the steady part, at least 1 so that shares are finite."""
        return max(1, self.to_ns - self.from_ns - sum(to_ns - from_ns for _, from_ns, to_ns in self.left_out))

    @cached_property
    def kept(self) -> np.ndarray:
        """Indices of the steps that count, in order."""
        out = [step for step, _, _ in self.left_out]
        return np.setdiff1d(np.arange(self.first, self.last), np.array(out, dtype=np.int64))

    def keeps(self, step: np.ndarray) -> np.ndarray:
        """Which of these step indices count."""
        return np.isin(step, self.kept)

    def holds(self, at_ns: np.ndarray) -> np.ndarray:
        """Which of these moments lie in the steady part."""
        inside = (at_ns >= self.from_ns) & (at_ns < self.to_ns)
        for _, from_ns, to_ns in self.left_out:
            inside &= (at_ns < from_ns) | (at_ns >= to_ns)
        return inside


def steady_part(rank: RankTrace, warmup: int | None = None) -> Steady:
    """Where the steady part of `rank` lies; `warmup` says how many steps to leave out instead of finding it."""
    found = stats.find_warmup(rank.wall_ns / NS_PER_MS)
    enough = rank.steps >= 4 * stats.WARMUP_WINDOW
    fallback = rank.steps // 2 if enough else min(stats.WARMUP_LEAST, rank.steps // 2)
    first = min(warmup, rank.steps - 1) if warmup is not None else fallback if found is None else found
    if first < rank.steps_from < rank.steps - stats.WARMUP_LEAST:
        first = rank.steps_from
    last = rank.steps
    if warmup is None:
        first, last = _whole_rounds(rank, first, last)
    slowed = _slowed(rank, first, last)
    return Steady(
        first=first,
        last=last,
        from_ns=int(rank.step_start_ns[first]),
        to_ns=int(rank.step_start_ns[last]),
        settled=(found is not None) if enough else None,
        left_out=tuple((step, int(rank.step_start_ns[step]), int(rank.step_start_ns[step + 1])) for step in slowed),
    )


def _whole_rounds(rank: RankTrace, first: int, last: int) -> tuple[int, int]:
    """The steps from one evaluation to another, where they come again and again: a part of a round has too many of them, or too few."""
    evaluating = rank.phase_ns.get("Eval", np.zeros(0))[first:last]
    at = first + np.flatnonzero(evaluating)
    rare = 2 <= len(at) <= OFTEN * (last - first)
    if not rare or evaluating.sum() < NOTICED * rank.wall_ns[first:last].sum():
        return first, last
    begin, end = int(at[0]) + 1, int(at[-1]) + 1
    return (begin, end) if end - begin >= max(FEW, 0.5 * (last - first)) else (first, last)


def _slowed(rank: RankTrace, first: int, last: int) -> list[int]:
    """Steps that the probe slowed. Where few are left, those that were no slower than the others count: in long steps it is not noticed."""
    slowed = [step for step in rank.left_out if first <= step < last]
    others = np.setdiff1d(np.arange(first, last), slowed)
    if len(others) >= FEW or not slowed:
        return slowed
    if not len(others):  # too short a run to leave anything out
        return []
    usual = UNNOTICED * float(np.median(rank.wall_ns[others]))
    return [step for step in slowed if rank.wall_ns[step] > usual]


def spread(values_ns: np.ndarray) -> Spread | None:
    """The spread in milliseconds, None for no values."""
    return stats.spread(values_ns / NS_PER_MS) if len(values_ns) else None
