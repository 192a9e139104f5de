"""How often something that interrupts training may happen: so rarely that its cost no longer matters, and still within the run."""

from __future__ import annotations

import math

from trainflash.schema import Activity, Finding, Summary

# Share of the time that an interruption may cost. CheckFreq (Mohan, Phanishayee, Chidambaram, FAST 2021) picks the interval of checkpoints
# so that they cost 3.5 %; own: the same for evaluations and log lines.
LARGEST_SHARE = 0.035
ROUND = (1, 2, 5)


def happens(activity: Activity | None, summary: Summary, whole_steps: int | None = None) -> int | None:
    """How many times the whole program does it, in every step where nobody counted it; None where no run came to its end.

    `whole_steps`: all steps of the program, where another run than this one saw its end.
    """
    seen = summary.steps + summary.warmup_steps
    whole = whole_steps if summary.stopped else seen
    if whole is None or not seen:
        return None
    return summary.steps * whole // seen if activity is None else activity.count * whole // seen


def times_too_often(finding: Finding | None, times: int | None) -> int | None:
    """By how much the interval must grow until it costs no more than `LARGEST_SHARE`, as 1, 2 or 5 times a power of ten.

    It is done so many `times` in the whole program (None: unknown), and must still happen once. None where nothing is too often, or nothing
    is known.
    """
    if finding is None or not LARGEST_SHARE < finding.share < 1:
        return None
    needed = finding.share * (1 - LARGEST_SHARE) / (LARGEST_SHARE * (1 - finding.share))
    rounded = next(each for each in _round_numbers() if each >= needed)
    most = rounded if times is None else times
    fitting = rounded if rounded <= most else max((each for each in _round_numbers(most)), default=1)
    return fitting if fitting > 1 else None


def _round_numbers(most: float = math.inf):
    power = 1
    while power <= most:
        yield from (digit * power for digit in ROUND if digit * power <= most)
        power *= 10
