"""Where along a run a start times its steps: windows over all of it that the time allows, with untimed running between them.

Where all steps can be timed they are. Else both sides run at once between the windows, which costs half and is no measurement.
Step times change along a run, so the layout is made anew before each window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

WINDOWS = 16  # two for each part that is told apart, see `course`
PIECE_S = 1.0  # a longer slice would measure the weather
BESIDE = 1.3  # own: what two programs that run at once lose to each other on a machine with few cores
ALL_TIMED = 0.6  # own: of the time there is, for timing all steps: they may get slower
NEAR_MOST_S = 60.0  # own: a look at a run whose end is out of reach; it shows little more of an hour in two minutes than in one


class Pair(Protocol):
    """Two programs that wait at the same step."""

    def step_s(self) -> tuple[float, float]:
        """Seconds of a step of each side, in the newest steps that were timed."""

    def timed(self, steps: int) -> bool:
        """Time `steps` of each side in turn; True when a program came to its end."""

    def passed(self, steps: int) -> bool:
        """Let both run `steps` at once; True when a program came to its end."""


@dataclass(frozen=True)
class Limits:
    """Monotonic seconds by which a look is over: `near`, or `reach` where that is enough to see the end of the run."""

    near: float
    reach: float


def look(pair: Pair, steps: int, left: int | None, limits: Limits, clock: Callable[[], float], *, to_end: bool = True) -> None:
    """Windows of `steps` steps from here on. `left`: how many steps there are to see (None: nobody knows), to the run's end if `to_end`."""
    for number in range(WINDOWS):
        if left == 0:
            break
        now, windows = clock(), WINDOWS - number
        ours, theirs = pair.step_s()
        both, beside = ours + theirs, BESIDE * max(ours, theirs)
        reachable = left is not None and left * beside + min(left, windows * steps) * both <= limits.reach - now
        each_s = ((limits.reach if reachable else limits.near) - now) / windows
        if each_s * windows < steps * both:
            return
        stretch = None if left is None else min(left, max(steps, math.ceil(left / windows)))
        if left is not None and left * both <= ALL_TIMED * each_s * windows:
            gap, pieces = 0, math.ceil((stretch or 0) * max(ours, theirs) / PIECE_S)
            timed = stretch or 0
        else:
            gap, pieces, timed = max(0, math.floor((each_s - steps * both) / beside)), 1, steps
            if stretch is not None:
                gap, timed = min(gap, stretch - min(steps, stretch)), min(steps, stretch)
        if (gap and pair.passed(gap)) or any(pair.timed(part) for part in _parts(timed, pieces)):
            return
        left = None if left is None else left - gap - timed
    if to_end and left is not None and left <= steps and clock() < limits.reach:
        pair.timed(left + steps)  # past the end, to see it


def _parts(steps: int, pieces: int) -> list[int]:
    pieces = max(1, min(pieces, steps))
    edges = [round(part * steps / pieces) for part in range(pieces + 1)]
    return [end - begin for begin, end in itertools.pairwise(edges)]
