"""Clocks of several machines laid over one another by what their ranks did together.

All ranks leave a collective at about the same time, however late one of them came. So the median difference of the ends is how far one
clock is ahead of the other, within the time of a transfer: what the rank that came last, and stayed shortest, spent inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainflash.trace.model import RankTrace

MOST_PAIRS = 64  # of ranks of two machines; more say nothing new


@dataclass(frozen=True)
class HostClock:
    """How far a machine's clock is ahead of the first rank's, ns, and within which error; None: they did nothing together."""

    ahead_ns: int | None
    error_ns: int | None


def host_clocks(ranks: Sequence[RankTrace]) -> dict[str, HostClock]:
    """The clock of every machine but the first rank's own, by name."""
    first = ranks[0]
    found = {}
    for host in dict.fromkeys(rank.host for rank in ranks if rank.host != first.host):
        pairs = [(near, far) for near in ranks if near.host == first.host for far in ranks if far.host == host][:MOST_PAIRS]
        together = [each for near, far in pairs if len((each := _together(near, far))[0])]
        ends, stays = min(together, key=lambda each: float(np.median(each[1])), default=(None, None))
        found[host] = HostClock(None, None) if ends is None else HostClock(int(np.median(ends)), int(np.median(stays)))
    return found


def _together(near: RankTrace, far: RankTrace) -> tuple[np.ndarray, np.ndarray]:
    """(how much later `far` left by its own clock, the shorter stay) of each collective in the steps in which both made equally many."""
    calls, theirs = near.collectives, far.collectives
    if calls is None or theirs is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    steps = min(near.steps, far.steps)
    counts = [each.per_step(steps) for each in (calls, theirs)]
    same = np.flatnonzero((counts[0] == counts[1]) & (counts[0] > 0))
    mine, other = np.isin(calls.step, same), np.isin(theirs.step, same)
    return theirs.end_ns[other] - calls.end_ns[mine], np.minimum(calls.host_ns[mine], theirs.host_ns[other])
