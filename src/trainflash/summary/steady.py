"""The steady part of one rank: where it begins and ends, and spreads of what lies in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trainflash import stats
from trainflash.schema import PHASES, Spread
from trainflash.trace import RankTrace, Samples

FEW = 20  # own: steps, of fewer none is given away that can be kept
UNNOTICED = 1.1  # own: times a usual step; steps differ by more than a tenth among themselves
NOTICED = 0.02  # own: of the time in evaluations, before it matters how many of them a window holds
OFTEN = 0.2  # own: of the steps with an evaluation; more often there are many rounds in any window
REGULAR = 1.5  # own: the longest round ÷ the shortest; others come when something happens, not once in so many steps
IMPORTED = 0.1  # own: of a step, from which on importing makes it another one than those that follow
IMPORTED_NS = 50e6  # own: a module that is found again takes microseconds, a small new one some milliseconds
_IMPORTS = re.compile(r"<frozen importlib\._bootstrap|importlib/__init__\.py")
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
    evaluation_weight: float = 1.0  # what a moment of evaluation counts for: the steps hold too many evaluations, or too few
    evaluated_ns: int = 0  # of the steps that count

    @property
    def wall_ns(self) -> int:
        """Wall time of the steady part, with as much evaluation as so many steps have; at least 1 so that shares are finite."""
        counted = self.to_ns - self.from_ns - sum(to_ns - from_ns for _, from_ns, to_ns in self.left_out)
        return max(1, counted - round((1 - self.evaluation_weight) * self.evaluated_ns))

    def counted(self, samples: Samples) -> Samples:
        """The samples with those of evaluations weighed as they count."""
        if self.evaluation_weight == 1:
            return samples
        evaluating = samples.phase == PHASES.index("Eval")
        return replace(
            samples, weight_ns=np.where(evaluating, samples.weight_ns * self.evaluation_weight, samples.weight_ns).astype(np.int64)
        )

    def weighed(self, phase: str, ns: float) -> float:
        """Time of a phase as it counts."""
        return self.evaluation_weight * ns if phase == "Eval" else ns

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
    return _between(rank, first, rank.steps, (found is not None) if enough else None)


def halves(rank: RankTrace, part: Steady) -> tuple[Steady, Steady]:
    """The first half of the steps that count and the second, each as if it were all."""
    middle = int(part.kept[len(part.kept) // 2])
    return _between(rank, part.first, middle, part.settled), _between(rank, middle, part.last, part.settled)


def _between(rank: RankTrace, first: int, last: int, settled: bool | None) -> Steady:
    slowed = sorted({*_slowed(rank, first, last), *_importing(rank, first, last)})
    weight, evaluated_ns = _rounds(rank, np.setdiff1d(np.arange(first, last), slowed))
    return Steady(
        first=first,
        last=last,
        from_ns=int(rank.step_start_ns[first]),
        to_ns=int(rank.step_start_ns[last]),
        settled=settled,
        left_out=tuple((step, int(rank.step_start_ns[step]), int(rank.step_start_ns[step + 1])) for step in slowed),
        evaluation_weight=weight,
        evaluated_ns=evaluated_ns,
    )


def _rounds(rank: RankTrace, kept: np.ndarray) -> tuple[float, int]:
    """(what an evaluation in the kept steps has to count for, so that there are as many as in so many steps of the whole run; their time).

    A window of steps holds one too many, or too few, of what comes once in many steps. 1 where evaluations are not seen to come again.
    """
    spent = rank.phase_ns.get("Eval", np.zeros(rank.steps, dtype=np.int64))
    at, here = np.flatnonzero(spent), kept[spent[kept] > 0]
    inside = int(spent[kept].sum())
    if len(at) < 2 or not len(here) or len(at) > OFTEN * rank.steps or inside < NOTICED * int(rank.wall_ns[kept].sum()):
        return 1.0, inside
    gaps = np.diff(at)
    if gaps.max() > REGULAR * gaps.min():
        return 1.0, inside
    return len(kept) / float(gaps.mean()) / len(here), inside


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


def _importing(rank: RankTrace, first: int, last: int) -> list[int]:
    """Steps, an evaluation behind them counted in, that spend a good part of their time on importing: a start-up that came late.

    Such is the first evaluation where libraries load their parts when these are first asked for. None where none would be left.
    """
    samples = rank.samples
    if samples.stack is None or not samples.stacks:
        return []
    imports = np.array([any(_IMPORTS.match(frame.location.file) for frame in stack) for stack in samples.stacks])
    inside = (samples.stack >= 0) & (samples.step >= first) & (samples.step < last)
    inside[inside] = imports[samples.stack[inside]]
    spent = np.bincount(samples.step[inside] - first, weights=samples.weight_ns[inside], minlength=last - first)
    found = np.flatnonzero((spent >= IMPORTED * rank.wall_ns[first:last]) & (spent >= IMPORTED_NS))
    return (found + first).tolist() if len(found) < last - first else []


def spread(values_ns: np.ndarray) -> Spread | None:
    """The spread in milliseconds, None for no values."""
    return stats.spread(values_ns / NS_PER_MS) if len(values_ns) else None
